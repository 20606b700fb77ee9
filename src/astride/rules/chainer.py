"""Chainer 7.8.1 on the CPU: the rules of its pooling, unpooling, convolution and deconvolution functions.

Source: chainer/utils/conv.py, functions/pooling/{max_pooling_nd,average_pooling_nd,unpooling_2d,upsampling_2d}.py and
functions/connection/{convolution_nd,deconvolution_2d}.py; confirmed by running it (tests/golden/semantics). `cover_all`
rounds sizes up and clips nothing. `unpooling` and `upsampling` are Chainer's own, for astride.like.chainer.
"""

from __future__ import annotations

import math
from typing import Any

from ..errors import ArgumentError
from ..plan import ConvPlan, PoolPlan, Shape, StridedAxis
from ..plan.kinds import Direction, Divisor, Edge, Empty, IndexBase, Layout, Nan, Reduce, Start, Tie
from . import _sizes
from ._arguments import (
    PerAxis,
    accumulator,
    channels,
    on_axis,
    only_each,
    per_axis,
    require_dtype,
    spatial,
    symmetric,
    whole,
)
from ._weights import transposed_weights_of, weights_of

SIZES = "Chainer 7.8.1, chainer/utils/conv.py"
POOL = "Chainer 7.8.1, chainer/functions/pooling"
CONV = "Chainer 7.8.1, chainer/functions/connection"
DTYPES = frozenset({"float16", "float32", "float64"})


def max_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    layout: str = "channels_first",
    cover_all: bool = True,
) -> PoolPlan:
    """NumPy's argmax over each window of the input padded with -inf, which takes part: the first NaN wins, else the first
    greatest, and -inf alone may lose to padding that stands before it, where its gradient goes too. Indices are places
    inside the window, padding counted."""
    only_each(dilation, "dilation", 1, POOL)
    place, axes = _windows(shape, layout, kernel, stride, padding, 1, cover_all=cover_all)
    return PoolPlan(
        dtype=require_dtype(dtype, DTYPES, POOL),
        axes=axes,
        reduce=Reduce.MAX,
        layout=place,
        start=Start.INFINITY,
        nan=Nan.PROPAGATED,
        tie=Tie.FIRST_NAN,
        edge=Edge.CONSTANT,
        edge_value=-math.inf,
        index_base=IndexBase.WINDOW,
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
    pad_value: int | None = 0,
) -> PoolPlan:
    """Divides by the kernel's taps (`pad_value` 0) or by the real ones (None). Sizes round down: averages have no
    `cover_all`. A window of padding alone is 0/0 = NaN under None; Chainer's divisor there may fall below 0 and give -0."""
    only_each(dilation, "dilation", 1, POOL)
    if pad_value not in (0, None):
        raise ArgumentError(
            "pad_value is 0 or None",
            given={"pad_value": pad_value},
            because=f"{POOL}/average_pooling_nd.py",
            hint="pad_value=0 counts padding, pad_value=None does not",
        )
    place, axes = _windows(shape, layout, kernel, stride, padding, 1, cover_all=False)
    return PoolPlan(
        dtype=require_dtype(dtype, DTYPES, POOL),
        axes=axes,
        reduce=Reduce.AVERAGE,
        layout=place,
        divisor=Divisor.KERNEL if pad_value == 0 else Divisor.VALID,
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
    cover_all: bool = False,
) -> ConvPlan:
    """Zeros outside, among them the stride - 1 more at the end that `cover_all` reads."""
    place, sizes = spatial(shape, layout)
    kernel, out_channels = weights_of(w_shape, len(sizes), channels(shape, place), groups)
    _, axes = _windows(shape, layout, kernel, stride, padding, dilation, cover_all=cover_all)
    return ConvPlan(
        dtype=require_dtype(dtype, DTYPES, CONV),
        axes=axes,
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
    output_size: Any = None,
) -> ConvPlan:
    """stride*(n-1) + K - 2*padding, or an `output_size` (Chainer's `outsize`) that a convolution, covering all or not, takes
    to this input: it cuts or extends the end."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    kernel, out_channels = transposed_weights_of(w_shape, rank, channels(shape, place), groups)
    s, d, p = per_axis(stride, rank, "stride"), per_axis(dilation, rank, "dilation"), symmetric(padding, rank, "Chainer")
    return ConvPlan(
        dtype=require_dtype(dtype, DTYPES, CONV),
        axes=_backward_axes(sizes, kernel, s, d, p, output_size, slack=(False, True)),
        in_channels=channels(shape, place),
        out_channels=out_channels,
        direction=Direction.TRANSPOSED,
        layout=place,
        groups=whole(groups, "groups", 1),
        accumulate=accumulator(dtype),
    )


def unpooling(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
    cover_all: bool = True,
) -> ConvPlan:
    """Every value repeated over its window, overlaps summed: a transposed convolution of each channel with ones. The size is
    stride*(n-1) + kernel - 2*padding, stride - 1 less with `cover_all`, or `output_size`."""
    place, sizes = spatial(shape, "channels_first")
    rank, planes = len(sizes), channels(shape, place)
    k = per_axis(kernel, rank, "kernel")
    s = k if stride is None else per_axis(stride, rank, "stride")
    p = symmetric(padding, rank, "Chainer")
    return ConvPlan(
        dtype=require_dtype(dtype, DTYPES, POOL),
        axes=_backward_axes(sizes, k, s, (1,) * rank, p, output_size, slack=(cover_all,)),
        in_channels=planes,
        out_channels=planes,
        direction=Direction.TRANSPOSED,
        layout=place,
        groups=max(planes, 1),
        accumulate=accumulator(dtype),
    )


def upsampling(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = 0,
    output_size: Any = None,
    cover_all: bool = True,
) -> PoolPlan:
    """The max pooling whose way back upsampling_2d is: `shape` is that of its output, `output_size` that of its input."""
    place, sizes = spatial(shape, "channels_first")
    rank = len(sizes)
    k = per_axis(kernel, rank, "kernel")
    s = k if stride is None else per_axis(stride, rank, "stride")
    p = symmetric(padding, rank, "Chainer")
    axes = _backward_axes(sizes, k, s, (1,) * rank, p, output_size, slack=(cover_all,))
    return PoolPlan(
        dtype=require_dtype(dtype, DTYPES, POOL),
        axes=axes,
        reduce=Reduce.MAX,
        layout=place,
        tie=Tie.FIRST_NAN,
        index_base=IndexBase.WINDOW,
        accumulate=accumulator(dtype),
    )


def _windows(
    shape: Shape, layout: str, kernel: Any, stride: Any, padding: Any, dilation: Any, *, cover_all: bool
) -> tuple[Layout, tuple[StridedAxis, ...]]:
    """`padding` before, and after as well, where `cover_all` may hang over by stride - 1 more."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    k, d = per_axis(kernel, rank, "kernel"), per_axis(dilation, rank, "dilation")
    s = k if stride is None else per_axis(stride, rank, "stride")
    p = symmetric(padding, rank, "Chainer")
    size = _sizes.ceil if cover_all else _sizes.floor
    outs = tuple(size(n, 2 * pi, _sizes.reach(ki, di), si) for n, pi, ki, di, si in zip(sizes, p, k, d, s, strict=True))
    return place, _sizes.strided_axes(sizes, k, s, d, tuple((pi, pi) for pi in p), outs, because=SIZES)


def _backward_axes(
    sizes: PerAxis,
    kernel: PerAxis,
    stride: PerAxis,
    dilation: PerAxis,
    padding: PerAxis,
    output_size: Any,
    *,
    slack: tuple[bool, ...],
) -> tuple[StridedAxis, ...]:
    """Axes of the windows over an output of the default or the given size. The latter must have as many windows as the input
    has values, counted as a `cover_all` in `slack` counts them."""
    rank = len(sizes)
    reaches = tuple(_sizes.reach(k, d) for k, d in zip(kernel, dilation, strict=True))
    whole_ones = tuple(
        (n - 1) * s + r - 2 * p - (s - 1 if all(slack) else 0) for n, s, r, p in zip(sizes, stride, reaches, padding, strict=True)
    )
    wanted = whole_ones if output_size is None else per_axis(output_size, rank, "output_size")
    for i, (out, n, s, r, p, usual) in enumerate(zip(wanted, sizes, stride, reaches, padding, whole_ones, strict=True)):
        if out < 1:
            raise ArgumentError(
                "the output is empty",
                given={"kernel": kernel, "stride": stride, "padding": padding},
                required=f"{on_axis('output size >= 1', i, rank)}: {out}",
                because=SIZES,
                hint="less padding",
            )
        counts = sorted((_sizes.ceil if cover else _sizes.floor)(out, 2 * p, r, s) for cover in slack)
        if not counts[0] <= n <= counts[-1]:
            raise ArgumentError(
                "no pooling takes the output size to this input",
                given={"output_size": wanted, "stride": stride, "padding": padding},
                required=f"{on_axis('windows == size', i, rank)}: {' to '.join(map(str, dict.fromkeys(counts)))} == {n}",
                because=SIZES,
                hint=f"output_size={usual} on that axis",
            )
    return tuple(
        StridedAxis(size=out, kernel=k, stride=s, dilation=d, pad_lo=p, pad_hi=p, out=n)
        for out, k, s, d, p, n in zip(wanted, kernel, stride, dilation, padding, sizes, strict=True)
    )
