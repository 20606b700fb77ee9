"""When extremes whose channels come first are computed with all planes as one row of numbers (pool_first_flat.py)."""

from __future__ import annotations

from typing import Any

from ...plan import PoolPlan, StridedAxis
from ...plan.kinds import Edge
from . import pool_first_flat
from .cache import functions
from .extremes import Extreme
from .machine import machine
from .pool_first_flat import Flat
from .tables import Geometry


def window_of(plan: PoolPlan) -> Flat | None:
    """The window, where a plan has as many windows as pixels and few enough taps; else None."""
    axes = [axis for axis in plan.axes if isinstance(axis, StridedAxis)]
    if len(axes) < len(plan.axes) or plan.edge is not Edge.SKIP or plan.taps > pool_first_flat.MOST_TAPS:
        return None
    if any(axis.out != axis.size or axis.stride != 1 or axis.input_dilation != 1 for axis in axes):
        return None
    missing = (3 - len(axes)) * (1,)
    return Flat(
        (*missing, *(axis.kernel for axis in axes)),
        (*missing, *(axis.dilation for axis in axes)),
        (*(0 for _ in missing), *(axis.pad_lo for axis in axes)),
    )


def forward(plan: PoolPlan, spec: Extreme, shape: Any, planes: int) -> tuple[int, Geometry, int] | None:
    """The kernel's address, what it reads and its units for so many planes; None where another way is taken.

    `shape` is the plan's Shape3, whose windows all have a tap inside the input.
    """
    window = window_of(plan)
    if window is None or not pool_first_flat.takes(spec, machine()) or not planes:
        return None
    if any((table[:, 1] < 1).any() for table in shape.tables):
        return None
    table = pool_first_flat.masks(window, shape.sizes, planes, machine().lanes(spec.number.computed))
    if table is None:
        return None
    (address,) = functions(
        f"pool_flat_{plan.reduce}", (spec, window), lambda: pool_first_flat.forward(spec, window, machine()), ("forward",)
    )
    geometry = Geometry([*shape.fields(1, 1), 0, 0, 0, 0], [*shape.tables, table])
    return address, geometry, -(-planes // int(table[pool_first_flat.PER_UNIT]))
