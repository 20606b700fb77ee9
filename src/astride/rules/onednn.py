"""oneDNN 2.6.3, CPU: the rules of its pooling, convolution and deconvolution primitives.

The caller states the output's size; it must be (n - K + pads) // stride + 1, so ceil rounding is said by a larger end pad:
`padding` takes (begin, end) pairs, and `output_size`, where given, is checked. `dilation` is 1 for a dense kernel (oneDNN
counts the holes: 0). Pooling was run (nchw, float32); convolution and other types are from the developer guide (unverified).
Source: src/cpu/nchw_pooling.cpp; developer guide, Pooling, Convolution.
"""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..plan import ConvPlan, PoolPlan, Shape, StridedAxis
from ..plan.kinds import Direction, Divisor, Empty, IndexBase, Layout, Nan, Reduce, Start, Tie, Unpicked
from . import _sizes
from ._arguments import accumulator, channels, pads, per_axis, require_dtype, spatial, whole
from ._weights import transposed_weights_of, weights_of

POOL = "oneDNN 2.6.3, developer guide, Pooling"
CONV = "oneDNN, developer guide, Convolution (not run)"
FLOATS = frozenset({"float16", "bfloat16", "float32"})


def max_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    layout: str = "channels_first",
    output_size: Any = None,
) -> PoolPlan:
    """Strict `>` from -FLT_MAX; where nothing won, the gradient goes to the first tap inside, in a window of padding alone
    nowhere. The workspace's index counts inside the window."""
    place, axes = _windows(shape, layout, kernel, stride, padding, dilation, output_size)
    return PoolPlan(
        dtype=require_dtype(dtype, FLOATS | {"int8", "uint8", "int32"}, POOL),
        axes=axes,
        reduce=Reduce.MAX,
        layout=place,
        start=Start.FINITE,
        nan=Nan.COMPARED,
        tie=Tie.FIRST,
        unpicked=Unpicked.FIRST_TAP,
        index_base=IndexBase.WINDOW,
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
    output_size: Any = None,
    include_padding: bool = False,
) -> PoolPlan:
    """pooling_avg_exclude_padding divides by the real taps, pooling_avg_include_padding by the kernel. A window of padding
    alone divides by zero when padding is excluded (unverified)."""
    place, axes = _windows(shape, layout, kernel, stride, padding, dilation, output_size)
    return PoolPlan(
        dtype=require_dtype(dtype, FLOATS, POOL),
        axes=axes,
        reduce=Reduce.AVERAGE,
        layout=place,
        divisor=Divisor.KERNEL if include_padding else Divisor.VALID,
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
    """Cross-correlation, floor, pads on each side as given (unverified: documentation). Grouped weights, (G, O/G, I/G, *kernel)
    in oneDNN, are (O, I/G, *kernel) here."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    kernel, out_channels = weights_of(w_shape, rank, channels(shape, place), groups)
    s, d, both = per_axis(stride, rank, "stride"), per_axis(dilation, rank, "dilation"), pads(padding, rank)
    outs = tuple(
        _sizes.floor(n, lo + hi, _sizes.reach(k, di), si)
        for n, (lo, hi), k, di, si in zip(sizes, both, kernel, d, s, strict=True)
    )
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
    dilation: Any = 1,
    groups: int = 1,
    layout: str = "channels_first",
) -> ConvPlan:
    """Deconvolution, (n-1)*stride + K - pads (unverified: documentation). A smaller end pad stands for output padding."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    kernel, out_channels = transposed_weights_of(w_shape, rank, channels(shape, place), groups)
    s, d = per_axis(stride, rank, "stride"), per_axis(dilation, rank, "dilation")
    return ConvPlan(
        dtype=require_dtype(dtype, FLOATS, CONV),
        axes=_sizes.transposed_axes(sizes, kernel, s, d, pads(padding, rank, minimum=None), (0,) * rank, because=CONV),
        in_channels=channels(shape, place),
        out_channels=out_channels,
        direction=Direction.TRANSPOSED,
        layout=place,
        groups=whole(groups, "groups", 1),
        accumulate=accumulator(dtype),
    )


def _windows(
    shape: Shape, layout: str, kernel: Any, stride: Any, padding: Any, dilation: Any, output_size: Any
) -> tuple[Layout, tuple[StridedAxis, ...]]:
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    k, d, both = per_axis(kernel, rank, "kernel"), per_axis(dilation, rank, "dilation"), pads(padding, rank)
    s = k if stride is None else per_axis(stride, rank, "stride")
    outs = tuple(
        _sizes.floor(n, lo + hi, _sizes.reach(ki, di), si) for n, (lo, hi), ki, di, si in zip(sizes, both, k, d, s, strict=True)
    )
    axes = _sizes.strided_axes(sizes, k, s, d, both, outs, because=POOL)
    if output_size is not None and per_axis(output_size, rank, "output_size") != outs:
        raise ArgumentError(
            "the output size does not follow from the window",
            given={"output_size": output_size},
            required=f"output_size == (n - K + pads) // stride + 1: {outs}",
            because=POOL,
            hint="a larger end pad, for a window that hangs over",
        )
    return place, axes
