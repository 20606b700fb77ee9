"""OpenCV 4.14's DNN module reading Caffe files: the rules of its Pooling, Convolution and Deconvolution layers.

Source: modules/dnn/src/layers/{pooling,convolution,layers_common}.cpp; confirmed by running 4.14.0 (tests/golden/semantics,
docs/rules/opencv.md). OpenCV 5 reads no Caffe files. It computes float32, forward only: gradients here are Caffe's, float64 is
ours. `stride` defaults to the kernel here, to 1 in the files.
"""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..plan import ConvPlan, PoolPlan, Shape, StridedAxis
from ..plan.kinds import Direction, Divisor, Empty, Layout, Nan, Reduce, Start, Tie, Unpicked
from . import _sizes
from ._arguments import Pads, accumulator, channels, on_axis, only_each, per_axis, require_dtype, spatial, symmetric, whole
from ._weights import transposed_weights_of, weights_of

POOL = "OpenCV 4.14, modules/dnn/src/layers/pooling_layer.cpp"
CONV = "OpenCV 4.14, modules/dnn/src/layers/convolution_layer.cpp"
DTYPES = frozenset({"float32", "float64"})


def max_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    layout: str = "channels_first",
    ceil_mode: bool = True,
) -> PoolPlan:
    """As Caffe (strict `>` from -FLT_MAX, no NaN wins), but a window with no real tap gives 0, and padding may reach the
    kernel's size. The files' field is `ceil_mode`; a net with Caffe's `round_mode` is not read."""
    place, axes = _windows(shape, layout, kernel, stride, padding, dilation, ceil_mode)
    return PoolPlan(
        dtype=require_dtype(dtype, DTYPES, POOL),
        axes=axes,
        reduce=Reduce.MAX,
        layout=place,
        start=Start.FINITE,
        nan=Nan.COMPARED,
        tie=Tie.FIRST,
        unpicked=Unpicked.NOWHERE,
        empty=Empty.ZERO,
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
    ceil_mode: bool = True,
) -> PoolPlan:
    """Caffe's divisor: the window clipped to the padded input, 0 (so NaN) or below for windows behind it."""
    place, axes = _windows(shape, layout, kernel, stride, padding, dilation, ceil_mode)
    return PoolPlan(
        dtype=require_dtype(dtype, DTYPES, POOL),
        axes=axes,
        reduce=Reduce.AVERAGE,
        layout=place,
        divisor=Divisor.CAFFE,
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
    """Zeros outside, floor((n + 2*padding - K) / stride) + 1."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    kernel, out_channels = weights_of(w_shape, rank, channels(shape, place), groups)
    s, d = per_axis(stride, rank, "stride"), per_axis(dilation, rank, "dilation")
    p = symmetric(padding, rank, "OpenCV's Caffe reader")
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
    dilation: Any = 1,
    groups: int = 1,
    layout: str = "channels_first",
) -> ConvPlan:
    """(n-1)*stride + K - 2*padding."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    kernel, out_channels = transposed_weights_of(w_shape, rank, channels(shape, place), groups)
    s, d = per_axis(stride, rank, "stride"), per_axis(dilation, rank, "dilation")
    p = symmetric(padding, rank, "OpenCV's Caffe reader")
    return ConvPlan(
        dtype=require_dtype(dtype, DTYPES, CONV),
        axes=_sizes.transposed_axes(sizes, kernel, s, d, tuple((pi, pi) for pi in p), (0,) * rank, because=CONV),
        in_channels=channels(shape, place),
        out_channels=out_channels,
        direction=Direction.TRANSPOSED,
        layout=place,
        groups=whole(groups, "groups", 1),
        accumulate=accumulator(dtype),
    )


def _windows(
    shape: Shape, layout: str, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple[Layout, tuple[StridedAxis, ...]]:
    """As Caffe's sizes, but a last window behind the input is dropped only along an axis that is padded itself, and a kernel
    larger than the padded input is refused. In integers (OpenCV divides in float32, which differs above 2^24 only)."""
    only_each(dilation, "dilation", 1, POOL)
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    k = per_axis(kernel, rank, "kernel")
    s = k if stride is None else per_axis(stride, rank, "stride")
    p = symmetric(padding, rank, "OpenCV's Caffe reader")
    for i, (n, ki, pi) in enumerate(zip(sizes, k, p, strict=True)):
        if ki > n + 2 * pi:
            raise ArgumentError(
                "the kernel is larger than the padded input",
                given={"kernel": kernel, "padding": padding},
                required=f"{on_axis('kernel <= size + 2 * padding', i, rank)}: {ki} <= {n + 2 * pi}",
                because=POOL,
                hint=f"kernel={n + 2 * pi}",
            )
    size = _sizes.ceil if ceil_mode else _sizes.floor
    outs = tuple(size(n, 2 * pi, ki, si) for n, pi, ki, si in zip(sizes, p, k, s, strict=True))
    outs = tuple(_sizes.clipped(out, n, pi, si) if pi else out for out, n, pi, si in zip(outs, sizes, p, s, strict=True))
    for i, (out, n, pi, si) in enumerate(zip(outs, sizes, p, s, strict=True)):
        if pi and (out - 1) * si >= n + pi:
            raise ArgumentError(
                "the last window starts in the padding behind the input, even with one window less",
                given={"kernel": kernel, "stride": stride, "padding": padding},
                required=f"{on_axis('(windows - 1) * stride < size + padding', i, rank)}: {(out - 1) * si} < {n + pi}",
                because=POOL,
                hint="less padding",
            )
    both: Pads = tuple((pi, pi) for pi in p)
    return place, _sizes.strided_axes(sizes, k, s, (1,) * rank, both, outs, because=POOL)
