"""Local response normalization: sums over windows as shifted slices added up, one axis after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...plan.norms import LrnPlan
from ..protocol import Array, Arrays, Kernel, Saved


def forward(plan: LrnPlan, *arrays: Array | None, out: Array, save: bool) -> tuple[Array, Saved | None]:
    """The divisor's base is kept, and x."""
    x = arrays[0]
    assert x is not None
    real = x.dtype.type
    with np.errstate(all="ignore"):
        base = window_sum(np.square(x), plan.axes, plan.before, plan.after)
        base *= real(plan.alpha)
        base += real(plan.k)
        np.multiply(x, np.power(base, real(-plan.beta)), out=out)
    return out, Saved((x.shape,), x=x, extra={"base": base}) if save else None


def backward(plan: LrnPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """dy * base^-beta - 2 alpha beta x * (the sum of dy * y / base over all windows that x lies in)."""
    if not want[0]:
        return (None,)
    x, base = saved.x, saved.extra["base"]
    assert x is not None
    real = x.dtype.type
    with np.errstate(all="ignore"):
        dx = dy * np.power(base, real(-plan.beta))
        # x lies in the windows that reach back to it, so that before and after change places
        sums = window_sum(dx * x / base, plan.axes, plan.after, plan.before)
        dx -= real(2 * plan.alpha * plan.beta) * x * sums
    return (dx,)


def window_sum(values: Array, axes: Sequence[int], before: int, after: int) -> Array:
    """At every place the sum over the places from `before` it to `after` it, in each axis."""
    for axis in axes:
        lines = np.moveaxis(values, axis, 0)
        total = np.zeros_like(values)
        target = np.moveaxis(total, axis, 0)
        size = len(lines)
        for shift in range(-min(before, size), min(after, size) + 1):
            low, high = max(0, -shift), size - max(0, shift)
            target[low:high] += lines[low + shift : high + shift]
        values = total
    return values


KERNELS = (Kernel("numpy", forward, backward),)
