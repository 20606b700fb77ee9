"""What one answer makes of a given input: its output, the gradient of its sum, and where they differ from another's."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import dispatch
from ..errors import ArgumentError, AstrideError
from ..plan import ConvPlan, DeformPlan, FractionalPlan, IntegerConvPlan, Plan, PoolPlan, UnfoldPlan, UnpoolPlan
from ..plan.kinds import Layout, Reduce
from .operators import first_places

Array = npt.NDArray[Any]

MOST_DRAWN = 12
"""Values along the longer side of a plane that is drawn; larger ones are in the JSON."""


@dataclass(frozen=True, slots=True)
class Values:
    """Of the first channel: y, and dx where the rules define one, `error` where computing it failed."""

    y: Array | None
    dx: Array | None
    error: AstrideError | None = None

    def differing(self, other: Values, name: str) -> Array | None:
        """Which places of y or dx are not the other's; those that the other has not got are."""
        mine, theirs = getattr(self, name), getattr(other, name)
        if mine is None:
            return None
        differs = np.ones(mine.shape, bool)
        if theirs is None or theirs.ndim != mine.ndim:
            return differs
        shared = tuple(slice(0, min(a, b)) for a, b in zip(mine.shape, theirs.shape))
        same = np.isclose(mine[shared], theirs[shared], rtol=1e-6, atol=1e-30, equal_nan=True)
        differs[shared] = ~same | (np.signbit(mine[shared]) != np.signbit(theirs[shared])) & ~np.isnan(mine[shared])
        return differs


def as_input(value: Array) -> Array:
    """One plane of numbers, of one to three axes. Raises ArgumentError: anything else."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiu" or not 1 <= array.ndim <= 3 or array.size == 0:
        raise ArgumentError(
            "the input is one plane of numbers",
            given={"input": array},
            required=f"1 <= input.ndim <= 3, not empty: {array.shape}",
            hint="1,2,nan,4, or rows as 1,2;3,4",
        )
    return array


def values_of(
    plan: Plan, x: Array, w: Array | None, backend: str | None = None, given: Mapping[str, Any] | None = None
) -> Values:
    """Every channel holds x; the kernel is ones unless given. dy is 1 everywhere.

    `given` may say what fills the further arrays of an operator (operators.OWN); x is fold's columns, (taps, windows).
    """
    first = getattr(plan, "layout", Layout.CHANNELS_FIRST) is Layout.CHANNELS_FIRST
    place = (0, 0) if first else (0, Ellipsis, 0)
    try:
        arrays = _arrays(plan, x, w, given or {}, first)
        differentiable = np.dtype(plan.dtype).kind == "f" and not isinstance(plan, IntegerConvPlan)
        y, saved = dispatch.forward(plan, *arrays, save=differentiable, backend=backend)
        shown = y[place] if plan.op != "unfold" else _as_rows(y[0], first)
        if saved is None:
            return Values(shown, None)
        dx = dispatch.backward(plan, np.ones_like(y), saved, want=(True, *[False] * (len(plan.roles) - 1)))[0]
        assert dx is not None
        return Values(shown, dx[place] if plan.op != "fold" else _as_rows(dx[0], first))
    except AstrideError as error:
        return Values(None, None, error)


def _arrays(plan: Plan, x: Array, w: Array | None, given: Mapping[str, Any], first: bool) -> list[Array | None]:
    """What the plan's kernel takes, in the order of its roles."""
    channels = getattr(plan, "in_channels", 1)
    planes = np.stack([x.astype(plan.dtype)] * channels, axis=0 if first else -1)[None]
    if isinstance(plan, UnfoldPlan) and plan.op == "fold":
        return [_columns(plan, x, first)]
    if isinstance(plan, FractionalPlan):
        return [planes, np.full((1, 1, len(plan.size)), given.get("samples", 0.5), plan.dtype)]
    if isinstance(plan, UnpoolPlan):
        places = first_places(plan, given)
        return [planes, places[None, None] if first else places[None, ..., None]]
    if isinstance(plan, PoolPlan) and plan.reduce is Reduce.STOCHASTIC:
        outs = tuple(axis.out for axis in plan.axes)
        return [planes, np.full((1, 1, *outs) if first else (1, *outs, 1), given.get("uniform", 0.5), plan.dtype)]
    if not isinstance(plan, ConvPlan | DeformPlan | IntegerConvPlan):
        return [planes]
    kernel = np.ones(plan.weight_shape, plan.dtype_of("w")) if w is None else w.astype(plan.dtype_of("w"))
    if isinstance(plan, IntegerConvPlan):
        zeros = [None if given.get(f"{name}_zero_point") is None else np.asarray(given[f"{name}_zero_point"]) for name in "xw"]
        types = (plan.dtype, plan.w_dtype)
        return [planes, kernel, *(None if zero is None else zero.astype(t) for zero, t in zip(zeros, types))]
    if isinstance(plan, DeformPlan):
        offset, mask = given.get("offset") or 0.0, given.get("mask")
        rows = plan.offset_groups * plan.taps
        moved = np.full(plan.shape_of(1, rows * len(plan.axes)), offset, plan.dtype)
        weighed = None if mask is None else np.full(plan.shape_of(1, rows), mask, plan.dtype)
        return [planes, moved, kernel, weighed]
    return [planes, kernel]


def _columns(plan: UnfoldPlan, x: Array, first: bool) -> Array:
    """One channel's columns, (taps, windows), as fold takes them."""
    outs = tuple(axis.out for axis in plan.axes)
    if x.ndim != 2 or x.shape != (plan.taps, math.prod(outs)):
        raise ArgumentError(
            "the input is not the columns of one channel",
            given={"input": x},
            required=f"input.shape == (taps, windows) == {(plan.taps, math.prod(outs))}: {x.shape}",
            operator="fold",
        )
    columns = x.astype(plan.dtype).reshape(plan.taps, *outs)
    return (columns if first else np.moveaxis(columns, 0, -1))[None]


def _as_rows(columns: Array, first: bool) -> Array:
    """Columns with all their windows along one axis: (taps, windows)."""
    rows = columns if first else np.moveaxis(columns, -1, 0)
    return rows.reshape(len(rows), -1)
