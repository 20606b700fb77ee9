"""ONNX Runtime's CPU kernels, by release: where they differ from ONNX's text, and from one another.

`version` is a release, "1.16" to "1.32"; later ones are taken as 1.32. Each change below was seen by running the releases
on both sides of it (17 of them; tests/golden/semantics has the answers of seven). Forward only: ties follow the first tap.
Source: onnxruntime/core/providers/cpu/nn/{pool_attributes,pool_functors,conv_attributes,conv_transpose_attributes}.h, Unpool.cc.

    1.21  ceil_mode drops windows that start in the end padding; AveragePool from opset 19 does not count the overhang
    1.21-1.24  AveragePool from opset 19, two and three axes: wrong end pads
    1.27  ConvTranspose refuses output_padding, and an output_shape beyond the scatter, of max(stride, dilation) or more
    1.28  negative pads are refused (1.27: cropped)
    1.29  AveragePool before opset 19 does not count the overhang; MaxPool starts from the first tap
"""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..plan import ConvPlan, PoolPlan, Shape, StridedAxis, UnpoolPlan
from ..plan.base import axis_names
from ..plan.kinds import Divisor, Empty, IndexBase, Layout, Nan, Reduce, Start, Tie, Unpicked
from . import onnx
from ._arguments import Pads, PerAxis, accumulator, pads, per_axis, require_dtype, whole
from ._onnx import flag, norm_order, pads_below_kernel, require_opset, windows

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
    place, axes, _ = _windows(shape, layout, kernel, stride, padding, dilation, ceil_mode, release)
    column, dilated = flag(storage_order, "storage_order"), any(axis.dilation > 1 for axis in axes)
    require_opset(
        "MaxPool",
        opset,
        dtype,
        SINGLE | {"float64", "int8", "uint8"},
        storage_order=column,
        Indices=whole(outputs, "outputs", 1) > 1,
        ceil_mode=bool(ceil_mode),
        dilations=dilated,
    )
    start = Start.FIRST_TAP
    if release < (1, 29) or (outputs == 1 and dtype == "float32" and not dilated):
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
    place, axes, both = _windows(shape, layout, kernel, stride, padding, dilation, ceil_mode, release)
    include = flag(count_include_pad, "count_include_pad")
    require_opset(
        "AveragePool",
        opset,
        dtype,
        SINGLE,
        count_include_pad=include,
        ceil_mode=bool(ceil_mode),
        dilations=any(axis.dilation > 1 for axis in axes),
    )
    divisor, seen = Divisor.PADDED if include else Divisor.VALID, None
    if include and (release < (1, 21) or (release < (1, 29) and opset < 19)):
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
    place, axes, _ = _windows(shape, layout, kernel, stride, padding, dilation, ceil_mode, release)
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
    """Indices count over the whole output, of `output_size` where it is given, which may not be smaller than
    s*(n-1) + k - pads. Of two values with one index the later stays."""
    _release(version)
    usual = onnx.max_unpool(shape, dtype, kernel=kernel, stride=stride, padding=padding, layout=layout, opset=opset)
    require_dtype(dtype, SINGLE, "ONNX Runtime, core/providers/cpu/nn/Unpool.cc")
    out = usual.out if output_size is None else per_axis(output_size, len(usual.out), "output_size")
    if any(given < least for given, least in zip(out, usual.out, strict=True)):
        raise ArgumentError(
            "output_size is smaller than the default",
            given={"output_size": output_size},
            required=f"output_size >= s*(n-1) + k - pads: {out} >= {usual.out}",
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
    """As ONNX's. From 1.27 on output_padding, and how far output_shape exceeds the scatter, stay below max(stride, dilation)."""
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
    if not isinstance(padding, str):
        _pads_of_release(pads(padding, len(plan.axes), minimum=None), release, TRANSPOSE)
    if release >= (1, 27):
        _below_a_step("output_padding", per_axis(output_padding, len(plan.axes), "output_padding", 0), plan.axes)
        if output_shape is not None:
            beyond = tuple(axis.size - (axis.out - 1) * axis.stride - axis.reach for axis in plan.axes)
            _below_a_step("output_shape", beyond, plan.axes)
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
) -> tuple[Layout, tuple[StridedAxis, ...], Pads]:
    """ceil_mode holds for auto_pad VALID too, where the text's formula gives the floor; pads below the kernel."""
    place, axes, both = windows(
        shape,
        layout,
        kernel,
        stride,
        padding,
        dilation,
        ceil_mode,
        clip=release >= (1, 21),
        valid_rounds_up=True,
        because=POOL,
    )
    if (shape[1] if place is Layout.CHANNELS_FIRST else shape[-1]) < 1:
        raise ArgumentError("x has no channels", required="channels >= 1: 0", because=POOL)
    _pads_of_release(both, release, POOL)
    if not isinstance(padding, str):
        pads_below_kernel(both, tuple(axis.kernel for axis in axes), POOL)
    return place, axes, both


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


def _below_a_step(name: str, values: PerAxis, axes: tuple[StridedAxis, ...]) -> None:
    """From 1.27 on: zeros beyond the scatter stay below a stride or a dilation."""
    for i, (value, axis) in enumerate(zip(values, axes, strict=True)):
        step = max(axis.stride, axis.dilation)
        if value >= step:
            raise ArgumentError(
                f"{name} goes beyond the scatter by a stride or more",
                given={name: value, "stride": axis.stride, "dilation": axis.dilation},
                required=f"{value} < max(stride, dilation), on axis {axis_names(len(axes))[i]}: {value} < {step}",
                because=TRANSPOSE,
                hint='version="1.26", or rules="onnx"',
            )
