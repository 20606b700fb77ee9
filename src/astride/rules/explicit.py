"""The default rules: no framework's, every choice an argument. What is not said is the plainest reading.

Sizes: `rounding` "floor" (default) or "ceil"; `clip` drops a last window that starts behind the input: "never",
"padded" (Caffe: only where some padding is given) or "always" (PyTorch, ONNX; the default, which matters for ceil only).
`padding` is an int, one per axis, (low, high) pairs, negative to crop, or "valid", "same" (odd pixel at the end), "same_lower",
"causal" (in front alone, as much as the kernel reaches back: no window sees what comes after the pixel it belongs to).
"""

from __future__ import annotations

import math
from typing import Any

from ..errors import ArgumentError
from ..plan import ConvPlan, DeformPlan, FractionalPlan, IntegerConvPlan, PoolPlan, Shape, StridedAxis, UnpoolPlan
from ..plan.kinds import (
    Direction,
    Divisor,
    Edge,
    Empty,
    IndexBase,
    LpForm,
    LpScale,
    Nan,
    Reduce,
    Start,
    Tie,
    Unpicked,
    ZeroWindow,
)
from . import _sizes
from ._arguments import (
    BOOL,
    FLOATS,
    INTEGERS,
    accumulator,
    as_minimum,
    channels,
    kind,
    number,
    pads,
    per_axis,
    require_dtype,
    shares_arguments,
    spatial,
    whole,
)
from ._deform import deformed
from ._explicit_windows import outs_of, tie_of, windows
from ._integer import quantised
from ._sized import adaptive, fractional
from ._weights import transposed_weights_of, weights_of

WHY = "explicit rules"


def max_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    layout: str = "channels_first",
    rounding: str = "floor",
    clip: str = "always",
    start: str = "infinity",
    nan: str = "propagated",
    tie: str | None = None,
    unpicked: str = "first_tap",
    edge: str = "skip",
    edge_value: float = 0.0,
    empty: str = "start",
    index_base: str = "plane",
) -> PoolPlan:
    """Greatest tap of each window; `start`, `nan`, `tie`, `unpicked`, `edge`, `empty`, `index_base` as in plan/kinds.

    Unless told otherwise a NaN wins, in the result and, the first of several, the gradient. `tie` follows `nan`: "first_nan"
    where a NaN wins, else "first".
    """
    place, axes = windows(shape, layout, kernel, stride, padding, dilation, rounding, clip)
    return PoolPlan(
        dtype=require_dtype(dtype, FLOATS | INTEGERS | BOOL, WHY),
        axes=axes,
        reduce=Reduce.MAX,
        layout=place,
        start=kind(Start, start, "start"),
        nan=kind(Nan, nan, "nan"),
        tie=kind(Tie, tie or tie_of(nan), "tie"),
        unpicked=kind(Unpicked, unpicked, "unpicked"),
        edge=kind(Edge, edge, "edge"),
        edge_value=number(edge_value, "edge_value"),
        empty=kind(Empty, empty, "empty"),
        index_base=kind(IndexBase, index_base, "index_base"),
        accumulate=accumulator(dtype),
    )


def min_pool(shape: Shape, dtype: str = "float32", **arguments: Any) -> PoolPlan:
    """Least tap of each window: the arguments of max_pool, start and order mirrored."""
    return as_minimum(max_pool(shape, dtype, **arguments))


def avg_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    layout: str = "channels_first",
    rounding: str = "floor",
    clip: str = "always",
    divisor: str | None = None,
    divisor_override: int | None = None,
    divisor_pad: Any = None,
    edge: str = "skip",
    edge_value: float = 0.0,
    empty: str = "zero",
) -> PoolPlan:
    """Mean of each window over the taps that take part, an edge mode's too, or over what `divisor` says (plan/kinds Divisor)."""
    divisor = divisor or ("valid" if edge == "skip" else "kernel")
    place, axes = windows(shape, layout, kernel, stride, padding, dilation, rounding, clip)
    return PoolPlan(
        dtype=require_dtype(dtype, FLOATS, WHY),
        axes=axes,
        reduce=Reduce.AVERAGE,
        layout=place,
        divisor=Divisor.OVERRIDE if divisor_override is not None else kind(Divisor, divisor, "divisor"),
        divisor_override=0 if divisor_override is None else whole(divisor_override, "divisor_override"),
        divisor_pad=None if divisor_pad is None else pads(divisor_pad, len(axes), "divisor_pad"),
        edge=kind(Edge, edge, "edge"),
        edge_value=number(edge_value, "edge_value"),
        empty=kind(Empty, empty, "empty"),
        accumulate=accumulator(dtype),
    )


def adaptive_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    output_size: Any,
    reduce: str = "average",
    layout: str = "channels_first",
    nan: str = "propagated",
    tie: str | None = None,
) -> PoolPlan:
    """Windows [floor(i*n/o), ceil((i+1)*n/o)); `reduce` "average" or "max", the latter's `nan`, `tie` as in plan/kinds."""
    return adaptive(
        shape,
        dtype,
        output_size,
        reduce,
        layout,
        WHY,
        nan=kind(Nan, nan, "nan"),
        tie=kind(Tie, tie or tie_of(nan), "tie"),
        extremes=FLOATS | INTEGERS | BOOL,
    )


def fractional_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    layout: str = "channels_first",
    tie: str = "first_nan",
) -> FractionalPlan:
    """Maxima of windows at random places; a plane's samples follow its axes in order. A NaN wins, of several the first or
    (`tie` "last_nan") the last."""
    return fractional(shape, dtype, kernel, output_size, output_ratio, layout, WHY, tie=kind(Tie, tie, "tie"))


def lp_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    p: float = 2.0,
    kernel: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    layout: str = "channels_first",
    rounding: str = "floor",
    clip: str = "always",
    form: str = "absolute",
    scale: str = "sum",
    scaled: bool = True,
    zero_window: str = "zero",
    edge: str = "skip",
    edge_value: float = 0.0,
    tie: str = "first_nan",
) -> PoolPlan:
    """(sum |x|^p)^(1/p) of each window, p > 0; p = inf is the greatest magnitude. Taps outside add nothing."""
    place, axes = windows(shape, layout, kernel, stride, padding, dilation, rounding, clip)
    picked = kind(Tie, tie, "tie")
    if math.isinf(number(p, "p")) and not picked.picks_one:
        raise ArgumentError("the infinity norm returns its gradient to one tap", given={"tie": tie}, hint='tie="first"')
    return PoolPlan(
        dtype=require_dtype(dtype, FLOATS, WHY),
        axes=axes,
        reduce=Reduce.LP,
        layout=place,
        p=number(p, "p"),
        tie=picked,
        lp_form=kind(LpForm, form, "form"),
        lp_scale=kind(LpScale, scale, "scale"),
        lp_scaled=bool(scaled),
        zero_window=kind(ZeroWindow, zero_window, "zero_window"),
        edge=kind(Edge, edge, "edge"),
        edge_value=number(edge_value, "edge_value"),
        empty=Empty.ZERO,
        accumulate=accumulator(dtype),
    )


def stochastic_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    layout: str = "channels_first",
    rounding: str = "floor",
    clip: str = "always",
    training: bool = False,
) -> PoolPlan:
    """Training: one tap drawn in proportion to its activation. Otherwise sum x^2 / sum x."""
    place, axes = windows(shape, layout, kernel, stride, padding, dilation, rounding, clip)
    return PoolPlan(
        dtype=require_dtype(dtype, FLOATS, WHY),
        axes=axes,
        reduce=Reduce.STOCHASTIC if training else Reduce.STOCHASTIC_MEAN,
        layout=place,
        empty=Empty.ZERO,
        threshold=accumulator(dtype),
        accumulate=accumulator(dtype),
    )


def max_unpool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any = None,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
    layout: str = "channels_first",
    index_base: str = "plane",
    index_size: Any = None,
) -> UnpoolPlan:
    """Values to the places their indices name, in planes of `output_size`, or of (n-1)*stride + kernel - pads.
    `index_size` is the size of the planes that indices count in, where that is another."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    if output_size is not None:
        out = per_axis(output_size, rank, "output_size")
    elif kernel is None:
        raise ArgumentError(
            "the output size is not given", given={"kernel": None, "output_size": None}, hint="kernel=, or output_size="
        )
    else:
        k = per_axis(kernel, rank, "kernel")
        s = k if stride is None else per_axis(stride, rank, "stride")
        out = tuple((n - 1) * si + ki - lo - hi for n, si, ki, (lo, hi) in zip(sizes, s, k, pads(padding, rank), strict=True))
    return UnpoolPlan(
        dtype=require_dtype(dtype, FLOATS | INTEGERS, WHY),
        size=sizes,
        out=out,
        layout=place,
        index_base=kind(IndexBase, index_base, "index_base"),
        index_size=None if index_size is None else per_axis(index_size, rank, "index_size"),
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
    batch_groups: int = 1,
    input_dilation: Any = 1,
    layout: str = "channels_first",
    edge: str = "skip",
    flip: bool = False,
) -> ConvPlan:
    """Cross-correlation with weights (O, I/g, *kernel); `flip` turns the kernel around (true convolution)."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    kernel, out_channels = weights_of(w_shape, rank, channels(shape, place), groups)
    s, d = per_axis(stride, rank, "stride"), per_axis(dilation, rank, "dilation")
    inner = per_axis(input_dilation, rank, "input_dilation")
    stretched = tuple((n - 1) * i + 1 for n, i in zip(sizes, inner, strict=True))
    outs, both = outs_of(stretched, kernel, s, d, padding, "floor", "never")
    _sizes.strided_axes(stretched, kernel, s, d, both, outs)
    axes = tuple(
        StridedAxis(size=n, kernel=k, stride=si, dilation=di, pad_lo=lo, pad_hi=hi, out=out, input_dilation=i)
        for n, k, si, di, (lo, hi), out, i in zip(sizes, kernel, s, d, both, outs, inner, strict=True)
    )
    return ConvPlan(
        dtype=require_dtype(dtype, FLOATS, WHY),
        axes=axes,
        in_channels=channels(shape, place),
        out_channels=out_channels,
        layout=place,
        groups=whole(groups, "groups", 1),
        batch_groups=whole(batch_groups, "batch_groups", 1),
        flip=bool(flip),
        edge=kind(Edge, edge, "edge"),
        accumulate=accumulator(dtype),
    )


def deform_conv(
    shape: Shape,
    w_shape: Shape,
    dtype: str = "float32",
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    offset_groups: int = 1,
    layout: str = "channels_first",
) -> DeformPlan:
    """The windows of `conv`, their taps moved by offsets that `offset_groups` groups of channels have of their own."""
    plan = conv(shape, w_shape, dtype, stride=stride, padding=padding, dilation=dilation, groups=groups, layout=layout)
    return deformed(plan, offset_groups)


def conv_integer(
    shape: Shape,
    w_shape: Shape,
    dtype: str = "uint8",
    *,
    w_dtype: str = "int8",
    y_dtype: str = "int32",
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    layout: str = "channels_first",
) -> IntegerConvPlan:
    """The windows of `conv` over int8 or uint8; `y_dtype` int32 for the sums, int8 or uint8 for scaled ones."""
    plan = conv(shape, w_shape, "float64", stride=stride, padding=padding, dilation=dilation, groups=groups, layout=layout)
    return quantised(plan, dtype, w_dtype, y_dtype)


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
    flip: bool = False,
) -> ConvPlan:
    """The adjoint of `conv`, weights (I, O/g, *kernel): (n-1)*stride + (kernel-1)*dilation + 1 - pads + output_padding."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    kernel, out_channels = transposed_weights_of(w_shape, rank, channels(shape, place), groups)
    axes = _sizes.transposed_axes(
        sizes,
        kernel,
        per_axis(stride, rank, "stride"),
        per_axis(dilation, rank, "dilation"),
        pads(padding, rank, minimum=None),
        per_axis(output_padding, rank, "output_padding", 0),
    )
    return ConvPlan(
        dtype=require_dtype(dtype, FLOATS, WHY),
        axes=axes,
        in_channels=channels(shape, place),
        out_channels=out_channels,
        direction=Direction.TRANSPOSED,
        layout=place,
        groups=whole(groups, "groups", 1),
        flip=bool(flip),
        accumulate=accumulator(dtype),
    )


shares_arguments(min_pool, max_pool)
