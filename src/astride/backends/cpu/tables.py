"""Where windows lie, as tables of integers that kernels read: computed once for a plan, whatever its axes are.

Two tables an axis, of i64. `windows`: for each window its first tap inside the input. `covers`: for each pixel the windows
that have it as a tap, and as which. Kernels loop over them, so strided, dilated and explicit axes are one to them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...plan import Axis, ExplicitAxis, PoolPlan
from ...plan.kinds import Divisor
from ..reference._divisors import axis_divisors
from ..reference._windows import counts_inside

Table = NDArray[np.int64]

WINDOW = 4
"""Numbers a window has: the pixel of its first tap inside the input, how many taps are inside, the number of the first,
and the axis's part of the divisor."""


def windows(plan: PoolPlan, a: int) -> Table:
    """(out, WINDOW): the windows of one axis."""
    axis = plan.axes[a]
    table = np.zeros((axis.out, WINDOW), np.int64)
    if isinstance(axis, ExplicitAxis):
        table[:, 0] = axis.starts
    else:
        start = np.arange(axis.out, dtype=np.int64) * axis.stride - axis.pad_lo
        table[:, 2] = np.maximum(-(start // axis.dilation), 0)
        table[:, 0] = start + table[:, 2] * axis.dilation
    table[:, 1] = counts_inside(axis)
    table[:, 3] = 1 if plan.divisor is Divisor.OVERRIDE else axis_divisors(plan, a)
    return table


COVER = 3
"""Numbers a cover has: the window, the number of the tap that the pixel is in it, and the axis's part of its share."""


def covers(axis: Axis, shares: Table) -> tuple[Table, Table]:
    """(first (size + 1), entries (n, COVER)): the windows that have pixel i as a tap, ascending, are entries first[i] to
    first[i + 1]. `shares` (out) is what an entry has as its share."""
    if isinstance(axis, ExplicitAxis):
        starts, ends = np.array(axis.starts, np.int64), np.array(axis.ends, np.int64)
        step = 1
    else:
        starts = np.arange(axis.out, dtype=np.int64) * axis.stride - axis.pad_lo
        ends, step = starts + axis.reach, axis.dilation
    # A far larger kernel than input has few taps inside: only those are listed.
    begin = np.maximum(-(starts // step), 0)
    end = np.maximum(-((starts - np.minimum(ends, axis.size)) // step), begin)
    counts = end - begin
    window = np.repeat(np.arange(axis.out, dtype=np.int64), counts)
    tap = np.arange(len(window)) - np.repeat(np.cumsum(counts) - counts, counts) + begin[window]
    pixel = starts[window] + tap * step
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
