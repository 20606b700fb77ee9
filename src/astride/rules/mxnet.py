"""MXNet 1.9.1 on the CPU (its oneDNN build): the rules of Pooling, Convolution, Deconvolution and AdaptiveAvgPooling2D.

Source: src/operator/nn/pooling.cc, pool.h, mkldnn/mkldnn_pooling.cc, convolution.cc, deconvolution.cc, deconvolution-inl.h and
contrib/adaptive_avg_pooling.cc; confirmed by running it (tests/golden/semantics, docs/rules/mxnet.md), in float32. Unverified:
the padding that `target_shape` chooses was read only (the CPU build fails wherever it cuts something off); other builds
and GPUs. `stride` defaults to the kernel here, to 1 in MXNet and astride.like.mxnet.
"""

from __future__ import annotations

import math
from typing import Any

from ..errors import ArgumentError
from ..plan import ConvPlan, PoolPlan, Shape, StridedAxis
from ..plan.kinds import Direction, Divisor, Edge, Empty, Layout, LpForm, LpScale, Nan, Reduce, Start, Tie, Unpicked, ZeroWindow
from . import _sizes
from ._arguments import (
    Pads,
    PerAxis,
    accumulator,
    channels,
    choice,
    number,
    on_axis,
    only_each,
    per_axis,
    require_dtype,
    spatial,
    symmetric,
    whole,
)
from ._sized import adaptive
from ._weights import transposed_weights_of, weights_of

POOL = "MXNet 1.9.1, src/operator/nn/pooling.cc"
CONV = "MXNet 1.9.1, src/operator/nn/convolution.cc"
DECONV = "MXNet 1.9.1, src/operator/nn/deconvolution.cc"
DTYPES = frozenset({"float16", "float32", "float64"})
POWERS = (1, 2, 3)


def max_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    layout: str = "channels_first",
    pooling_convention: str = "valid",
) -> PoolPlan:
    """Strict `>` from the lowest finite value, first wins, NaN never does. The gradient of a window of -inf or NaN alone goes
    to its first place, and is lost where that is padding: so padding is said to take part, as -inf. "full" rounds up and
    keeps windows behind the input, which give the lowest finite value."""
    place, axes = _windows(shape, layout, kernel, stride, padding, dilation, pooling_convention)
    return PoolPlan(
        dtype=require_dtype(dtype, DTYPES, POOL),
        axes=axes,
        reduce=Reduce.MAX,
        layout=place,
        start=Start.FINITE,
        nan=Nan.COMPARED,
        tie=Tie.FIRST,
        unpicked=Unpicked.FIRST_TAP,
        edge=Edge.CONSTANT if any(axis.pad_lo for axis in axes) else Edge.SKIP,
        edge_value=-math.inf if any(axis.pad_lo for axis in axes) else 0.0,
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
    pooling_convention: str = "valid",
    count_include_pad: bool = True,
    pool_type: str = "avg",
) -> PoolPlan:
    """Divides by the taps inside the padded input (overhang not counted) or, without `count_include_pad`, by the real ones;
    0 for a window behind the input (in three axes MXNet gives NaN for some). `pool_type` "sum" divides by nothing and takes
    any padding."""
    summed = choice(pool_type, "pool_type", ("avg", "sum")) == "sum"
    place, axes = _windows(shape, layout, kernel, stride, padding, dilation, pooling_convention, any_padding=summed)
    if summed:
        divisor = Divisor.OVERRIDE
    else:
        divisor = Divisor.PADDED if count_include_pad else Divisor.VALID
    return PoolPlan(
        dtype=require_dtype(dtype, DTYPES, POOL),
        axes=axes,
        reduce=Reduce.AVERAGE,
        layout=place,
        divisor=divisor,
        divisor_override=int(divisor is Divisor.OVERRIDE),
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
    padding: Any = 0,
    dilation: Any = 1,
    layout: str = "channels_first",
    pooling_convention: str = "valid",
) -> PoolPlan:
    """(sum x^p)^(1/p) without absolute values, p one of 1, 2, 3: a signed sum, the norm, the real cube root of a signed sum
    of cubes. Padding, of any size, adds nothing; the gradient (x/y)^(p-1) is 0 where the result is, but 1 for p = 1.
    MXNet has no default for p."""
    if p not in POWERS:
        raise ArgumentError(
            "MXNet has three powers only",
            given={"p": p},
            required=f"one of {', '.join(map(str, POWERS))}: {p}",
            because="MXNet 1.9.1, src/operator/nn/pool_utils.h",
            hint='p=2, or rules="explicit" with form="signed_root"',
        )
    place, axes = _windows(shape, layout, kernel, stride, padding, dilation, pooling_convention, any_padding=True)
    return PoolPlan(
        dtype=require_dtype(dtype, DTYPES, POOL),
        axes=axes,
        reduce=Reduce.LP,
        layout=place,
        p=number(p, "p"),
        lp_form=LpForm.SIGNED_ROOT,
        lp_scale=LpScale.SUM,
        lp_scaled=False,
        zero_window=ZeroWindow.FORMULA if p == 1 else ZeroWindow.ZERO,
        empty=Empty.ZERO,
        accumulate=accumulator(dtype),
    )


def adaptive_pool(
    shape: Shape, dtype: str = "float32", *, output_size: Any, reduce: str = "average", layout: str = "channels_first"
) -> PoolPlan:
    """contrib.AdaptiveAvgPooling2D: windows [floor(i*n/o), ceil((i+1)*n/o)), each divided by its own length. Averages only."""
    if reduce != "average":
        raise ArgumentError(
            "MXNet adapts averages only", given={"reduce": reduce}, because="MXNet 1.9.1, contrib", hint='reduce="average"'
        )
    require_dtype(dtype, DTYPES, "MXNet 1.9.1, src/operator/contrib/adaptive_avg_pooling.cc")
    return adaptive(shape, dtype, output_size, reduce, layout, POOL)


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
    """Zeros outside, floor((n + 2*padding - K) / stride) + 1."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    kernel, out_channels = weights_of(w_shape, rank, channels(shape, place), groups)
    s, d = per_axis(stride, rank, "stride"), per_axis(dilation, rank, "dilation")
    p = symmetric(padding, rank, "MXNet")
    outs = tuple(
        _sizes.floor(n, 2 * pi, _sizes.reach(k, di), si) for n, pi, k, di, si in zip(sizes, p, kernel, d, s, strict=True)
    )
    return ConvPlan(
        dtype=require_dtype(dtype, DTYPES, CONV),
        axes=_sizes.strided_axes(sizes, kernel, s, d, tuple((pi, pi) for pi in p), outs, because=CONV),
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
    target_shape: Any = None,
) -> ConvPlan:
    """(n-1)*stride + K - 2*padding + output_padding, the last (MXNet's `adj`) below the stride. `target_shape` chooses both
    instead, with the greater half of an odd total cut off at the start."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    kernel, out_channels = transposed_weights_of(w_shape, rank, channels(shape, place), groups)
    s, d = per_axis(stride, rank, "stride"), per_axis(dilation, rank, "dilation")
    if target_shape is None:
        p, extra = symmetric(padding, rank, "MXNet"), per_axis(output_padding, rank, "output_padding", 0)
    else:
        p, extra = _aimed(sizes, kernel, s, d, per_axis(target_shape, rank, "target_shape"))
    for i, (more, si) in enumerate(zip(extra, s, strict=True)):
        if more >= si:
            raise ArgumentError(
                "output_padding is not smaller than the stride",
                given={"output_padding": extra, "stride": s},
                required=f"{on_axis('output_padding < stride', i, rank)}: {more} < {si}",
                because=DECONV,
                hint=f"output_padding={si - 1}",
            )
    return ConvPlan(
        dtype=require_dtype(dtype, DTYPES, DECONV),
        axes=_sizes.transposed_axes(sizes, kernel, s, d, tuple((pi, pi) for pi in p), extra, because=DECONV),
        in_channels=channels(shape, place),
        out_channels=out_channels,
        direction=Direction.TRANSPOSED,
        layout=place,
        groups=whole(groups, "groups", 1),
        accumulate=accumulator(dtype),
    )


def _aimed(sizes: PerAxis, kernel: PerAxis, stride: PerAxis, dilation: PerAxis, target: PerAxis) -> tuple[PerAxis, PerAxis]:
    """(padding, output padding) that cut the whole output down to the target: InferPad in deconvolution-inl.h."""
    totals = tuple(
        (n - 1) * s + _sizes.reach(k, d) - aim for n, k, s, d, aim in zip(sizes, kernel, stride, dilation, target, strict=True)
    )
    for i, (total, aim) in enumerate(zip(totals, target, strict=True)):
        if total < 0:
            raise ArgumentError(
                "target_shape is larger than the whole output",
                given={"target_shape": target},
                required=f"{on_axis('target_shape <= (n-1)*stride + K', i, len(sizes))}: {aim} <= {aim + total}",
                because="MXNet 1.9.1, src/operator/nn/deconvolution-inl.h",
                hint=f"target_shape={aim + total} on that axis",
            )
    return tuple((total + 1) // 2 for total in totals), tuple(total % 2 for total in totals)


def _windows(
    shape: Shape,
    layout: str,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    convention: str,
    *,
    any_padding: bool = False,
) -> tuple[Layout, tuple[StridedAxis, ...]]:
    """Sizes in integers ("full" divides in float32 in MXNet, which differs above 2^24 only). Padding below the kernel is asked
    for by oneDNN, which computes maxima and averages."""
    only_each(dilation, "dilation", 1, POOL)
    if choice(convention, "pooling_convention", ("valid", "full", "same")) == "same":
        raise ArgumentError(
            "every call with this convention fails in MXNet 1.9.1",
            given={"pooling_convention": "same"},
            because=f"{POOL} reads the second and third of its one pad",
            hint='rules="tensorflow", padding="same"',
        )
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    k = per_axis(kernel, rank, "kernel")
    s = k if stride is None else per_axis(stride, rank, "stride")
    p = symmetric(padding, rank, "MXNet")
    for i, (n, ki, pi) in enumerate(zip(sizes, k, p, strict=True)):
        if pi >= ki and not any_padding:
            raise ArgumentError(
                "the padding is not smaller than the kernel",
                given={"padding": padding, "kernel": kernel},
                required=f"{on_axis('pad < kernel', i, rank)}: {pi} < {ki}",
                because="MXNet 1.9.1, src/operator/nn/mkldnn/mkldnn_pooling.cc",
                hint=f"padding={ki - 1}",
            )
        if ki > n + 2 * pi:  # "full" alone would let one window hang over
            raise ArgumentError(
                "the kernel is larger than the padded input",
                given={"kernel": kernel, "padding": padding},
                required=f"{on_axis('kernel <= size + 2 * padding', i, rank)}: {ki} <= {n + 2 * pi}",
                because=POOL,
                hint=f"kernel={n + 2 * pi}",
            )
    size = _sizes.floor if convention == "valid" else _sizes.ceil
    outs = tuple(size(n, 2 * pi, ki, si) for n, pi, ki, si in zip(sizes, p, k, s, strict=True))
    both: Pads = tuple((pi, pi) for pi in p)
    return place, _sizes.strided_axes(sizes, k, s, (1,) * rank, both, outs, because=POOL)
