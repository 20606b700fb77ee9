"""ncnn 1.0.20261020, CPU: the rules of its Pooling, Convolution and Deconvolution layers (1-D and 3-D forms alike).

`pad_mode` is ncnn's: 0 full (ceil, by a longer end pad), 1 valid (floor), 2 SAME_UPPER, 3 SAME_LOWER, which ignore pads.
All below was run in two dimensions on x86-64. Forward only: ties follow the first tap.
Source: src/layer/pooling.cpp, convolution.cpp, deconvolution.cpp.
"""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..plan import ConvPlan, PoolPlan, Shape, StridedAxis
from ..plan.kinds import Direction, Divisor, Edge, Empty, Layout, Nan, Reduce, Start, Tie, Unpicked
from . import _sizes
from ._arguments import Pads, PerAxis, accumulator, channels, only_each, pads, per_axis, require_dtype, spatial, whole
from ._weights import transposed_weights_of, weights_of

POOL = "ncnn 1.0.20261020, src/layer/pooling.cpp"
CONV = "ncnn 1.0.20261020, src/layer/convolution.cpp"
TRANSPOSE = "ncnn 1.0.20261020, src/layer/deconvolution.cpp"
DTYPES = frozenset({"float32"})
LOWEST = -(2.0 - 2.0**-23) * 2.0**127
"""-FLT_MAX"""


def max_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    layout: str = "channels_first",
    pad_mode: int = 0,
) -> PoolPlan:
    """Padding is -FLT_MAX and takes part, so it beats -inf. What a NaN does is the order of the CPU's `max(best, x)`, which
    keeps x where either is NaN (unspecified, not followed here: a NaN never replaces)."""
    only_each(dilation, "dilation", 1, "ncnn's Pooling has none")
    place, axes = _windows(shape, layout, kernel, stride, padding, pad_mode)
    return PoolPlan(
        dtype=require_dtype(dtype, DTYPES, POOL),
        axes=axes,
        reduce=Reduce.MAX,
        layout=place,
        start=Start.FIRST_TAP,
        nan=Nan.COMPARED,
        tie=Tie.FIRST,
        unpicked=Unpicked.FIRST_TAP,
        edge=Edge.CONSTANT,
        edge_value=LOWEST,
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
    pad_mode: int = 0,
    avgpool_count_include_pad: int = 0,
) -> PoolPlan:
    """0: the real taps, NaN where there is none, but under SAME the padding counts all the same. 1: the whole kernel, the
    overhang too. Under SAME, 0 and pads make ncnn leave out that many real pixels at the edges: refused."""
    only_each(dilation, "dilation", 1, "ncnn's Pooling has none")
    place, axes = _windows(shape, layout, kernel, stride, padding, pad_mode)
    if pad_mode >= 2 and not avgpool_count_include_pad and any(map(any, pads(padding, len(axes)))):
        raise ArgumentError(
            "pads that SAME ignores would leave real pixels out of the average",
            given={"padding": padding, "pad_mode": pad_mode},
            because=POOL,
            hint="padding=0, or avgpool_count_include_pad=1",
        )
    return PoolPlan(
        dtype=require_dtype(dtype, DTYPES, POOL),
        axes=axes,
        reduce=Reduce.AVERAGE,
        layout=place,
        divisor=Divisor.KERNEL if avgpool_count_include_pad or pad_mode >= 2 else Divisor.VALID,
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
    """Floor. `padding` may be "SAME_UPPER" (pad -233: the odd pixel at the end) or "SAME_LOWER" (-234), dilated too."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    kernel, out_channels = weights_of(w_shape, rank, channels(shape, place), groups)
    s, d = per_axis(stride, rank, "stride"), per_axis(dilation, rank, "dilation")
    reaches = tuple(_sizes.reach(k, di) for k, di in zip(kernel, d, strict=True))
    both = _same(padding, sizes, reaches, s) if padding in ("SAME_UPPER", "SAME_LOWER") else pads(padding, rank)
    outs = tuple(_sizes.floor(n, lo + hi, r, si) for n, (lo, hi), r, si in zip(sizes, both, reaches, s, strict=True))
    return ConvPlan(
        dtype=require_dtype(dtype, DTYPES, CONV),
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
    """(n-1)*stride + K + output_padding - pads. `output_shape` (output_w, output_h) needs "SAME_UPPER" (an odd crop at the
    end) or "SAME_LOWER" (at the start), and an output no larger than the scatter."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    kernel, out_channels = transposed_weights_of(w_shape, rank, channels(shape, place), groups)
    s, d = per_axis(stride, rank, "stride"), per_axis(dilation, rank, "dilation")
    extra = per_axis(output_padding, rank, "output_padding", 0)
    if (output_shape is None) != (padding not in ("SAME_UPPER", "SAME_LOWER")):
        raise ArgumentError(
            "an output size and SAME padding go together",
            given={"output_shape": output_shape, "padding": padding},
            because=TRANSPOSE,
            hint='padding="SAME_UPPER" with output_shape',
        )
    both = _crops(sizes, kernel, s, d, extra, padding, output_shape) if output_shape is not None else pads(padding, rank)
    return ConvPlan(
        dtype=require_dtype(dtype, DTYPES, TRANSPOSE),
        axes=_sizes.transposed_axes(sizes, kernel, s, d, both, extra, because=TRANSPOSE),
        in_channels=channels(shape, place),
        out_channels=out_channels,
        direction=Direction.TRANSPOSED,
        layout=place,
        groups=whole(groups, "groups", 1),
        accumulate=accumulator(dtype),
    )


def _windows(
    shape: Shape, layout: str, kernel: Any, stride: Any, padding: Any, pad_mode: int
) -> tuple[Layout, tuple[StridedAxis, ...]]:
    """Full mode never drops a window; a kernel larger than the padded input is refused (ncnn's full mode gives two windows)."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    k = per_axis(kernel, rank, "kernel")
    s = k if stride is None else per_axis(stride, rank, "stride")
    if whole(pad_mode, "pad_mode") not in (0, 1, 2, 3):
        raise ArgumentError("pad_mode is 0, 1, 2 or 3", given={"pad_mode": pad_mode}, because=POOL, hint="pad_mode=0")
    both = pads(padding, rank) if pad_mode < 2 else _same("SAME_UPPER" if pad_mode == 2 else "SAME_LOWER", sizes, k, s)
    floors = tuple(_sizes.floor(n, lo + hi, ki, si) for n, (lo, hi), ki, si in zip(sizes, both, k, s, strict=True))
    axes = _sizes.strided_axes(sizes, k, s, (1,) * rank, both, floors, because=POOL)
    if pad_mode != 0:
        return place, axes
    ceils = tuple(_sizes.ceil(n, lo + hi, ki, si) for n, (lo, hi), ki, si in zip(sizes, both, k, s, strict=True))
    return place, _sizes.strided_axes(sizes, k, s, (1,) * rank, both, ceils, because=POOL)


def _same(word: str, sizes: PerAxis, reaches: PerAxis, stride: PerAxis) -> Pads:
    """SAME's pads. Where any axis needs some, another whose windows leave gaps is cropped: the width on both sides, halved
    as C does, the height at its end (three axes: not run)."""
    totals = [(-(-n // s) - 1) * s + r - n for n, r, s in zip(sizes, reaches, stride, strict=True)]
    if max(totals) <= 0:
        return ((0, 0),) * len(sizes)
    both = []
    for i, total in enumerate(totals):
        half = int(total / 2)
        before = half if word == "SAME_UPPER" else total - half
        if i < len(totals) - 1:
            before = max(before, 0)
        both.append((before, total - before))
    return tuple(both)


def _crops(
    sizes: PerAxis, kernel: PerAxis, stride: PerAxis, dilation: PerAxis, extra: PerAxis, word: str, output_shape: Any
) -> Pads:
    """What SAME cuts off both ends of the scatter."""
    crops = []
    wanted = per_axis(output_shape, len(sizes), "output_shape")
    for n, k, s, d, more, length in zip(sizes, kernel, stride, dilation, extra, wanted, strict=True):
        crop = (n - 1) * s + _sizes.reach(k, d) + more - length
        if crop < 0:
            raise ArgumentError(
                "output_shape is larger than the scatter",
                given={"output_shape": output_shape},
                required=f"output_shape <= (size-1)*stride + K + output_padding: {length} <= {length + crop}",
                because=TRANSPOSE,
                hint="output_padding",
            )
        before = crop // 2 if word == "SAME_UPPER" else crop - crop // 2
        crops.append((before, crop - before))
    return tuple(crops)
