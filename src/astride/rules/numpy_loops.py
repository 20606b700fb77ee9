"""NumPy teaching code: the pooling and convolution loops of course assignments and blog posts, and their gradient idioms.

No padding when pooling; sizes must come out whole. `gradient` names the idiom of the backward pass of max and min:
"mask" (x == max, every tie the whole gradient), "share" (that mask over its sum), "argmax" (the first, NaN first of all).
Source: the idioms re-expressed and run (docs/rules/numpy_loops.md); no course's code is used.
"""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..plan import ConvPlan, PoolPlan, Shape, StridedAxis
from ..plan.base import axis_names
from ..plan.kinds import Direction, Divisor, Empty, Layout, Nan, Reduce, Start, Tie, Unpicked
from . import _sizes
from ._arguments import (
    BOOL,
    FLOATS,
    INTEGERS,
    Pads,
    PerAxis,
    accumulator,
    as_minimum,
    channels,
    choice,
    only,
    only_each,
    pads,
    per_axis,
    require_dtype,
    shares_arguments,
    spatial,
)
from ._weights import transposed_weights_of, weights_of

IDIOM = "NumPy teaching code"
TIES = {"mask": Tie.ALL_FULL, "share": Tie.EQUAL_SHARE, "argmax": Tie.FIRST_NAN}


def max_pool(
    shape: Shape,
    dtype: str = "float32",
    *,
    kernel: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    layout: str = "channels_first",
    gradient: str = "mask",
) -> PoolPlan:
    """`x[window].max()`: a NaN wins; under the mask idioms its window has no gradient (mask) or a NaN one (share)."""
    place, axes = _windows(shape, layout, kernel, stride, padding, dilation)
    return PoolPlan(
        dtype=require_dtype(dtype, FLOATS | INTEGERS | BOOL, IDIOM),
        axes=axes,
        reduce=Reduce.MAX,
        layout=place,
        start=Start.INFINITY,
        nan=Nan.PROPAGATED,
        tie=TIES[choice(gradient, "gradient", tuple(TIES))],
        unpicked=Unpicked.FIRST_TAP,
        accumulate=accumulator(dtype),
    )


def min_pool(shape: Shape, dtype: str = "float32", **arguments: Any) -> PoolPlan:
    """`x[window].min()`, with max pooling's arguments and idioms."""
    return as_minimum(max_pool(shape, dtype, **arguments))


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
    """`x[window].mean()`; the gradient in equal shares."""
    place, axes = _windows(shape, layout, kernel, stride, padding, dilation)
    return PoolPlan(
        dtype=require_dtype(dtype, FLOATS, IDIOM),
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
    layout: str = "channels_first",
) -> ConvPlan:
    """`np.pad`, then a sum of products per window; 1 + (n + pads - kernel) / stride must be whole."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    kernel, out_channels = weights_of(w_shape, rank, channels(shape, place), groups)
    only(groups, "groups", 1, IDIOM)
    only_each(dilation, "dilation", 1, IDIOM)
    s = per_axis(stride, rank, "stride")
    both = pads(padding, rank)
    return ConvPlan(
        dtype=require_dtype(dtype, FLOATS, IDIOM),
        axes=_exact(sizes, kernel, s, both),
        in_channels=channels(shape, place),
        out_channels=out_channels,
        layout=place,
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
    """Each value times the kernel, added into the output: (n-1)*stride + kernel - pads."""
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    kernel, out_channels = transposed_weights_of(w_shape, rank, channels(shape, place), groups)
    only(groups, "groups", 1, IDIOM)
    only_each(dilation, "dilation", 1, IDIOM)
    return ConvPlan(
        dtype=require_dtype(dtype, FLOATS, IDIOM),
        axes=_sizes.transposed_axes(
            sizes, kernel, per_axis(stride, rank, "stride"), (1,) * rank, pads(padding, rank), (0,) * rank
        ),
        in_channels=channels(shape, place),
        out_channels=out_channels,
        direction=Direction.TRANSPOSED,
        layout=place,
        accumulate=accumulator(dtype),
    )


def _windows(
    shape: Shape, layout: str, kernel: Any, stride: Any, padding: Any, dilation: Any
) -> tuple[Layout, tuple[StridedAxis, ...]]:
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    only(sum(map(sum, pads(padding, rank))), "padding", 0, IDIOM)
    only_each(dilation, "dilation", 1, IDIOM)
    k = per_axis(kernel, rank, "kernel")
    s = k if stride is None else per_axis(stride, rank, "stride")
    return place, _exact(sizes, k, s, ((0, 0),) * rank)


def _exact(sizes: PerAxis, kernel: PerAxis, stride: PerAxis, both: Pads) -> tuple[StridedAxis, ...]:
    """Axes whose windows fill the input exactly. Raises ArgumentError where a remainder is left."""
    outs = tuple(_sizes.floor(n, lo + hi, k, s) for n, (lo, hi), k, s in zip(sizes, both, kernel, stride, strict=True))
    axes = _sizes.strided_axes(sizes, kernel, stride, (1,) * len(sizes), both, outs, because=IDIOM)
    for i, (n, (lo, hi), k, s) in enumerate(zip(sizes, both, kernel, stride, strict=True)):
        remainder = (n + lo + hi - k) % s
        if remainder:
            axis = axis_names(len(sizes))[i]
            raise ArgumentError(
                "the windows do not fill the input exactly",
                given={"kernel": kernel, "stride": stride},
                required=f"(size + padding - kernel) % stride == 0, on axis {axis}: ({n} + {lo + hi} - {k}) % {s} = {remainder}",
                because=f"{IDIOM} asserts it",
                hint='another stride or padding, or rules="explicit", which drops the remainder',
            )
    return axes


shares_arguments(min_pool, max_pool)
