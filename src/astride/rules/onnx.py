"""ONNX: the rules of its text, by opset, for the pooling, unpooling and convolution operators.

Source: onnx 1.23.2, onnx/defs/nn/defs.cc and old.cc (the text), confirmed by onnx's own node tests (tests/live) and, where
the text is silent, by ONNX Runtime 1.32, run. `opset` is the default domain's version; an attribute or type that an opset
lacks is refused. ONNX has no gradients: ties follow the first tap, as ONNX Runtime's Indices do. `padding` is an int, one per
axis, (begin, end) pairs, or auto_pad's word ("VALID", "SAME_UPPER", "SAME_LOWER"). The text checks no pad against the kernel.
"""

from __future__ import annotations

from typing import Any

from ..plan import ConvPlan, DeformPlan, IntegerConvPlan, PoolPlan, Shape, UnpoolPlan
from ..plan.kinds import Direction, Divisor, Empty, IndexBase, Nan, Reduce, Start, Tie, Unpicked
from . import _sizes
from ._arguments import accumulator, channels, pads, per_axis, spatial, whole
from ._deform import deformed
from ._integer import quantised
from ._onnx import FLOATS, TEXT, auto_pads, flag, norm_order, require_opset, transposed_axes, windows
from ._weights import transposed_weights_of, weights_of

LATEST = 22
"""The last opset at which one of these operators changed."""


def max_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    layout: str = "channels_first",
    ceil_mode: int = 0,
    storage_order: int = 0,
    opset: int = LATEST,
) -> PoolPlan:
    """Starts from the first tap, `>` replaces it (the text says nothing of NaN; this is ONNX Runtime from 1.29 on with
    Indices). Indices count over the whole tensor; storage_order=1: column-major inside each plane."""
    place, axes = windows(shape, layout, kernel, stride, padding, dilation, ceil_mode)
    column = flag(storage_order, "storage_order")
    require_opset(
        "MaxPool",
        opset,
        dtype,
        FLOATS | {"int8", "uint8"},
        storage_order=column,
        ceil_mode=bool(ceil_mode),
        dilations=any(axis.dilation > 1 for axis in axes),
    )
    return PoolPlan(
        dtype=dtype,
        axes=axes,
        reduce=Reduce.MAX,
        layout=place,
        start=Start.FIRST_TAP,
        nan=Nan.COMPARED,
        tie=Tie.FIRST,
        unpicked=Unpicked.NOWHERE,
        index_base=IndexBase.TENSOR_COLUMN if column else IndexBase.TENSOR,
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
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    opset: int = LATEST,
) -> PoolPlan:
    """Divides by the real taps, or with count_include_pad by those inside the padded input too, the overhang not counted.
    Before opset 7 there is no such attribute, and padding is not counted (unverified: the text does not say)."""
    place, axes = windows(shape, layout, kernel, stride, padding, dilation, ceil_mode)
    include = flag(count_include_pad, "count_include_pad")
    require_opset(
        "AveragePool",
        opset,
        dtype,
        FLOATS,
        count_include_pad=include,
        ceil_mode=bool(ceil_mode),
        dilations=any(axis.dilation > 1 for axis in axes),
    )
    return PoolPlan(
        dtype=dtype,
        axes=axes,
        reduce=Reduce.AVERAGE,
        layout=place,
        divisor=Divisor.PADDED if include else Divisor.VALID,
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
    padding: Any = 0,
    dilation: Any = 1,
    layout: str = "channels_first",
    ceil_mode: int = 0,
    opset: int = LATEST,
) -> PoolPlan:
    """(sum |x|^p)^(1/p); pads and overhang add nothing. p is a whole number from opset 2 on, any positive one in opset 1."""
    place, axes = windows(shape, layout, kernel, stride, padding, dilation, ceil_mode)
    dilated = any(axis.dilation > 1 for axis in axes)
    require_opset("LpPool", opset, dtype, FLOATS, ceil_mode=bool(ceil_mode), dilations=dilated)
    return PoolPlan(
        dtype=dtype,
        axes=axes,
        reduce=Reduce.LP,
        layout=place,
        p=norm_order(p, opset),
        empty=Empty.ZERO,
        accumulate=accumulator(dtype),
    )


def max_unpool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
    layout: str = "channels_first",
    opset: int = LATEST,
) -> UnpoolPlan:
    """s*(n-1) + k - pads. Indices count over the whole tensor of that size, also where `output_size` (output_shape's
    spatial part) is larger: each value keeps its row and column, as onnx's own test has it. ONNX Runtime reads the
    index in the larger tensor instead."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    k = per_axis(kernel, rank, "kernel")
    s = k if stride is None else per_axis(stride, rank, "stride")
    both = pads(padding, rank, minimum=None)
    inferred = tuple((n - 1) * si + ki - lo - hi for n, si, ki, (lo, hi) in zip(sizes, s, k, both, strict=True))
    require_opset("MaxUnpool", opset, dtype, FLOATS)
    return UnpoolPlan(
        dtype=dtype,
        size=sizes,
        out=inferred if output_size is None else per_axis(output_size, rank, "output_size"),
        layout=place,
        index_base=IndexBase.TENSOR,
        index_size=None if output_size is None else inferred,
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
    opset: int = LATEST,
) -> ConvPlan:
    """Zeros outside; floor, or SAME's ceil(n/s) with the odd pixel at the end (UPPER) or the start (LOWER)."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    kernel, out_channels = weights_of(w_shape, rank, channels(shape, place), groups)
    s, d = per_axis(stride, rank, "stride"), per_axis(dilation, rank, "dilation")
    reaches = tuple(_sizes.reach(k, di) for k, di in zip(kernel, d, strict=True))
    _, both = auto_pads(padding, sizes, reaches, s)
    outs = tuple(_sizes.floor(n, lo + hi, r, si) for n, (lo, hi), r, si in zip(sizes, both, reaches, s, strict=True))
    return ConvPlan(
        dtype=require_opset("Conv", opset, dtype, FLOATS),
        axes=_sizes.strided_axes(sizes, kernel, s, d, both, outs, because=TEXT),
        in_channels=channels(shape, place),
        out_channels=out_channels,
        layout=place,
        groups=whole(groups, "groups", 1),
        accumulate=accumulator(dtype),
    )


def conv_integer(
    shape: Shape,
    w_shape: Shape,
    dtype: str = "uint8",
    *,
    w_dtype: str = "uint8",
    y_dtype: str = "int32",
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    layout: str = "channels_first",
    opset: int = LATEST,
) -> IntegerConvPlan:
    """ConvInteger (y_dtype int32) and QLinearConv (int8 or uint8), since opset 10, in the windows of Conv."""
    require_opset("ConvInteger" if y_dtype == "int32" else "QLinearConv", opset, dtype, frozenset({"int8", "uint8"}))
    plan = conv(shape, w_shape, stride=stride, padding=padding, dilation=dilation, groups=groups, layout=layout)
    return quantised(plan, dtype, w_dtype, y_dtype)


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
    opset: int = LATEST,
) -> DeformPlan:
    """DeformConv, since opset 19, in the windows of Conv; it has no auto_pad."""
    both = pads(padding, len(shape) - 2, minimum=None)
    require_opset("DeformConv", opset, dtype, FLOATS)
    plan = conv(shape, w_shape, dtype, stride=stride, padding=both, dilation=dilation, groups=groups, layout=layout, opset=opset)
    return deformed(plan, offset_groups)


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
    opset: int = LATEST,
) -> ConvPlan:
    """s*(n-1) + output_padding + K - pads; SAME gives n*s (stated since opset 11, taken for opset 1 as well), output_shape
    what it says; then an odd crop is at the end for SAME_UPPER and at the start otherwise."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    kernel, out_channels = transposed_weights_of(w_shape, rank, channels(shape, place), groups)
    s, d = per_axis(stride, rank, "stride"), per_axis(dilation, rank, "dilation")
    return ConvPlan(
        dtype=require_opset("ConvTranspose", opset, dtype, FLOATS),
        axes=transposed_axes(sizes, kernel, s, d, padding, output_padding, output_shape),
        in_channels=channels(shape, place),
        out_channels=out_channels,
        direction=Direction.TRANSPOSED,
        layout=place,
        groups=whole(groups, "groups", 1),
        accumulate=accumulator(dtype),
    )
