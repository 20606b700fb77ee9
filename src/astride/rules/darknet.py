"""DarkNet (pjreddie, master): the rules of its [maxpool], [avgpool] and [convolutional] layers.

Source: src/maxpool_layer.c (compiled and run, tests/golden/semantics), src/parser.c, and, read but not run,
src/avgpool_layer.c and src/convolutional_layer.c. DarkNet has two axes, one size, stride and padding for both, and float32;
here the rules hold per axis for one to three axes, and for float64. `padding` of [maxpool] is the **total** of both sides.
"""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..plan import ConvPlan, PoolPlan, Shape
from ..plan.kinds import Divisor, Empty, IndexBase, Nan, Reduce, Start, Tie, Unpicked
from . import _sizes
from ._arguments import accumulator, channels, only_each, per_axis, require_dtype, spatial, symmetric, whole
from ._weights import weights_of

MAXPOOL = "DarkNet, src/maxpool_layer.c"
AVGPOOL = "DarkNet, src/avgpool_layer.c"
CONV = "DarkNet, src/convolutional_layer.c"
DTYPES = frozenset({"float32", "float64"})


def max_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = None,
    dilation: Any = 1,
    layout: str = "channels_first",
) -> PoolPlan:
    """Strict `>` from -FLT_MAX, first wins, NaN never does; a window of -inf or NaN alone has index -1 and no gradient (DarkNet
    adds it one float before its buffer). `padding` is the total, kernel - 1 by default, the greater half at the end; the
    size is (n + padding - kernel) / stride + 1 by C's division, which truncates. Indices count over the whole batch."""
    only_each(dilation, "dilation", 1, MAXPOOL)
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    k = per_axis(kernel, rank, "kernel")
    s = k if stride is None else per_axis(stride, rank, "stride")
    totals = tuple(ki - 1 for ki in k) if padding is None else per_axis(padding, rank, "padding", 0)
    pads = tuple((total // 2, total - total // 2) for total in totals)
    outs = tuple(_sizes.truncated(n, total, ki, si) for n, total, ki, si in zip(sizes, totals, k, s, strict=True))
    return PoolPlan(
        dtype=require_dtype(dtype, DTYPES, MAXPOOL),
        axes=_sizes.strided_axes(sizes, k, s, (1,) * rank, pads, outs, because=MAXPOOL),
        reduce=Reduce.MAX,
        layout=place,
        start=Start.FINITE,
        nan=Nan.COMPARED,
        tie=Tie.FIRST,
        unpicked=Unpicked.NOWHERE,
        index_base=IndexBase.TENSOR,
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
    """The whole plane over its size: DarkNet's [avgpool] is global, and other windows are refused. Read, not run."""
    only_each(dilation, "dilation", 1, AVGPOOL)
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    k = per_axis(kernel, rank, "kernel")
    if k != sizes or any(symmetric(padding, rank, "DarkNet")):
        raise ArgumentError(
            "DarkNet averages whole planes only",
            given={"kernel": kernel, "padding": padding},
            required=f"kernel == size, no padding: {k} == {sizes}",
            because=AVGPOOL,
            hint='astride.global_pool(x, rules="darknet")',
        )
    s = k if stride is None else per_axis(stride, rank, "stride")
    return PoolPlan(
        dtype=require_dtype(dtype, DTYPES, AVGPOOL),
        axes=_sizes.strided_axes(sizes, k, s, (1,) * rank, ((0, 0),) * rank, (1,) * rank, because=AVGPOOL),
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
    layout: str = "channels_first",
    pad: bool = False,
) -> ConvPlan:
    """Zeros outside, (n + 2*padding - kernel) / stride + 1; here `padding` is that of each side. `pad` overrides it with
    kernel // 2. No dilation. Read, not run."""
    only_each(dilation, "dilation", 1, CONV)
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    kernel, out_channels = weights_of(w_shape, rank, channels(shape, place), groups)
    s = per_axis(stride, rank, "stride")
    p = tuple(k // 2 for k in kernel) if pad else symmetric(padding, rank, "DarkNet")
    outs = tuple(_sizes.truncated(n, 2 * pi, k, si) for n, pi, k, si in zip(sizes, p, kernel, s, strict=True))
    return ConvPlan(
        dtype=require_dtype(dtype, DTYPES, CONV),
        axes=_sizes.strided_axes(sizes, kernel, s, (1,) * rank, tuple((pi, pi) for pi in p), outs, because=CONV),
        in_channels=channels(shape, place),
        out_channels=out_channels,
        layout=place,
        groups=whole(groups, "groups", 1),
        accumulate=accumulator(dtype),
    )
