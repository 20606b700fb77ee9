"""ONNX Runtime's CPU kernels, by release: where they differ from ONNX's text, and from one another.

`version` is a release, "1.16" to "1.32"; later ones are taken as 1.32. Each change below was seen by running the releases
on both sides of it (17 of them; tests/golden/semantics has the answers of seven). Forward only: ties follow the first tap.
Source: onnxruntime/core/providers/cpu/nn/{pool_attributes,pool_functors,conv_attributes,conv_transpose_attributes}.h, Unpool.cc.

    1.21  ceil_mode drops windows that start in the end padding; AveragePool from opset 19 does not count the overhang
    1.21-1.24  AveragePool from opset 19, two and three axes: wrong end pads
    1.27  ConvTranspose refuses zeros beyond the scatter, by output_padding or output_shape, of a stride or more
    1.28  negative pads are refused (1.27: cropped)
    1.29  AveragePool before opset 19 under ceil_mode does not count the overhang; MaxPool starts from the first tap
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from ..errors import ArgumentError
from ..plan import ConvPlan, PoolPlan, Shape, StridedAxis, UnpoolPlan
from ..plan.base import axis_names
from ..plan.kinds import Divisor, Empty, IndexBase, Layout, Nan, Reduce, Start, Tie, Unpicked
from . import _sizes, onnx
from ._arguments import Pads, PerAxis, accumulator, channels, pads, per_axis, require_dtype, spatial, whole
from ._onnx import auto_pads, flag, norm_order, pads_below_kernel, require_opset, transposed_axes

LATEST = "1.32"
POOL = "ONNX Runtime, core/providers/cpu/nn/pool_attributes.h"
CONV = "ONNX Runtime, core/providers/cpu/nn/conv_attributes.h"
TRANSPOSE = "ONNX Runtime, core/providers/cpu/nn/conv_transpose_attributes.h"
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
    release = _release(version)
    alone = whole(outputs, "outputs", 1) == 1 and dtype == "float32"
    place, axes, _ = _windows(shape, layout, kernel, stride, padding, dilation, ceil_mode, release, dense_kernel=alone)
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
    release = _release(version)
    include = flag(count_include_pad, "count_include_pad")
    dense = opset < 19 and not (release >= (1, 29) and include and ceil_mode)
    place, axes, both = _windows(shape, layout, kernel, stride, padding, dilation, ceil_mode, release, dense_kernel=dense)
    require_opset(
        "AveragePool",
        opset,
        dtype,
        SINGLE,
        count_include_pad=include,
        ceil_mode=bool(ceil_mode),
        dilations=any(axis.dilation > 1 for axis in axes),
    )
    _no_crop_in_a_window(axes, every=opset >= 19 and (1, 21) <= release < (1, 25))
    divisor, seen = Divisor.PADDED if include else Divisor.VALID, None
    if include and (dense or release < (1, 21)):
        divisor = Divisor.KERNEL
    elif include and release < (1, 25) and len(axes) > 1:
        seen = _wrong_end_pads(both)
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
    release = _release(version)
    place, axes, _ = _windows(shape, layout, kernel, stride, padding, dilation, ceil_mode, release, dense_kernel=False)
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
    _release(version)
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
    release = _release(version)
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
    _pads_of_release(tuple((axis.pad_lo, axis.pad_hi) for axis in plan.axes), release, CONV)
    return plan


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
    release = _release(version)
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
        plan = replace(plan, axes=_same_transposed(plan, padding, output_padding))
    if not isinstance(padding, str):
        _pads_of_release(pads(padding, len(plan.axes), minimum=None), release, TRANSPOSE)
    if release >= (1, 27):
        extra = per_axis(output_padding, len(plan.axes), "output_padding", 0)
        if output_shape is not None:
            extra = tuple(max(more, _beyond(axis)) for more, axis in zip(extra, plan.axes, strict=True))
        _below_a_stride(extra, plan.axes)
    return plan


def _windows(
    shape: Shape,
    layout: str,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: Any,
    release: tuple[int, int],
    *,
    dense_kernel: bool,
) -> tuple[Layout, tuple[StridedAxis, ...], Pads]:
    """Where the text's sizes are not followed: ceil_mode holds for auto_pad too; SAME's pads are those of the undilated
    kernel, negative ones crop (from 1.29 on the dense kernel refuses them); the division truncates as in C, so that a
    kernel larger than the input by less than a stride has one window."""
    place, sizes = spatial(shape, layout)
    if channels(shape, place) < 1:
        raise ArgumentError("x has no channels", required="channels >= 1: 0", because=POOL)
    rank = len(sizes)
    k, d = per_axis(kernel, rank, "kernel"), per_axis(dilation, rank, "dilation")
    s = k if stride is None else per_axis(stride, rank, "stride")
    word, both = auto_pads(padding, sizes, k, s)
    if word.startswith("SAME"):
        both = tuple(_same(n, ki, si, upper=word == "SAME_UPPER") for n, ki, si in zip(sizes, k, s, strict=True))
    if word == "NOTSET" or (dense_kernel and max(d) == 1 and release >= (1, 29)):
        _pads_of_release(both, release, POOL)
    if word == "NOTSET":
        pads_below_kernel(both, k, POOL)
    ups = flag(ceil_mode, "ceil_mode")
    size = _sizes.ceil if ups else _sizes.truncated
    outs = tuple(size(n, lo + hi, _sizes.reach(ki, di), si) for n, (lo, hi), ki, di, si in zip(sizes, both, k, d, s, strict=True))
    if ups and release >= (1, 21):
        outs = tuple(_sizes.clipped(out, n, lo, si) for out, n, (lo, _), si in zip(outs, sizes, both, s, strict=True))
    return place, _sizes.strided_axes(sizes, k, s, d, both, outs, because=POOL), both


def _same(n: int, k: int, s: int, *, upper: bool) -> tuple[int, int]:
    """SAME's pads, halved as C does, which are negative where windows leave gaps."""
    total = (-(-n // s) - 1) * s + k - n
    before = int((total if upper else total + 1) / 2)
    return before, total - before


def _release(version: str) -> tuple[int, int]:
    """(major, minor) of a release."""
    try:
        major, minor = (int(part) for part in str(version).split(".")[:2])
    except ValueError:
        raise ArgumentError("this is not a release", given={"version": version}, hint=f'version="{LATEST}"') from None
    if (major, minor) < (1, 16):
        raise ArgumentError(
            "releases before 1.16 were not run",
            given={"version": version},
            required=f"version >= 1.16: {version}",
            hint='version="1.16"',
        )
    return major, minor


def _pads_of_release(both: Pads, release: tuple[int, int], because: str) -> None:
    """Negative pads crop up to 1.27."""
    if release >= (1, 28) and any(min(pair) < 0 for pair in both):
        raise ArgumentError(
            "a pad is negative",
            given={"padding": both},
            required="pads >= 0",
            because=because,
            hint='version="1.27", or rules="onnx"',
        )


def _wrong_end_pads(both: Pads) -> Pads:
    """1.21 to 1.24 read pads [x1_begin, x2_begin, ..., x1_end, ...] as if begins and ends took turns, for the ends alone."""
    flat = [lo for lo, _ in both] + [hi for _, hi in both]
    return tuple((lo, flat[2 * i + 1]) for i, (lo, _) in enumerate(both))


def _same_transposed(plan: ConvPlan, padding: str, output_padding: Any) -> tuple[StridedAxis, ...]:
    """SAME crops to n*s but adds no zeros where the scatter is smaller."""
    strides, dilations = (tuple(getattr(axis, name) for axis in plan.axes) for name in ("stride", "dilation"))
    sizes, kernel = plan.input_sizes, tuple(axis.kernel for axis in plan.axes)
    return transposed_axes(sizes, kernel, strides, dilations, padding, output_padding, None, same_stretches=False)


def _beyond(axis: StridedAxis) -> int:
    """How far the output of a transposed convolution that crops nothing reaches past the scatter."""
    return axis.size - (axis.out - 1) * axis.stride - axis.reach if axis.pad_lo <= 0 else 0


def _no_crop_in_a_window(axes: tuple[StridedAxis, ...], *, every: bool) -> None:
    """SAME's negative end pads, and a dilated last window that reaches over them: its average is not followed here, nor,
    with `every`, that of any window beside negative pads (1.21 to 1.24 mistake them for others)."""
    negative = any(min(axis.pad_lo, axis.pad_hi) < 0 for axis in axes)
    if any(axis.pad_hi < 0 < axis.overhang for axis in axes) or (every and negative):
        raise ArgumentError(
            "a window reaches into pixels that a negative end pad crops",
            given={"padding": tuple((axis.pad_lo, axis.pad_hi) for axis in axes)},
            because=f"{POOL}: averages leave them out, maxima do not",
            hint="explicit pads",
        )


def _below_a_stride(extra: PerAxis, axes: tuple[StridedAxis, ...]) -> None:
    """From 1.27 on the input's size must follow from the output's: zeros beyond the scatter stay below a stride."""
    for i, (more, axis) in enumerate(zip(extra, axes, strict=True)):
        if more >= axis.stride:
            raise ArgumentError(
                "the output goes beyond the scatter by a stride or more",
                given={"output_padding": extra, "stride": tuple(a.stride for a in axes)},
                required=f"output_padding < stride, on axis {axis_names(len(axes))[i]}: {more} < {axis.stride}",
                because=TRANSPOSE,
                hint='version="1.26", or rules="onnx"',
            )
