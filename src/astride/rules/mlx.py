"""MLX 0.32: the rules of mlx.nn's pooling layers and mlx.core's convolutions.

Source: ml-explore/mlx, python/mlx/nn/layers/pooling.py and mlx/ops.cpp; confirmed by running it on the CPU
(tests/golden/semantics, tests/live). Arrays there are channels last; sizes and padding hold per axis for one to three.
"""

from __future__ import annotations

from typing import Any

from ..plan import ConvPlan, PoolPlan, Shape, StridedAxis
from ..plan.kinds import Direction, Divisor, Empty, Layout, Nan, Reduce, Start, Tie, Unpicked
from . import _sizes
from ._arguments import (
    FLOATS,
    accumulator,
    channels,
    only_each,
    pads,
    per_axis,
    require_dtype,
    spatial,
    symmetric,
    whole,
)
from ._weights import transposed_weights_of, weights_of

POOL = "MLX 0.32, python/mlx/nn/layers/pooling.py"
CONV = "MLX 0.32, mlx/ops.cpp"


def max_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    layout: str = "channels_first",
) -> PoolPlan:
    """The maximum over strided views, padding -inf: a NaN wins. All tied taps share the gradient equally; a window with a NaN
    has NaN for the gradient of every tap, unless it is of one tap alone."""
    only_each(dilation, "dilation", 1, POOL)
    place, axes = _windows(shape, layout, kernel, stride, padding)
    return PoolPlan(
        dtype=require_dtype(dtype, FLOATS, POOL),
        axes=axes,
        reduce=Reduce.MAX,
        layout=place,
        start=Start.INFINITY,
        nan=Nan.PROPAGATED,
        tie=Tie.EQUAL_SHARE if max(axis.kernel for axis in axes) > 1 else Tie.FIRST_NAN,
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
) -> PoolPlan:
    """The mean over zero-padded views: divides by the kernel's taps, always."""
    only_each(dilation, "dilation", 1, POOL)
    place, axes = _windows(shape, layout, kernel, stride, padding)
    return PoolPlan(
        dtype=require_dtype(dtype, FLOATS, POOL),
        axes=axes,
        reduce=Reduce.AVERAGE,
        layout=place,
        divisor=Divisor.KERNEL,
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
    input_dilation: Any = 1,
    flip: bool = False,
    layout: str = "channels_first",
) -> ConvPlan:
    """conv_general: pads may differ, `dilation` is kernel_dilation, `flip` a true convolution. conv1d to conv3d pad both sides
    alike and have neither `input_dilation` nor `flip`."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    kernel, out_channels = weights_of(w_shape, rank, channels(shape, place), groups)
    s, d = per_axis(stride, rank, "stride"), per_axis(dilation, rank, "dilation")
    inner = per_axis(input_dilation, rank, "input_dilation")
    both = pads(padding, rank)
    stretched = tuple((n - 1) * i + 1 for n, i in zip(sizes, inner, strict=True))
    outs = tuple(
        _sizes.floor(n, lo + hi, _sizes.reach(k, di), si)
        for n, (lo, hi), k, di, si in zip(stretched, both, kernel, d, s, strict=True)
    )
    _sizes.strided_axes(stretched, kernel, s, d, both, outs, because=CONV)
    axes = tuple(
        StridedAxis(size=n, kernel=k, stride=si, dilation=di, pad_lo=lo, pad_hi=hi, out=out, input_dilation=i)
        for n, k, si, di, (lo, hi), out, i in zip(sizes, kernel, s, d, both, outs, inner, strict=True)
    )
    return ConvPlan(
        dtype=require_dtype(dtype, FLOATS, CONV),
        axes=axes,
        in_channels=channels(shape, place),
        out_channels=out_channels,
        layout=place,
        groups=whole(groups, "groups", 1),
        flip=bool(flip),
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
) -> ConvPlan:
    """(n-1)*stride + (kernel-1)*dilation + 1 - 2*padding + output_padding."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    kernel, out_channels = transposed_weights_of(w_shape, rank, channels(shape, place), groups)
    p = symmetric(padding, rank, "MLX")
    return ConvPlan(
        dtype=require_dtype(dtype, FLOATS, CONV),
        axes=_sizes.transposed_axes(
            sizes,
            kernel,
            per_axis(stride, rank, "stride"),
            per_axis(dilation, rank, "dilation"),
            tuple((pi, pi) for pi in p),
            per_axis(output_padding, rank, "output_padding", 0),
            because=CONV,
        ),
        in_channels=channels(shape, place),
        out_channels=out_channels,
        direction=Direction.TRANSPOSED,
        layout=place,
        groups=whole(groups, "groups", 1),
        accumulate=accumulator(dtype),
    )


def _windows(shape: Shape, layout: str, kernel: Any, stride: Any, padding: Any) -> tuple[Layout, tuple[StridedAxis, ...]]:
    """floor((n + 2p - k) / s) + 1."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    k = per_axis(kernel, rank, "kernel")
    s = k if stride is None else per_axis(stride, rank, "stride")
    p = symmetric(padding, rank, "MLX")
    outs = tuple(_sizes.floor(n, 2 * pi, ki, si) for n, pi, ki, si in zip(sizes, p, k, s, strict=True))
    return place, _sizes.strided_axes(sizes, k, s, (1,) * rank, tuple((pi, pi) for pi in p), outs, because=POOL)
