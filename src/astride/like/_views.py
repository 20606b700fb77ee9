"""Other layouts as views of the canonical ones, recorded so that gradients return in the caller's layout."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import tape
from ..backends.protocol import Array


def moved(array: Array, order: Sequence[int]) -> Array:
    """`array.transpose(order)`."""
    order = tuple(int(i) for i in order)
    back = tuple(int(i) for i in np.argsort(order))
    return tape.view(array, lambda a: a.transpose(order), lambda g: np.ascontiguousarray(g.transpose(back)))


def shaped(array: Array, shape: Sequence[int]) -> Array:
    """`array.reshape(shape)`, a copy where the strides allow no view."""
    before = array.shape
    return tape.view(array, lambda a: a.reshape(tuple(shape)), lambda g: g.reshape(before))


def filters_last(w: Array) -> Array:
    """(*kernel, I, O) as (O, I, *kernel)."""
    return moved(w, (w.ndim - 1, w.ndim - 2, *range(w.ndim - 2)))


def filters_between(w: Array) -> Array:
    """(O, *kernel, I) as (O, I, *kernel)."""
    return moved(w, (0, w.ndim - 1, *range(1, w.ndim - 1)))


def depthwise(w: Array) -> Array:
    """(*kernel, C, multiplier) as (C * multiplier, 1, *kernel): output channel c * multiplier + m."""
    rank = w.ndim - 2
    return shaped(moved(w, (rank, rank + 1, *range(rank))), (w.shape[rank] * w.shape[rank + 1], 1, *w.shape[:rank]))
