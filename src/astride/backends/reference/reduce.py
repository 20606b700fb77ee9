"""Totals over trailing axes: x is read as (lead, rest), and each row becomes a number, summed in pairs in its own dtype."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...plan.reduce import ReducePlan, Total
from ..protocol import Array, Arrays, Kernel, Saved


def forward(plan: ReducePlan, *arrays: Array | None, out: Array, save: bool) -> tuple[Array, Saved | None]:
    """sum and mean keep only x's shape, the others x itself."""
    x = arrays[0]
    assert x is not None
    rows = x.reshape(math.prod(x.shape[: plan.axis]), math.prod(x.shape[plan.axis :]))
    if plan.total is Total.ASUM:
        rows = np.abs(rows)
    elif plan.total is Total.SUMSQ:
        rows = rows * rows
    out[...] = (rows.sum(axis=1) * x.dtype.type(plan.scale(x.shape))).reshape(out.shape)
    linear = plan.total in (Total.SUM, Total.MEAN)
    return out, Saved((x.shape,), x=None if linear else x) if save else None


def backward(plan: ReducePlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """dy spread over the row, times sign(x) for |x| (0 at 0) and 2 x for x^2."""
    if not want[0]:
        return (None,)
    shape = saved.shapes[0]
    assert shape is not None
    spread = dy.reshape(dy.shape + (1,) * (len(shape) - dy.ndim)) * dy.dtype.type(plan.scale(shape))
    if plan.total is Total.ASUM:
        assert saved.x is not None
        return (np.asarray(np.sign(saved.x) * spread),)
    if plan.total is Total.SUMSQ:
        assert saved.x is not None
        return (np.asarray(2 * saved.x * spread),)
    return (np.broadcast_to(spread, shape).copy(),)


KERNELS = (Kernel("numpy", forward, backward),)
