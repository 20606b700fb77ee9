"""Poolings that are told the size of their output and find the windows themselves: what the frameworks' rules share."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..plan import FractionalPlan, PoolPlan, Shape
from ..plan.kinds import Divisor, Empty, Nan, Reduce, Start, Tie, Unpicked
from . import _sizes
from ._arguments import FLOATS, PerAxis, accumulator, choice, per_axis, require_dtype, spatial


def adaptive(
    shape: Shape,
    dtype: str,
    output_size: Any,
    reduce: str,
    layout: str,
    because: str,
    *,
    nan: Nan = Nan.PROPAGATED,
    tie: Tie = Tie.FIRST,
    extremes: frozenset[str] = FLOATS,
) -> PoolPlan:
    """Windows [floor(i*n/o), ceil((i+1)*n/o)) along every axis; an average divides by the window's own length. `extremes` are
    the dtypes that have a maximum."""
    place, sizes = spatial(shape, layout)
    maximum = choice(reduce, "reduce", ("average", "max")) == "max"
    return PoolPlan(
        dtype=require_dtype(dtype, extremes if maximum else FLOATS, because),
        axes=_sizes.adaptive_axes(sizes, output_sizes(output_size, sizes)),
        reduce=Reduce.MAX if maximum else Reduce.AVERAGE,
        layout=place,
        start=Start.INFINITY,
        nan=nan,
        tie=tie,
        unpicked=Unpicked.FIRST_TAP,
        divisor=Divisor.VALID,
        empty=Empty.START if maximum else Empty.ZERO,
        accumulate=accumulator(dtype),
    )


def output_sizes(value: Any, sizes: PerAxis) -> PerAxis:
    """One output size for every axis or one per axis, None for the input's own."""
    rank = len(sizes)
    if value is None:
        raise ArgumentError("the output size is not given", given={"output_size": None}, hint="output_size=1")
    if isinstance(value, tuple | list):
        if len(value) != rank:
            raise ArgumentError(
                "output_size needs one value per axis",
                given={"output_size": value},
                required=f"{rank} values, or one for all: {len(value)}",
                hint=f"one number, or {rank} of them",
            )
        value = [n if v is None else v for n, v in zip(sizes, value, strict=True)]
    return per_axis(value, rank, "output_size", 0)


def fractional(
    shape: Shape,
    dtype: str,
    kernel: Any,
    output_size: Any,
    output_ratio: Any,
    layout: str,
    because: str,
    *,
    sample_axes: tuple[int, ...] | None = None,
    tie: Tie = Tie.LAST_NAN,
) -> FractionalPlan:
    """Windows of one size at random places; the output's size is given, or floor(ratio * size).

    `sample_axes` says which of a plane's samples each axis takes; by default they follow the axes.
    """
    place, sizes = spatial(shape, layout)
    rank = len(sizes)
    if (output_size is None) == (output_ratio is None):
        raise ArgumentError(
            "the output's size is said twice or not at all",
            given={"output_size": output_size, "output_ratio": output_ratio},
            required="output_size or output_ratio, one of them",
            because=because,
            hint="output_size=2",
        )
    if output_ratio is None:
        outs = per_axis(output_size, rank, "output_size", 0)
    else:
        ratios = tuple(output_ratio) if isinstance(output_ratio, tuple | list) else (output_ratio,) * rank
        if len(ratios) != rank or not all(0 < ratio < 1 for ratio in ratios):
            raise ArgumentError(
                "output_ratio is no fraction per axis",
                given={"output_ratio": output_ratio},
                required=f"0 < ratio < 1, {rank} of them or one for all",
                because=because,
                hint="output_ratio=0.5",
            )
        outs = tuple(int(n * ratio) for n, ratio in zip(sizes, ratios, strict=True))
    return FractionalPlan(
        dtype=require_dtype(dtype, FLOATS, because),
        size=sizes,
        kernel=per_axis(kernel, rank, "kernel"),
        out=outs,
        sample_axes=sample_axes or tuple(range(rank)),
        layout=place,
        tie=tie,
        accumulate=accumulator(dtype),
    )
