"""ONNX Runtime's CPU kernels, by release: where they differ from ONNX's text, and from one another.

`version` is a release, "1.16" to "1.32". Each change below was seen by running the releases
on both sides of it (17 of them; tests/golden/semantics has the answers of seven). Forward only: ties follow the first tap.
Source: onnxruntime/core/providers/cpu/nn/{pool_attributes,pool_functors,conv_attributes,conv_transpose_attributes}.h, Unpool.cc.

    1.21  ceil_mode drops windows that start in the end padding; AveragePool from opset 19 does not count the overhang
    1.21-1.24  AveragePool from opset 19, two and three axes: wrong end pads
    1.24  ConvInteger of int8
    1.27  ConvTranspose refuses zeros beyond the scatter, by output_padding or output_shape, of a stride or more
    1.28  negative pads are refused (1.27: cropped)
    1.29  AveragePool before opset 19 under ceil_mode does not count the overhang; MaxPool starts from the first tap
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from ..errors import ArgumentError
from ..plan import ConvPlan, IntegerConvPlan, PoolPlan, Shape, UnpoolPlan
from ..plan.kinds import Divisor, Empty, IndexBase, Nan, Reduce, Start, Tie, Unpicked
from . import onnx
from ._arguments import accumulator, pads, per_axis, require_dtype, whole
from ._onnx import flag, norm_order, opset_of, require_opset
from ._onnxruntime import (
    CONV,
    LATEST,
    TRANSPOSE,
    below_a_stride,
    beyond,
    no_crop_in_a_window,
    pads_of_release,
    release_of,
    same_transposed,
    windows,
    wrong_end_pads,
)

SINGLE = frozenset({"float16", "float32"})
"""What most operators compute; float16 through float32."""


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
    outputs: int = 1,
    opset: int = onnx.LATEST,
    version: str = LATEST,
) -> PoolPlan:
    """Strict `>`. `outputs=2` is the node with Indices: from 1.29 on it starts at the first tap, before at the lowest
    finite value, with an index outside the input where nothing won (-1 here). The value alone, float32 and undilated,
    starts at -FLT_MAX in every release, and what a NaN does there depends on the CPU's lanes: not followed here."""
    release = release_of(version)
    alone = whole(outputs, "outputs", 1) == 1 and dtype == "float32"
    place, axes, _ = windows(shape, layout, kernel, stride, padding, dilation, ceil_mode, release, dense_kernel=alone)
    column = flag(storage_order, "storage_order")
    require_opset(
        "MaxPool",
        opset,
        dtype,
        SINGLE | {"float64", "int8", "uint8"},
        storage_order=column,
        Indices=outputs > 1,
        ceil_mode=bool(ceil_mode),
        dilations=any(axis.dilation > 1 for axis in axes),
    )
    start = Start.FIRST_TAP
    if release < (1, 29) or (alone and all(axis.dilation == 1 for axis in axes)):
        # float16 goes through float32, whose lowest value becomes -inf on the way back
        start = Start.INFINITY if dtype == "float16" else Start.FINITE
    return PoolPlan(
        dtype=dtype,
        axes=axes,
        reduce=Reduce.MAX,
        layout=place,
        start=start,
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
    opset: int = onnx.LATEST,
    version: str = LATEST,
) -> PoolPlan:
    """As ONNX's, except: before 1.29 (1.21 from opset 19 on) count_include_pad divides by the whole kernel, overhang too;
    1.21 to 1.24, opset 19 on, take wrong end pads for all axes but the last. A window of padding alone is 0/0 up to
    opset 18 and 0 from 19 on."""
    release = release_of(version)
    include = flag(count_include_pad, "count_include_pad")
    dense = opset_of(opset) < 19 and not (release >= (1, 29) and include and ceil_mode)
    place, axes, both = windows(shape, layout, kernel, stride, padding, dilation, ceil_mode, release, dense_kernel=dense)
    require_opset(
        "AveragePool",
        opset,
        dtype,
        SINGLE,
        count_include_pad=include,
        ceil_mode=bool(ceil_mode),
        dilations=any(axis.dilation > 1 for axis in axes),
    )
    no_crop_in_a_window(axes, every=opset >= 19 and (1, 21) <= release < (1, 25))
    divisor, seen = Divisor.PADDED if include else Divisor.VALID, None
    if include and (dense or release < (1, 21)):
        divisor = Divisor.KERNEL
    elif include and release < (1, 25) and len(axes) > 1:
        seen = wrong_end_pads(both)
    return PoolPlan(
        dtype=dtype,
        axes=axes,
        reduce=Reduce.AVERAGE,
        layout=place,
        divisor=divisor,
        divisor_pad=seen,
        empty=Empty.ZERO if opset >= 19 else Empty.QUOTIENT,
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
    opset: int = onnx.LATEST,
    version: str = LATEST,
) -> PoolPlan:
    """As ONNX's, with the powers formed as written: those of huge values overflow. No kernel for opset 1."""
    release = release_of(version)
    place, axes, _ = windows(shape, layout, kernel, stride, padding, dilation, ceil_mode, release, dense_kernel=False)
    dilated = any(axis.dilation > 1 for axis in axes)
    require_opset("LpPool", opset, dtype, SINGLE, ceil_mode=bool(ceil_mode), dilations=dilated)
    if opset < 2:
        raise ArgumentError(
            "ONNX Runtime has no LpPool of opset 1",
            given={"opset": opset},
            required=f"opset >= 2: {opset}",
            because="ONNX Runtime 1.20 to 1.32, run",
            hint="opset=2",
        )
    return PoolPlan(
        dtype=dtype,
        axes=axes,
        reduce=Reduce.LP,
        layout=place,
        p=norm_order(p, opset),
        lp_scaled=False,
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
    opset: int = onnx.LATEST,
    version: str = LATEST,
) -> UnpoolPlan:
    """Indices count over the whole output, of `output_size` where it is given, which may have any form with no fewer
    places than s*(n-1) + k - pads. Of two values with one index the later stays."""
    release_of(version)
    usual = onnx.max_unpool(shape, dtype, kernel=kernel, stride=stride, padding=padding, layout=layout, opset=opset)
    require_dtype(dtype, SINGLE, "ONNX Runtime, core/providers/cpu/nn/Unpool.cc")
    out = usual.out if output_size is None else per_axis(output_size, len(usual.out), "output_size")
    if math.prod(out) < math.prod(usual.out):
        raise ArgumentError(
            "output_size has fewer places than the default",
            given={"output_size": output_size},
            required=f"places >= those of s*(n-1) + k - pads, {usual.out}: {math.prod(out)} >= {math.prod(usual.out)}",
            because="ONNX Runtime, core/providers/cpu/nn/Unpool.cc",
            hint=f"output_size={usual.out}",
        )
    return UnpoolPlan(dtype=dtype, size=usual.size, out=out, layout=usual.layout, index_base=IndexBase.TENSOR)


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
    opset: int = onnx.LATEST,
    version: str = LATEST,
) -> ConvPlan:
    """As ONNX's; dilation with SAME_* is refused, and from 1.28 on negative pads, which cropped before."""
    release = release_of(version)
    plan = onnx.conv(
        shape,
        w_shape,
        require_dtype(dtype, SINGLE, CONV),
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        layout=layout,
        opset=opset,
    )
    if str(padding).startswith("SAME") and any(axis.dilation > 1 for axis in plan.axes):
        raise ArgumentError(
            "ONNX Runtime has no dilation with SAME padding",
            given={"dilation": dilation, "padding": padding},
            because=CONV,
            hint='dilation=1, or rules="onnx"',
        )
    pads_of_release(tuple((axis.pad_lo, axis.pad_hi) for axis in plan.axes), release, CONV)
    return plan


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
    opset: int = onnx.LATEST,
    version: str = LATEST,
) -> IntegerConvPlan:
    """ConvInteger of any pairing from 1.24 on, before of uint8 alone; QLinearConv of uint8 with either kind of weights to
    uint8 and of int8 with int8 to int8. Dilation with SAME and negative pads as `conv`."""
    release = release_of(version)
    conv(shape, w_shape, stride=stride, padding=padding, dilation=dilation, groups=groups, layout=layout, version=version)
    kinds = tuple(map(str, (dtype, w_dtype, y_dtype)))
    scaled = kinds in {("uint8", "uint8", "uint8"), ("uint8", "int8", "uint8"), ("int8", "int8", "int8")}
    summed = y_dtype == "int32" and (release >= (1, 24) or kinds[:2] == ("uint8", "uint8"))
    if not scaled and not summed:
        raise ArgumentError(
            "ONNX Runtime has no kernel for these types",
            given={"dtype": dtype, "w_dtype": w_dtype, "y_dtype": y_dtype, "version": version},
            because="ONNX Runtime 1.20 to 1.32, run",
            hint='rules="onnx"',
        )
    return onnx.conv_integer(
        shape,
        w_shape,
        dtype,
        w_dtype=w_dtype,
        y_dtype=y_dtype,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        layout=layout,
        opset=opset,
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
    opset: int = onnx.LATEST,
    version: str = LATEST,
) -> ConvPlan:
    """As ONNX's. From 1.27 on output_padding, and what output_shape adds to the scatter, stay below the stride;
    before, more gave zeros along one axis (as here) and arbitrary numbers along two or three."""
    release = release_of(version)
    plan = onnx.conv_transpose(
        shape,
        w_shape,
        require_dtype(dtype, SINGLE, TRANSPOSE),
        stride=stride,
        padding=padding,
        output_padding=output_padding,
        dilation=dilation,
        groups=groups,
        layout=layout,
        output_shape=output_shape,
        opset=opset,
    )
    if str(padding).startswith("SAME") and output_shape is None:
        plan = replace(plan, axes=same_transposed(plan, padding, output_padding))
    if not isinstance(padding, str):
        pads_of_release(pads(padding, len(plan.axes), minimum=None), release, TRANSPOSE)
    if release >= (1, 27):
        extra = per_axis(output_padding, len(plan.axes), "output_padding", 0)
        if output_shape is not None:
            extra = tuple(max(more, beyond(axis)) for more, axis in zip(extra, plan.axes, strict=True))
        below_a_stride(extra, plan.axes)
    return plan
