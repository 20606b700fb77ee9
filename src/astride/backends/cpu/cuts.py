"""How a count is cut into parts that are nearly equal."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def evenly(count: int, step: int, wanted: int) -> tuple[int, int]:
    """About so many parts of a count, each but the last of the same multiple of `step`: the size of one, and how many parts."""
    steps = -(-count // step)
    size = -(-steps // max(min(wanted, steps), 1)) * step
    return size, -(-count // size)


def at_most(count: int, step: int, most: int) -> tuple[int, int]:
    """The same, no larger than `most`, but one step at least."""
    steps = -(-count // step)
    return evenly(count, step, -(-steps // max(most // step, 1)))


def bounds_of(count: int, parts: int) -> NDArray[np.int64]:
    """Where each of so many parts begins, and behind them where the last ends."""
    return np.arange(parts + 1, dtype=np.int64) * count // parts
