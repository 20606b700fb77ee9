"""OpenVINO 2026.4, CPU: the rules of MaxPool-14, AvgPool-14, Convolution-1 and ConvolutionBackpropData-1.

Source: the operations' pages in OpenVINO's documentation; all below was run. `padding` is an int, one per axis, (begin, end)
pairs, or auto_pad's word ("valid", "same_upper", "same_lower"), which ignores pads. Forward only: ties follow the first tap.
"""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..plan import ConvPlan, PoolPlan, Shape, StridedAxis
from ..plan.base import axis_names
from ..plan.kinds import Direction, Divisor, Empty, IndexBase, Layout, Nan, Reduce, Start, Tie, Unpicked
from . import _sizes
from ._arguments import (
    INTEGERS,
    Pads,
    PerAxis,
    accumulator,
    channels,
    choice,
    only_each,
    pads,
    per_axis,
    require_dtype,
    spatial,
    whole,
)
from ._weights import transposed_weights_of, weights_of

POOL = "OpenVINO 2026.4, MaxPool-14 and AvgPool-14"
CONV = "OpenVINO 2026.4, Convolution-1 and ConvolutionBackpropData-1"
FLOATS = frozenset({"float16", "float32", "float64"})
WORDS = ("valid", "same_upper", "same_lower")
ROUNDINGS = ("floor", "ceil", "ceil_torch")
BASES = (IndexBase.TENSOR, IndexBase.IMAGE, IndexBase.PLANE)


def max_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    layout: str = "channels_first",
    rounding_type: str = "floor",
    axis: int = 0,
) -> PoolPlan:
    """Strict `>` from -FLT_MAX. Indices count from `axis` on: 0 the whole tensor, 1 an image, 2 a plane; where nothing
    won (NaN, -inf, padding alone) the index is that of the plane's first pixel. "ceil" keeps windows of padding alone."""
    place, axes = _windows(shape, layout, kernel, stride, padding, dilation, rounding_type)
    if not -len(shape) <= whole(axis, "axis") <= 2 or axis % len(shape) > 2:
        raise ArgumentError(
            "indices that restart within a plane are not offered here",
            given={"axis": axis},
            required=f"axis is 0, 1 or 2: {axis}",
            hint="axis=2, and the index modulo the row's length",
        )
    return PoolPlan(
        dtype=require_dtype(dtype, FLOATS | INTEGERS, POOL),
        axes=axes,
        reduce=Reduce.MAX,
        layout=place,
        start=Start.FINITE,
        nan=Nan.COMPARED,
        tie=Tie.FIRST,
        unpicked=Unpicked.ORIGIN,
        index_base=BASES[axis % len(shape)],
        accumulate=accumulator(dtype),
    )


def avg_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    layout: str = "channels_first",
    rounding_type: str = "floor",
    exclude_pad: bool = True,
) -> PoolPlan:
    """exclude_pad (which OpenVINO itself requires to be given): the real taps; else the whole kernel, overhang too, under
    every rounding; but where no side is padded, the real taps again. A window of padding alone is 0/0, or 0 over the kernel;
    an unpadded one that starts behind the input's end counts a negative number of taps, so that it is -0."""
    only_each(dilation, "dilation", 1, "AvgPool-14 has none")
    place, axes = _windows(shape, layout, kernel, stride, padding, 1, rounding_type)
    both = tuple((axis.pad_lo, axis.pad_hi) for axis in axes)
    if exclude_pad and not isinstance(padding, str):
        _some_tap_inside(both, axes)
    padded = any(lo or hi for lo, hi in both)
    divisor = Divisor.VALID if exclude_pad or not padded else Divisor.KERNEL
    if not padded and rounding_type == "ceil":
        divisor = Divisor.CAFFE  # the real taps, and less than none behind the input
    return PoolPlan(
        dtype=require_dtype(dtype, FLOATS, POOL),
        axes=axes,
        reduce=Reduce.AVERAGE,
        layout=place,
        divisor=divisor,
        empty=Empty.QUOTIENT,
        accumulate=accumulator(dtype),
    )


def conv(
    shape: Shape,
    w_shape: Shape,
    dtype: str = "float32",
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    layout: str = "channels_first",
) -> ConvPlan:
    """Floor, or SAME's ceil(n/s), dilated too. GroupConvolution-1's weights, (G, O/G, I/G, *kernel), are
    (O, I/G, *kernel) here."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    kernel, out_channels = weights_of(w_shape, rank, channels(shape, place), groups)
    s, d = per_axis(stride, rank, "stride"), per_axis(dilation, rank, "dilation")
    reaches = tuple(_sizes.reach(k, di) for k, di in zip(kernel, d, strict=True))
    both = _pads(padding, sizes, reaches, s)
    outs = tuple(_sizes.floor(n, lo + hi, r, si) for n, (lo, hi), r, si in zip(sizes, both, reaches, s, strict=True))
    return ConvPlan(
        dtype=require_dtype(dtype, FLOATS, CONV),
        axes=_sizes.strided_axes(sizes, kernel, s, d, both, outs, because=CONV),
        in_channels=channels(shape, place),
        out_channels=out_channels,
        layout=place,
        groups=whole(groups, "groups", 1),
        accumulate=accumulator(dtype),
    )


def conv_transpose(
    shape: Shape,
    w_shape: Shape,
    dtype: str = "float32",
    *,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    layout: str = "channels_first",
    output_shape: Any = None,
) -> ConvPlan:
    """s*(n-1) + output_padding + K - pads, where every auto_pad word means no pads. With `output_shape` pads begin as given;
    "same_upper" crops the larger half at the *start* and "same_lower" at the end, the reverse of ONNX; zeros fill the end."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    kernel, out_channels = transposed_weights_of(w_shape, rank, channels(shape, place), groups)
    s, d = per_axis(stride, rank, "stride"), per_axis(dilation, rank, "dilation")
    extra = per_axis(output_padding, rank, "output_padding", 0)
    word = choice(padding, "padding", WORDS) if isinstance(padding, str) else ""
    both = ((0, 0),) * rank if word else pads(padding, rank)
    if output_shape is not None:
        solved = []
        for n, k, si, di, more, length, (lo, _) in zip(
            sizes, kernel, s, d, extra, per_axis(output_shape, rank, "output_shape"), both, strict=True
        ):
            full = (n - 1) * si + _sizes.reach(k, di)
            crop = max(full + more - length, 0)
            before = {"same_upper": crop - crop // 2, "same_lower": crop // 2}.get(word, lo)
            solved.append((before, full - before - length))
        both, extra = tuple(solved), (0,) * rank
    return ConvPlan(
        dtype=require_dtype(dtype, FLOATS, CONV),
        axes=_sizes.transposed_axes(sizes, kernel, s, d, both, extra, because=CONV),
        in_channels=channels(shape, place),
        out_channels=out_channels,
        direction=Direction.TRANSPOSED,
        layout=place,
        groups=whole(groups, "groups", 1),
        accumulate=accumulator(dtype),
    )


def _windows(
    shape: Shape, layout: str, kernel: Any, stride: Any, padding: Any, dilation: Any, rounding_type: str
) -> tuple[Layout, tuple[StridedAxis, ...]]:
    """Floor, ceil without a clip, or "ceil_torch" with PyTorch's; SAME's ceil(n/s) under all. Any pads, but no kernel
    larger than the padded input even under ceil."""
    choice(rounding_type, "rounding_type", ROUNDINGS)
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    k, d = per_axis(kernel, rank, "kernel"), per_axis(dilation, rank, "dilation")
    s = k if stride is None else per_axis(stride, rank, "stride")
    reaches = tuple(_sizes.reach(ki, di) for ki, di in zip(k, d, strict=True))
    both = _pads(padding, sizes, reaches, s)
    size = _sizes.floor if rounding_type == "floor" else _sizes.ceil
    floors = tuple(_sizes.floor(n, lo + hi, r, si) for n, (lo, hi), r, si in zip(sizes, both, reaches, s, strict=True))
    _sizes.strided_axes(sizes, k, s, d, both, floors, because=POOL)
    outs = tuple(size(n, lo + hi, r, si) for n, (lo, hi), r, si in zip(sizes, both, reaches, s, strict=True))
    if rounding_type == "ceil_torch":
        outs = tuple(_sizes.clipped(out, n, lo, si) for out, n, (lo, _), si in zip(outs, sizes, both, s, strict=True))
    return place, _sizes.strided_axes(sizes, k, s, d, both, outs, because=POOL)


def _pads(padding: Any, sizes: PerAxis, reaches: PerAxis, stride: PerAxis) -> Pads:
    if not isinstance(padding, str):
        return pads(padding, len(sizes))
    if choice(padding, "padding", WORDS) == "valid":
        return ((0, 0),) * len(sizes)
    upper = padding == "same_upper"
    return tuple(_sizes.same(n, r, s, extra_at_end=upper)[1] for n, r, s in zip(sizes, reaches, stride, strict=True))


def _some_tap_inside(both: Pads, axes: tuple[StridedAxis, ...]) -> None:
    """AvgPool with exclude_pad is refused where pads alone could fill a window."""
    for i, ((lo, hi), axis) in enumerate(zip(both, axes, strict=True)):
        if max(lo, hi) >= axis.kernel:
            raise ArgumentError(
                "a window could lie in the padding alone",
                given={"padding": both},
                required=f"pad < kernel, on axis {axis_names(len(axes))[i]}: {max(lo, hi)} < {axis.kernel}",
                because=POOL,
                hint=f"padding={axis.kernel - 1}, or exclude_pad=False",
            )
