"""Where windows lie, as tables of integers that kernels read: computed once for a plan, whatever its axes are.

Two tables an axis, of i64. `windows`: for each window its first tap inside the input. `covers`: for each pixel the windows
that have it as a tap, and as which. Kernels loop over them, so strided, dilated and explicit axes are one to them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...plan import Axis, PoolPlan
from ...plan.kinds import Divisor
from ..reference._divisors import axis_divisors
from .edges import axes_read, taps_inside

Table = NDArray[np.int64]

WINDOW = 4
"""Numbers a window has: the pixel of its first tap inside the input, how many taps are inside, the number of the first,
and the axis's part of the divisor."""


def windows(plan: PoolPlan, a: int, *, close: bool = False) -> Table:
    """(out, WINDOW): the windows of one axis. With `close` taps are numbered as if those that no pixel meets were not there."""
    taps = taps_inside(axes_read(plan)[a])
    number = taps.number if taps.skip == 1 or not close else np.zeros_like(taps.number)
    divisor = np.ones_like(number) if plan.divisor is Divisor.OVERRIDE else axis_divisors(plan, a)
    return np.stack([taps.pixel, taps.count, number, divisor], 1)


COVER = 3
"""Numbers a cover has: the window, the number of the tap that the pixel is in it, and the axis's part of its share."""


def covers(axis: Axis, shares: Table) -> tuple[Table, Table]:
    """(first (size + 1), entries (n, COVER)): the windows that have pixel i as a tap, ascending, are entries first[i] to
    first[i + 1]. `shares` (out) is what an entry has as its share."""
    taps = taps_inside(axis)
    window = np.repeat(np.arange(axis.out, dtype=np.int64), taps.count)
    nth = np.arange(len(window)) - np.repeat(np.cumsum(taps.count) - taps.count, taps.count)
    tap, pixel = taps.number[window] + nth * taps.skip, taps.pixel[window] + nth * taps.step
    order = np.argsort(pixel, kind="stable")
    entries = np.stack([window, tap, shares[window]], 1)[order]
    first = np.searchsorted(pixel[order], np.arange(axis.size + 1))
    return first.astype(np.int64), entries


class Geometry:
    """The numbers of one plan in one block of memory: fields by position, then tables, which fields name by offset."""

    def __init__(self, fields: list[int], tables: list[Table]) -> None:
        offsets, at = [], 8 * (len(fields) + len(tables))
        for table in tables:
            offsets.append(at)
            at += table.nbytes
        parts: list[Any] = [np.array([*fields, *offsets], np.int64), *(table.ravel() for table in tables)]
        self.memory = np.concatenate(parts).astype(np.int64)
        self.address = int(self.memory.ctypes.data)
