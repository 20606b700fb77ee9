"""Batch normalization: per place of one axis, by the statistics of all the rest or by given ones.

With s = 1 / sqrt(variance + eps) and y = (x - mean) * s, where m() is the mean over the other axes:
statistics of the batch: dx = s * (dy - m(dy) - y * m(dy * y)); given ones, or no way through them: dx = s * dy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...plan.norms import BatchNormPlan
from ..protocol import Array, Arrays, Kernel, Saved


def forward(plan: BatchNormPlan, *arrays: Array | None, out: Array, save: bool) -> tuple[Array, Saved | None]:
    """Statistics are summed in float64. mean and variance are kept (`extra`), and x."""
    x, mean, variance = (*arrays, None, None)[:3]
    assert x is not None
    shapes = (x.shape, None if mean is None else mean.shape, None if variance is None else variance.shape)
    with np.errstate(all="ignore"):
        if mean is None or variance is None:
            mean = _mean(plan, x)
            np.subtract(x, _spread(plan, mean, x), out=out)
            variance = _mean(plan, np.square(out))
        else:
            np.subtract(x, _spread(plan, mean, x), out=out)
        scale = _scale(plan, variance)
        out *= _spread(plan, scale, x)
    return out, Saved(shapes, x=x, extra={"mean": mean, "variance": variance}) if save else None


def backward(plan: BatchNormPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """Where mean and variance were given, their gradients too: -s * sum(dy) and -s^2 / 2 * sum(dy * y)."""
    x, mean, variance = saved.x, saved.extra["mean"], saved.extra["variance"]
    assert x is not None
    through = plan.through and saved.shapes[1] is None
    dx = d_mean = d_variance = None
    with np.errstate(all="ignore"):
        scale = _scale(plan, variance)
        wide = _spread(plan, scale, x)
        if want[0]:
            dx = dy * wide
        if (want[0] and through) or want[2]:
            y = x - _spread(plan, mean, x)
            y *= wide
            along = _sum(plan, dy * y)
            if dx is not None and through:
                count = dy.dtype.type(x.size / max(len(scale), 1))
                y *= _spread(plan, along * scale / count, x)
                dx -= y
                dx -= _spread(plan, _sum(plan, dy) * scale / count, x)
            if want[2]:
                d_variance = dy.dtype.type(-0.5) * scale * scale * along
        if want[1]:
            d_mean = -scale * _sum(plan, dy)
    return dx, d_mean, d_variance


def _scale(plan: BatchNormPlan, variance: Array) -> Array:
    scale: Array = 1 / np.sqrt(variance + variance.dtype.type(plan.eps))
    return scale


def _spread(plan: BatchNormPlan, values: Array, x: Array) -> Array:
    """A view that NumPy broadcasts along the plan's axis of x."""
    return values.reshape(-1, *[1] * (x.ndim - plan.axis - 1))


def _sum(plan: BatchNormPlan, values: Array) -> Array:
    others = tuple(i for i in range(values.ndim) if i != plan.axis)
    return np.asarray(values.sum(axis=others, dtype=np.float64)).astype(values.dtype)


def _mean(plan: BatchNormPlan, values: Array) -> Array:
    """The mean over all other axes; of nothing it is NaN."""
    others = tuple(i for i in range(values.ndim) if i != plan.axis)
    count = values.size / max(values.shape[plan.axis], 1)
    return (np.asarray(values.sum(axis=others, dtype=np.float64)) / np.float64(count)).astype(values.dtype)


KERNELS = (Kernel("numpy", forward, backward),)
