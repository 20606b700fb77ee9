"""Mean and variance normalization of rows: each row less its mean, over its standard deviation.

With d = deviation + eps and y = (x - mean) / d: dx = (dy - m(dy) - f * y * m(dy * y)) / d, where m() is the mean of a row.
The derivative has f = d / deviation; Caffe's gradient has f = 1, which is the same only where eps is 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...plan.norms import MvnPlan
from ..protocol import Array, Arrays, Kernel, Saved


def forward(plan: MvnPlan, *arrays: Array | None, out: Array, save: bool) -> tuple[Array, Saved | None]:
    """Means are summed in float64. Kept are x and each row's mean and deviation."""
    x = arrays[0]
    assert x is not None
    rows = _rows(plan, x)
    with np.errstate(all="ignore"):
        mean = _mean(rows)
        centred = rows - mean
        deviation = np.sqrt(_mean(np.square(centred)))
        if plan.normalize_variance:
            centred /= deviation + x.dtype.type(plan.eps)
    out[...] = centred.reshape(x.shape)
    return out, Saved((x.shape,), x=x, extra={"mean": mean, "deviation": deviation}) if save else None


def backward(plan: MvnPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """In a constant row, whose deviation is 0, it is (dy - m(dy)) / eps."""
    if not want[0]:
        return (None,)
    x, mean, deviation = saved.x, saved.extra["mean"], saved.extra["deviation"]
    assert x is not None
    slopes = _rows(plan, dy)
    with np.errstate(all="ignore"):
        dx = slopes - _mean(slopes)
        if plan.normalize_variance:
            divisor = deviation + x.dtype.type(plan.eps)
            y = (_rows(plan, x) - mean) / divisor
            inner = y * _mean(slopes * y)
            if plan.exact:
                # a constant row has y = 0, whatever the factor
                inner *= np.where(deviation > 0, divisor / deviation, 1)
            dx -= inner
            dx /= divisor
    return (dx.reshape(x.shape),)


def _rows(plan: MvnPlan, x: Array) -> Array:
    """Everything from the plan's axis on as one row."""
    return x.reshape(math.prod(x.shape[: plan.axis]), math.prod(x.shape[plan.axis :]))


def _mean(rows: Array) -> Array:
    """Of each row, as a column; of nothing it is NaN."""
    mean: Array = rows.sum(axis=1, keepdims=True, dtype=np.float64) / np.float64(rows.shape[1])
    return mean.astype(rows.dtype)


KERNELS = (Kernel("numpy", forward, backward),)
