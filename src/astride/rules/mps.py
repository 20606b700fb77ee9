"""Apple's Metal Performance Shaders: rules read from the SDK headers; nothing of MPS could be run (unverified).

A window is centred: its first tap is at offset + i*stride - kernel // 2, where `offset` is the position of the first
centre in the source. Without `offset` (and `size`, the destination) they follow from a padding policy:

    padding     "same" (default), "valid", "full": ceil((n + t*(K-1)) / s) windows with t = 0, -1, +1
    align       "centred" (default), "top_left", "bottom_right"
    remainder   where an odd pixel is left: "top_left" (default), "bottom_right", or one of them per axis
    edge        what taps outside read: "zero" (default; 0 takes part in a maximum) or "clamp" (the nearest pixel)

Source: MPSCNNPooling.h, MPSCNNConvolution.h, MPSNeuralNetworkTypes.h. What the headers leave open (NaN, which tap of a
tie, L2 with clamp) is decided here and marked in docs/rules/mps.md.
"""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..plan import ConvPlan, PoolPlan, Shape, StridedAxis
from ..plan.kinds import Direction, Divisor, Edge, Empty, Layout, Nan, Reduce, Start, Tie, Unpicked, ZeroWindow
from . import _sizes
from ._arguments import (
    accumulator,
    as_minimum,
    channels,
    choice,
    kind,
    only,
    only_each,
    per_axis,
    require_dtype,
    shares_arguments,
    spatial,
    whole,
)
from ._weights import transposed_weights_of, weights_of

DTYPES = frozenset({"float16", "float32", "float64"})
POOLING = "MPSCNNPooling.h (header only, not run)"
CONVOLUTION = "MPSCNNConvolution.h (header only, not run)"
GROWTH = {"valid": -1, "same": 0, "full": 1}
CORNERS = ("top_left", "bottom_right")


def max_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = "same",
    dilation: Any = 1,
    layout: str = "channels_first",
    offset: Any = None,
    size: Any = None,
    align: str = "centred",
    remainder: Any = "top_left",
    edge: str = "zero",
) -> PoolPlan:
    """Edge zero lets a padding 0 beat negative data. Ties and NaN are unspecified in the headers: the first, and NaN wins."""
    place, axes = _windows(shape, layout, kernel, stride, padding, dilation, offset, size, align, remainder)
    return PoolPlan(
        dtype=require_dtype(dtype, DTYPES, POOLING),
        axes=axes,
        reduce=Reduce.MAX,
        layout=place,
        start=Start.INFINITY,
        nan=Nan.PROPAGATED,
        tie=Tie.FIRST_NAN,
        unpicked=Unpicked.FIRST_TAP,
        edge=Edge.CONSTANT if choice(edge, "edge", ("zero", "clamp")) == "zero" else Edge.CLAMP,
        accumulate=accumulator(dtype),
    )


def min_pool(shape: Shape, dtype: str = "float32", **arguments: Any) -> PoolPlan:
    """Max pooling's rule mirrored; MPS's CNN classes have no minimum."""
    return as_minimum(max_pool(shape, dtype, **arguments))


def avg_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = "same",
    dilation: Any = 1,
    layout: str = "channels_first",
    offset: Any = None,
    size: Any = None,
    align: str = "centred",
    remainder: Any = "top_left",
    edge: str = "zero",
    zero_pad_size: Any = 0,
) -> PoolPlan:
    """Edge zero divides by the whole kernel; clamp shrinks the window to its real taps (none: 0), or, with
    `zero_pad_size`, to the taps inside an input padded by that much."""
    only_each(dilation, "dilation", 1, POOLING)
    place, axes = _windows(shape, layout, kernel, stride, padding, 1, offset, size, align, remainder)
    extra = per_axis(zero_pad_size, len(axes), "zero_pad_size", 0)
    if choice(edge, "edge", ("zero", "clamp")) == "zero":
        divisor = Divisor.KERNEL
    else:
        divisor = Divisor.PADDED if any(extra) else Divisor.VALID
    return PoolPlan(
        dtype=require_dtype(dtype, DTYPES, POOLING),
        axes=axes,
        reduce=Reduce.AVERAGE,
        layout=place,
        divisor=divisor,
        divisor_pad=tuple((e, e) for e in extra) if divisor is Divisor.PADDED else None,
        empty=Empty.ZERO,
        accumulate=accumulator(dtype),
    )


def lp_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    p: float = 2.0,
    kernel: Any,
    stride: Any = None,
    padding: Any = "same",
    dilation: Any = 1,
    layout: str = "channels_first",
    offset: Any = None,
    size: Any = None,
    align: str = "centred",
    remainder: Any = "top_left",
    edge: str = "zero",
    zero_window: str = "zero",
) -> PoolPlan:
    """L2 only: sqrt(sum of squares over the window), gradient x / y; of a window of zeros 0, or with zero_window
    "formula" the 0/0 = NaN that the header's formula says. Clamp repeats the nearest pixel (unverified)."""
    only(p, "p", 2.0, POOLING)
    only_each(dilation, "dilation", 1, POOLING)
    place, axes = _windows(shape, layout, kernel, stride, padding, 1, offset, size, align, remainder)
    return PoolPlan(
        dtype=require_dtype(dtype, DTYPES, POOLING),
        axes=axes,
        reduce=Reduce.LP,
        layout=place,
        p=2.0,
        zero_window=kind(ZeroWindow, zero_window, "zero_window"),
        edge=Edge.SKIP if choice(edge, "edge", ("zero", "clamp")) == "zero" else Edge.CLAMP,
        empty=Empty.ZERO,
        accumulate=accumulator(dtype),
    )


def conv(
    shape: Shape,
    w_shape: Shape,
    dtype: str = "float32",
    *,
    stride: Any = 1,
    padding: Any = "same",
    dilation: Any = 1,
    groups: int = 1,
    layout: str = "channels_first",
    offset: Any = None,
    size: Any = None,
    align: str = "centred",
    remainder: Any = "top_left",
    edge: str = "zero",
) -> ConvPlan:
    """Correlation by the windows of pooling. Groups need channels in multiples of four on both sides."""
    place, axes = _windows(shape, layout, w_shape[2:], stride, padding, dilation, offset, size, align, remainder)
    _, out_channels = weights_of(w_shape, len(axes), channels(shape, place), groups)
    _four_per_group(channels(shape, place), out_channels, groups)
    return ConvPlan(
        dtype=require_dtype(dtype, DTYPES, CONVOLUTION),
        axes=axes,
        in_channels=channels(shape, place),
        out_channels=out_channels,
        layout=place,
        groups=whole(groups, "groups", 1),
        edge=Edge.SKIP if choice(edge, "edge", ("zero", "clamp")) == "zero" else Edge.CLAMP,
        accumulate=accumulator(dtype),
    )


def conv_transpose(
    shape: Shape,
    w_shape: Shape,
    dtype: str = "float32",
    *,
    stride: Any = 1,
    padding: str = "same",
    dilation: Any = 1,
    groups: int = 1,
    layout: str = "channels_first",
    offset: Any = 0,
    kernel_offset: Any = 0,
    size: Any = None,
) -> ConvPlan:
    """The input with stride-1 zeros between its pixels, then plain correlation: the kernel is not turned by 180 degrees.

    A window starts kernel // 2 before offset*stride + kernel_offset in the stretched input. Without `size` the output has
    (n-1)*stride + 1 + t*(kernel-1) pixels, t = 0 ("same": not n*stride), -1 ("valid"), +1 ("full").
    """
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    only_each(dilation, "dilation", 1, CONVOLUTION)
    kernel, out_channels = transposed_weights_of(w_shape, rank, channels(shape, place), groups)
    _four_per_group(channels(shape, place), out_channels, groups)
    s = per_axis(stride, rank, "stride")
    growth = GROWTH[choice(padding, "padding", tuple(GROWTH))]
    outs = (
        tuple((n - 1) * si + 1 + growth * (k - 1) for n, si, k in zip(sizes, s, kernel, strict=True))
        if size is None
        else per_axis(size, rank, "size")
    )
    shift = [
        o * si + ko
        for o, si, ko in zip(
            per_axis(offset, rank, "offset", None), s, per_axis(kernel_offset, rank, "kernel_offset", None), strict=True
        )
    ]
    axes = []
    for n, k, si, out, move in zip(sizes, kernel, s, outs, shift, strict=True):
        if out < 1:
            raise ArgumentError(
                "the output is empty",
                given={"kernel": kernel, "stride": stride},
                required=f"size >= 1: {out}",
                because=CONVOLUTION,
                hint='padding="full"',
            )
        # y[t] reads stretched[t + start + j]: as an adjoint with the turned kernel, t = i*s + (k-1-j) - pad_lo
        pad_lo = k - 1 - k // 2 + move
        axes.append(StridedAxis(size=out, kernel=k, stride=si, pad_lo=pad_lo, pad_hi=(n - 1) * si + k - out - pad_lo, out=n))
    return ConvPlan(
        dtype=require_dtype(dtype, DTYPES, CONVOLUTION),
        axes=tuple(axes),
        in_channels=channels(shape, place),
        out_channels=out_channels,
        direction=Direction.TRANSPOSED,
        layout=place,
        groups=whole(groups, "groups", 1),
        flip=True,
        accumulate=accumulator(dtype),
    )


def _windows(
    shape: Shape,
    layout: str,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    offset: Any,
    size: Any,
    align: str,
    remainder: Any,
) -> tuple[Layout, tuple[StridedAxis, ...]]:
    """Axes from an offset and destination size where given, else from the policy."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    k, d = per_axis(kernel, rank, "kernel"), per_axis(dilation, rank, "dilation")
    s = k if stride is None else per_axis(stride, rank, "stride")
    if not isinstance(padding, str):
        raise ArgumentError(
            "MPS has no padding amounts",
            given={"padding": padding},
            because=POOLING,
            hint='padding="same", "valid" or "full", or offset=',
        )
    growth = GROWTH[choice(padding, "padding", tuple(GROWTH))]
    choice(align, "align", ("centred", *CORNERS))
    corners = (remainder,) * rank if isinstance(remainder, str) else remainder
    if not isinstance(corners, tuple | list) or len(corners) != rank:
        raise ArgumentError(
            "remainder needs one corner per axis",
            given={"remainder": remainder},
            required=f"one of {', '.join(map(repr, CORNERS))}, or {rank} of them",
            hint='remainder="top_left"',
        )
    offsets = None if offset is None else per_axis(offset, rank, "offset", None)
    wanted = None if size is None else per_axis(size, rank, "size")
    axes = []
    for i, (n, ki, di, si) in enumerate(zip(sizes, k, d, s, strict=True)):
        reach = _sizes.reach(ki, di)
        out = -(-(n + growth * (reach - 1)) // si) if wanted is None else wanted[i]
        if out < 1:
            raise ArgumentError(
                "the kernel is larger than the input",
                given={"kernel": kernel},
                required=f"size >= 1: {out}",
                because=POOLING,
                hint='padding="same"',
            )
        extra = (out - 1) * si + reach - n
        if offsets is not None:
            pad_lo = reach // 2 - offsets[i]
        elif align == "centred":
            odd = 1 if choice(corners[i], "remainder", CORNERS) == "top_left" else 0
            pad_lo = _half(extra + odd)
        else:
            pad_lo = 0 if align == "top_left" else extra
        axes.append(StridedAxis(size=n, kernel=ki, stride=si, dilation=di, pad_lo=pad_lo, pad_hi=extra - pad_lo, out=out))
    return place, tuple(axes)


def _half(value: int) -> int:
    """value / 2 as C divides: toward zero."""
    return value // 2 if value >= 0 else -(-value // 2)


def _four_per_group(inner: int, outer: int, groups: int) -> None:
    if groups > 1 and (inner // groups % 4 or outer // groups % 4):
        raise ArgumentError(
            "MPS groups hold channels in multiples of four",
            given={"groups": groups, "channels": (inner, outer)},
            required=f"channels / groups % 4 == 0: {inner // groups} and {outer // groups}",
            because=CONVOLUTION,
            hint="groups=1",
        )


shares_arguments(min_pool, max_pool)
