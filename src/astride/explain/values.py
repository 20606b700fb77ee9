"""What one answer makes of a given input: its output, the gradient of its sum, and where they differ from another's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import dispatch
from ..errors import ArgumentError, AstrideError
from ..plan import ConvPlan, Plan, PoolPlan
from ..plan.kinds import Layout

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


def values_of(plan: Plan, x: Array, w: Array | None, backend: str | None = None) -> Values:
    """Every channel holds x; the kernel is ones unless given. dy is 1 everywhere."""
    if not isinstance(plan, PoolPlan | ConvPlan):
        return Values(None, None)
    first = plan.layout is Layout.CHANNELS_FIRST
    channels = plan.in_channels if isinstance(plan, ConvPlan) else 1
    planes = np.stack([x.astype(plan.dtype)] * channels, axis=0 if first else -1)[None]
    arrays = [planes]
    if isinstance(plan, ConvPlan):
        arrays.append(np.ones(plan.weight_shape, plan.dtype) if w is None else w.astype(plan.dtype))
    place = (0, 0) if first else (0, Ellipsis, 0)
    try:
        if planes.dtype.kind != "f":
            return Values(dispatch.forward(plan, *arrays, backend=backend)[0][place], None)
        y, saved = dispatch.forward(plan, *arrays, save=True, backend=backend)
        if saved is None:
            return Values(y[place], None)
        return Values(y[place], dispatch.backward(plan, np.ones_like(y), saved)[0][place])  # type: ignore[index]
    except AstrideError as error:
        return Values(None, None, error)
