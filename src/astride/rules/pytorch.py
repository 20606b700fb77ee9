"""PyTorch 2.13, CPU: the rules of torch.nn.functional's pooling, convolution and unpooling.

Source: aten/src/ATen/native/Pool.h, cpu/MaxPoolKernel.cpp, cpu/AvgPoolKernel.cpp, Convolution.cpp, MaxUnpooling.cpp and
torch/nn/functional.py; confirmed by running it (tests/golden/semantics, tests/live). Sizes, padding and refusals hold
per axis for one to three axes.
"""

from __future__ import annotations

import math
from typing import Any

from ..errors import ArgumentError
from ..plan import ConvPlan, FractionalPlan, PoolPlan, Shape, StridedAxis, UnpoolPlan
from ..plan.base import axis_names
from ..plan.kinds import Direction, Divisor, Edge, Empty, Layout, LpForm, LpScale, Nan, Reduce, Start, Tie, Unpicked
from . import _sizes
from ._arguments import (
    COMPLEX,
    FLOATS,
    Pads,
    PerAxis,
    accumulator,
    channels,
    choice,
    number,
    only_each,
    per_axis,
    require_dtype,
    spatial,
    symmetric,
    whole,
)
from ._sized import adaptive, fractional
from ._weights import transposed_weights_of, weights_of

POOL = "PyTorch 2.13, aten/src/ATen/native/Pool.h"
AVERAGE = "PyTorch 2.13, aten/src/ATen/native/cpu/AvgPoolKernel.cpp"
CONV = "PyTorch 2.13, aten/src/ATen/native/Convolution.cpp"
FRACTIONAL = "PyTorch 2.13, aten/src/ATen/native/FractionalMaxPool2d.cpp"
LP = "PyTorch 2.13, torch/nn/functional.py lp_pool"
WHOLE = frozenset({"uint8", "int8", "int16", "int32", "int64"})  # what its CPU kernels are built for
EDGES = {"zeros": Edge.SKIP, "reflect": Edge.MIRROR, "replicate": Edge.CLAMP, "circular": Edge.WRAP}


def max_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    layout: str = "channels_first",
    ceil_mode: bool = False,
) -> PoolPlan:
    """A NaN wins, the last of several; else the first greatest. Padding acts as -inf. (max_pool1d takes integers only where
    it is asked for indices.)"""
    place, axes = _windows(shape, layout, kernel, stride, padding, dilation, ceil_mode)
    return PoolPlan(
        dtype=require_dtype(dtype, FLOATS | WHOLE, POOL),
        axes=axes,
        reduce=Reduce.MAX,
        layout=place,
        start=Start.INFINITY,
        nan=Nan.PROPAGATED,
        tie=Tie.LAST_NAN,
        unpicked=Unpicked.FIRST_TAP,
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
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> PoolPlan:
    """Divides by the taps inside the padded input (overhang not counted), by the real ones, or by `divisor_override`. Of
    integers int64 alone is averaged, rounded toward zero; half types have no average in three dimensions."""
    only_each(dilation, "dilation", 1, "PyTorch's average pooling has none")
    place, axes = _windows(shape, layout, kernel, stride, padding, 1, ceil_mode)
    _fits_unpadded(axes)
    if divisor_override is not None:
        if len(axes) == 1:
            raise ArgumentError(
                "avg_pool1d has no divisor_override",
                given={"divisor_override": divisor_override},
                because=POOL,
                hint="scale the result",
            )
        whole(divisor_override, "divisor_override")
        divisor = Divisor.OVERRIDE
    else:
        divisor = Divisor.PADDED if count_include_pad else Divisor.VALID
    return PoolPlan(
        dtype=require_dtype(dtype, _averaged(len(axes)) | {"int64"}, AVERAGE),
        axes=axes,
        reduce=Reduce.AVERAGE,
        layout=place,
        divisor=divisor,
        divisor_override=divisor_override or 0,
        empty=Empty.QUOTIENT,
        accumulate=accumulator(dtype),
    )


def adaptive_pool(
    shape: Shape, dtype: str = "float32", *, output_size: Any, reduce: str = "average", layout: str = "channels_first"
) -> PoolPlan:
    """Windows [floor(i*n/o), ceil((i+1)*n/o)) (AdaptivePooling.h); NaN and ties as max_pool, no integers."""
    place, _ = spatial(shape, layout)
    if reduce == "max":
        _some_channels(shape, place)
    return adaptive(shape, dtype, output_size, reduce, layout, POOL, tie=Tie.LAST_NAN)


def fractional_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    layout: str = "channels_first",
) -> FractionalPlan:
    """Maxima at places a sample per plane decides. In 2-D the first of a plane's two samples is the width's
    (FractionalMaxPool2d.cpp), in 3-D they follow depth, height, width (FractionalMaxPool3d.cpp). PyTorch has no 1-D form."""
    order = (1, 0) if len(shape) == 4 else None
    plan = fractional(shape, dtype, kernel, output_size, output_ratio, layout, FRACTIONAL, sample_axes=order)
    for i, (n, k, o) in enumerate(zip(plan.size, plan.kernel, plan.out, strict=True)):
        if len(plan.size) == 3 and o + k - 1 >= n:
            raise ArgumentError(
                "the windows do not fit the input",
                given={"kernel": kernel, "output_size": plan.out},
                required=f"output_size + kernel - 1 < size, on axis {axis_names(3)[i]}: {o} + {k} - 1 < {n}",
                because="PyTorch 2.13, aten/src/ATen/native/FractionalMaxPool3d.cpp: a pixel more than in 2-D",
                hint=f"output_size={max(n - k, 1)} on axis {axis_names(3)[i]}",
            )
    return plan


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
    ceil_mode: bool = False,
) -> PoolPlan:
    """(sum x^p)^(1/p) without absolute values, formed as written: a negative sum gives NaN for p != 1, great powers
    overflow, partial windows of ceil mode are scaled up to whole ones, and what arrives at a pixel is 0 where the result is
    (times x^(p-1), which may be infinite). p = inf is the greatest magnitude."""
    only_each(padding, "padding", 0, LP)
    only_each(dilation, "dilation", 1, LP)
    place, axes = _windows(shape, layout, kernel, stride, 0, 1, ceil_mode)
    greatest = number(p, "p") == math.inf
    if not greatest:
        _fits_unpadded(axes)  # an average of powers
    magnitudes = FLOATS if len(axes) == 1 else FLOATS | WHOLE
    return PoolPlan(
        dtype=require_dtype(dtype, magnitudes if greatest else _averaged(len(axes)), LP),
        axes=axes,
        reduce=Reduce.LP,
        layout=place,
        p=number(p, "p"),
        lp_form=LpForm.SIGNED,
        lp_scale=LpScale.RESCALED,
        lp_scaled=False,
        tie=Tie.LAST_NAN if greatest else Tie.FIRST,
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
) -> UnpoolPlan:
    """(n-1)*stride + kernel - 2*padding, or an `output_size` strictly within one stride of it; the last duplicate stays."""
    place, sizes = spatial(shape, layout)
    _some_channels(shape, place)
    rank = len(sizes)
    k = per_axis(kernel, rank, "kernel")
    s = k if stride is None else per_axis(stride, rank, "stride")
    p = symmetric(padding, rank, "PyTorch")
    default = tuple((n - 1) * si + ki - 2 * pi for n, si, ki, pi in zip(sizes, s, k, p, strict=True))
    out = default
    if output_size is not None:
        if not hasattr(output_size, "__len__"):
            raise ArgumentError(
                "output_size is no row of sizes", given={"output_size": output_size}, hint=f"output_size={default}"
            )
        wanted = output_size[2:] if len(output_size) == rank + 2 else output_size
        out = per_axis(wanted, rank, "output_size", None)
        for i, (size, usual, si) in enumerate(zip(out, default, s, strict=True)):
            if not usual - si < size < usual + si:
                raise ArgumentError(
                    "output_size is further than a stride from the default",
                    given={"output_size": output_size},
                    required=f"{usual - si} < output_size < {usual + si}, on axis {axis_names(rank)[i]}: {size}",
                    because="PyTorch 2.13, torch/nn/functional.py _unpool_output_size",
                    hint=f"output_size={default}",
                )
    return UnpoolPlan(dtype=require_dtype(dtype, FLOATS, POOL), size=sizes, out=out, layout=place)


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
    padding_mode: str = "zeros",
) -> ConvPlan:
    """Zeros outside by default; "valid", or "same" at stride 1 with the odd pixel at the end. `padding_mode` as in nn.Conv2d.
    Integers wrap around; dilated ones are int64. (Of an input without channels torch makes an output without channels, which
    is like.pytorch's alone.)"""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    kernel, out_channels = weights_of(w_shape, rank, channels(shape, place), groups)
    filters_of(w_shape, groups)
    _some_channels(shape, place)
    s, d = per_axis(stride, rank, "stride"), per_axis(dilation, rank, "dilation")
    choice(padding_mode, "padding_mode", tuple(EDGES))
    pads = conv_pads(padding, kernel, s, d, rank)
    _check_edge(padding_mode, pads, sizes)
    outs = tuple(
        _sizes.floor(n, lo + hi, _sizes.reach(k, di), si)
        for n, (lo, hi), k, di, si in zip(sizes, pads, kernel, d, s, strict=True)
    )
    return ConvPlan(
        dtype=require_dtype(dtype, FLOATS | COMPLEX | (WHOLE if max(d) == 1 else {"int64"}), CONV),
        axes=_sizes.strided_axes(sizes, kernel, s, d, pads, outs, because=CONV),
        in_channels=channels(shape, place),
        out_channels=out_channels,
        layout=place,
        groups=whole(groups, "groups", 1),
        edge=EDGES[padding_mode],
        accumulate=accumulator(dtype),
        conjugate=dtype in COMPLEX,
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
) -> ConvPlan:
    """(n-1)*stride + (kernel-1)*dilation + 1 - 2*padding + output_padding, output_padding below stride or dilation. Of
    integers int64 alone, which wraps around."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    kernel, out_channels = transposed_weights_of(w_shape, rank, channels(shape, place), groups)
    filters_of(w_shape, groups)
    if out_channels < 1:
        raise ArgumentError("w has no output channels", given={"w.shape": tuple(w_shape)}, because=CONV)
    s, d = per_axis(stride, rank, "stride"), per_axis(dilation, rank, "dilation")
    extra = per_axis(output_padding, rank, "output_padding", 0)
    for i, (more, si, di) in enumerate(zip(extra, s, d, strict=True)):
        if more >= si and more >= di:
            raise ArgumentError(
                "output_padding is not smaller than stride or dilation",
                given={"output_padding": output_padding, "stride": stride, "dilation": dilation},
                required=f"output_padding < max(stride, dilation), on axis {axis_names(rank)[i]}: {more} < {max(si, di)}",
                because=CONV,
                hint=f"output_padding={max(si, di) - 1}",
            )
    p = symmetric(padding, rank, "PyTorch")
    return ConvPlan(
        dtype=require_dtype(dtype, FLOATS | COMPLEX | {"int64"}, CONV),
        axes=_sizes.transposed_axes(sizes, kernel, s, d, tuple((pi, pi) for pi in p), extra, because=CONV),
        in_channels=channels(shape, place),
        out_channels=out_channels,
        direction=Direction.TRANSPOSED,
        layout=place,
        groups=whole(groups, "groups", 1),
        accumulate=accumulator(dtype),
        conjugate=dtype in COMPLEX,
    )


def _windows(
    shape: Shape, layout: str, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple[Layout, tuple[StridedAxis, ...]]:
    """Floor, or ceil with the clip always; padding at most half the kernel (the check of 2.13 leaves dilation out)."""
    place, sizes = spatial(shape, layout)
    _some_channels(shape, place)
    rank = len(sizes)
    k, d = per_axis(kernel, rank, "kernel"), per_axis(dilation, rank, "dilation")
    s = k if stride is None else per_axis(stride, rank, "stride")
    p = symmetric(padding, rank, "PyTorch")
    for i, (pi, ki) in enumerate(zip(p, k, strict=True)):
        if pi > ki // 2:
            raise ArgumentError(
                "the padding is more than half the kernel",
                given={"padding": padding, "kernel": kernel},
                required=f"padding <= kernel // 2, on axis {axis_names(rank)[i]}: {pi} <= {ki // 2}",
                because=POOL,
                hint=f"padding={ki // 2}",
            )
    size = _sizes.ceil if ceil_mode else _sizes.floor
    outs = tuple(size(n, 2 * pi, _sizes.reach(ki, di), si) for n, pi, ki, di, si in zip(sizes, p, k, d, s, strict=True))
    if ceil_mode:
        outs = tuple(_sizes.clipped(out, n, pi, si) for out, n, pi, si in zip(outs, sizes, p, s, strict=True))
    return place, _sizes.strided_axes(sizes, k, s, d, tuple((pi, pi) for pi in p), outs, because=POOL)


def _some_channels(shape: Shape, place: Layout) -> None:
    if channels(shape, place) < 1:
        raise ArgumentError("x has no channels", required="channels >= 1: 0", because=POOL)


def _averaged(rank: int) -> frozenset[str]:
    """The floating types that have an average."""
    return frozenset({"float32", "float64"}) if rank == 3 else FLOATS


def filters_of(w_shape: Shape, groups: int) -> None:
    """Convolutions need a filter for every group, before anything else (check_shape_forward)."""
    if w_shape[0] < groups or w_shape[0] % groups:
        raise ArgumentError(
            "the first axis of w is not divisible by groups, or empty",
            given={"w.shape": tuple(w_shape), "groups": groups},
            required=f"w.shape[0] >= groups, a multiple: {w_shape[0]}, {groups}",
            because=CONV,
        )


def _fits_unpadded(axes: tuple[StridedAxis, ...]) -> None:
    """avg_pool3d alone refuses a kernel larger than the input without its padding, in ceil mode too."""
    for i, axis in enumerate(axes if len(axes) == 3 else ()):
        if axis.size < axis.kernel:
            raise ArgumentError(
                "the kernel is larger than the input",
                given={"kernel": tuple(a.kernel for a in axes)},
                required=f"kernel <= size, on axis {axis_names(3)[i]}: {axis.kernel} <= {axis.size}",
                because="PyTorch 2.13, avg_pool3d",
                hint=f"kernel={axis.size} on axis {axis_names(3)[i]}",
            )


def conv_pads(padding: Any, kernel: PerAxis, stride: PerAxis, dilation: PerAxis, rank: int) -> Pads:
    """Both pads of every axis; by words too."""
    if not isinstance(padding, str):
        return tuple((p, p) for p in symmetric(padding, rank, "PyTorch"))
    if choice(padding, "padding", ("valid", "same")) == "valid":
        return ((0, 0),) * rank
    if max(stride) > 1:
        raise ArgumentError(
            'padding="same" needs stride 1',
            given={"stride": stride},
            required=f"stride == 1: {max(stride)}",
            because=CONV,
            hint="stride=1",
        )
    totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
    return tuple((total // 2, total - total // 2) for total in totals)


def _check_edge(padding_mode: str, pads: Pads, sizes: PerAxis) -> None:
    """Reflection needs pixels to reflect, wrapping no more than one turn (torch.nn.functional.pad)."""
    for i, ((lo, hi), n) in enumerate(zip(pads, sizes, strict=True)):
        limit = {"reflect": n - 1, "circular": n}.get(padding_mode)
        if limit is not None and max(lo, hi) > limit:
            raise ArgumentError(
                f"{padding_mode} padding reaches past the input",
                given={"padding": (lo, hi)},
                required=f"padding <= {limit}, on axis {axis_names(len(sizes))[i]}: {max(lo, hi)}",
                because="PyTorch 2.13, torch.nn.functional.pad",
                hint=f"padding={limit}",
            )
