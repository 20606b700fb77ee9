"""Core ML: the rules of MIL's pooling and convolution operators, and of NeuralNetwork's `includeLastPixel`.

Source: apple/coremltools 9.0, coremltools/converters/mil/mil/ops/defs/iOS15/pool.py, conv.py, defs/_utils.py
spatial_dimensions_out_shape and mlmodel/format/NeuralNetwork.proto. Output shapes and refusals were confirmed by coremltools'
type inference; **no value could be run** (that takes macOS): padding, divisors, ties, NaN and gradients are the documents' or,
where those are silent, the plainest choice, and unverified. The L2 norm's gradient at 0 is 0 here.
"""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..plan import ConvPlan, PoolPlan, Shape, StridedAxis
from ..plan.kinds import Direction, Divisor, Empty, Layout, LpForm, Nan, Reduce, Start, Tie, Unpicked
from . import _sizes
from ._arguments import (
    Pads,
    PerAxis,
    accumulator,
    channels,
    choice,
    on_axis,
    only_each,
    pads,
    per_axis,
    require_dtype,
    spatial,
    whole,
)
from ._weights import transposed_weights_of, weights_of

POOL = "coremltools 9.0, converters/mil/mil/ops/defs/iOS15/pool.py"
CONV = "coremltools 9.0, converters/mil/mil/ops/defs/iOS15/conv.py"
NETWORK = "coremltools 9.0, mlmodel/format/NeuralNetwork.proto"
WORDS = ("valid", "same", "same_lower")
DTYPES = frozenset({"float16", "float32", "float64"})
"""Core ML computes in float16 and float32; float64 is taken besides."""


def max_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = "valid",
    dilation: Any = 1,
    layout: str = "channels_first",
    ceil_mode: bool = False,
    include_last_pixel: bool = False,
) -> PoolPlan:
    """Padding is taken not to compete; a NaN wins and the first of equal maxima has the gradient (unverified).
    `include_last_pixel` is Caffe's rounding, for NeuralNetwork models. MIL's stride is 1 unless given."""
    only_each(dilation, "dilation", 1, POOL)
    place, axes = _windows(shape, layout, kernel, stride, padding, ceil_mode, include_last_pixel)
    return PoolPlan(
        dtype=require_dtype(dtype, DTYPES, POOL),
        axes=axes,
        reduce=Reduce.MAX,
        layout=place,
        start=Start.INFINITY,
        nan=Nan.PROPAGATED,
        tie=Tie.FIRST,
        unpicked=Unpicked.FIRST_TAP,
        accumulate=accumulator(dtype),
    )


def avg_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = "valid",
    dilation: Any = 1,
    layout: str = "channels_first",
    ceil_mode: bool = False,
    include_last_pixel: bool = False,
    exclude_padding_from_average: bool = False,
) -> PoolPlan:
    """Divides by the kernel's taps, the overhang of `ceil_mode` included (users report 4.75 where PyTorch gives 9.5), or by the
    taps inside. With `include_last_pixel` by Caffe's divisor (unverified)."""
    only_each(dilation, "dilation", 1, POOL)
    place, axes = _windows(shape, layout, kernel, stride, padding, ceil_mode, include_last_pixel)
    counted = Divisor.CAFFE if include_last_pixel else Divisor.KERNEL
    return PoolPlan(
        dtype=require_dtype(dtype, DTYPES, POOL),
        axes=axes,
        reduce=Reduce.AVERAGE,
        layout=place,
        divisor=Divisor.VALID if exclude_padding_from_average else counted,
        empty=Empty.QUOTIENT,
        accumulate=accumulator(dtype),
    )


def lp_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    p: float = 2.0,
    kernel: Any,
    stride: Any = None,
    padding: Any = "valid",
    dilation: Any = 1,
    layout: str = "channels_first",
    ceil_mode: bool = False,
    include_last_pixel: bool = False,
) -> PoolPlan:
    """l2_pool: sqrt(sum x^2) over the window, padding 0; one or two axes."""
    only_each(dilation, "dilation", 1, POOL)
    if p != 2:
        raise ArgumentError("Core ML has the 2-norm only", given={"p": p}, because=POOL, hint="p=2.0")
    place, axes = _windows(shape, layout, kernel, stride, padding, ceil_mode, include_last_pixel)
    if len(axes) > 2:
        raise ArgumentError("l2_pool has one or two spatial axes", required=f"x.ndim is 3 or 4: {len(axes) + 2}", because=POOL)
    return PoolPlan(
        dtype=require_dtype(dtype, DTYPES, POOL),
        axes=axes,
        reduce=Reduce.LP,
        layout=place,
        p=2.0,
        lp_form=LpForm.ABSOLUTE,
        empty=Empty.ZERO,
        accumulate=accumulator(dtype),
    )


def conv(
    shape: Shape,
    w_shape: Shape,
    dtype: str = "float32",
    *,
    stride: Any = 1,
    padding: Any = "valid",
    dilation: Any = 1,
    groups: int = 1,
    layout: str = "channels_first",
) -> ConvPlan:
    """Zeros outside. "same" puts the odd pixel at the end (NeuralNetwork's default heaviness; MIL's text has it in front)."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    kernel, out_channels = weights_of(w_shape, rank, channels(shape, place), groups)
    s, d = per_axis(stride, rank, "stride"), per_axis(dilation, rank, "dilation")
    both = _pads(sizes, tuple(_sizes.reach(k, di) for k, di in zip(kernel, d, strict=True)), s, padding)
    outs = tuple(
        _sizes.floor(n, lo + hi, _sizes.reach(k, di), si)
        for n, (lo, hi), k, di, si in zip(sizes, both, kernel, d, s, strict=True)
    )
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
    padding: Any = "valid",
    dilation: Any = 1,
    groups: int = 1,
    output_size: Any = None,
    layout: str = "channels_first",
) -> ConvPlan:
    """(n-1)*stride + K less the pads, n*stride for "same", or `output_size`, which extends or crops the end ("same": half the
    crop in front, TensorFlow's way). Where a given size puts its pixels is unverified."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    kernel, out_channels = transposed_weights_of(w_shape, rank, channels(shape, place), groups)
    s, d = per_axis(stride, rank, "stride"), per_axis(dilation, rank, "dilation")
    wanted = (None,) * rank if output_size is None else per_axis(output_size, rank, "output_size")
    word = choice(padding.lower(), "padding", WORDS[:2]) if isinstance(padding, str) else None
    given = ((0, 0),) * rank if word else pads(padding, rank)
    axes = []
    for n, k, si, di, (lo, hi), size in zip(sizes, kernel, s, d, given, wanted, strict=True):
        full = (n - 1) * si + _sizes.reach(k, di)
        out = size if size is not None else n * si if word == "same" else full - lo - hi
        if out < 1:
            raise ArgumentError(
                "the output is empty",
                given={"kernel": kernel, "stride": stride, "padding": padding},
                required=f"size >= 1: {out}",
                because=CONV,
                hint="less padding",
            )
        lo = max(full - out, 0) // 2 if word == "same" else lo
        axes.append(StridedAxis(size=out, kernel=k, stride=si, dilation=di, pad_lo=lo, pad_hi=full - out - lo, out=n))
    return ConvPlan(
        dtype=require_dtype(dtype, DTYPES, CONV),
        axes=tuple(axes),
        in_channels=channels(shape, place),
        out_channels=out_channels,
        direction=Direction.TRANSPOSED,
        layout=place,
        groups=whole(groups, "groups", 1),
        accumulate=accumulator(dtype),
    )


def _windows(
    shape: Shape, layout: str, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, include_last_pixel: bool
) -> tuple[Layout, tuple[StridedAxis, ...]]:
    """Floor; ceil, and one window less where a padded axis' last would start behind the input: MIL axis by axis, Caffe's
    rounding on all axes if one is padded."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    k = per_axis(kernel, rank, "kernel")
    s = k if stride is None else per_axis(stride, rank, "stride")
    both = _pads(sizes, k, s, padding)
    if ceil_mode or include_last_pixel:
        _check_ceil("ceil_mode" if ceil_mode else "include_last_pixel", padding, both)
    rounded = _sizes.ceil if ceil_mode or include_last_pixel else _sizes.floor
    outs = tuple(rounded(n, lo + hi, ki, si) for n, (lo, hi), ki, si in zip(sizes, both, k, s, strict=True))
    if rounded is _sizes.ceil:
        padded = any(lo + hi for lo, hi in both)
        outs = tuple(
            _sizes.clipped(out, n, lo, si) if (padded if include_last_pixel else lo + hi) else out
            for out, n, (lo, hi), si in zip(outs, sizes, both, s, strict=True)
        )
    return place, _sizes.strided_axes(sizes, k, s, (1,) * rank, both, outs, because=POOL)


def _pads(sizes: PerAxis, reaches: PerAxis, stride: PerAxis, padding: Any) -> Pads:
    if not isinstance(padding, str):
        return pads(padding, len(sizes))
    word = choice(padding.lower(), "padding", WORDS)
    if word == "valid":
        return ((0, 0),) * len(sizes)
    same = (_sizes.same(n, k, s, extra_at_end=word == "same") for n, k, s in zip(sizes, reaches, stride, strict=True))
    return tuple(pair for _, pair in same)


def _check_ceil(name: str, padding: Any, both: Pads) -> None:
    because = POOL if name == "ceil_mode" else NETWORK
    if len(both) > 2:
        raise ArgumentError(
            f"{name} is for one or two spatial axes", required=f"x.ndim is 3 or 4: {len(both) + 2}", because=because
        )
    if isinstance(padding, str) and padding.lower() != "valid":
        raise ArgumentError(
            f'{name} excludes padding "{padding.lower()}"', given={"padding": padding}, because=because, hint='padding="valid"'
        )
    for i, (lo, hi) in enumerate(both):
        if lo != hi:
            raise ArgumentError(
                f"{name} needs both sides of an axis padded alike",
                given={"padding": padding},
                required=f"{on_axis('low == high', i, len(both))}: {lo} == {hi}",
                because=because,
                hint=f"padding={hi} on that axis",
            )
