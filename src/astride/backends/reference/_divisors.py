"""What each window's sum is divided by, once for one window in Python numbers and once for all windows."""

from __future__ import annotations

import math
from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

from ...plan import Axis, PoolPlan, StridedAxis
from ...plan.kinds import Divisor
from ._windows import Indices, counts_between, counts_inside


def divisor_of(plan: PoolPlan, window: tuple[int, ...]) -> int:
    """The divisor of one window."""
    if plan.divisor is Divisor.OVERRIDE:
        return plan.divisor_override
    return math.prod(_count(plan, a, axis, i) for a, (axis, i) in enumerate(zip(plan.axes, window, strict=True)))


def divisors(plan: PoolPlan) -> NDArray[np.int64]:
    """The divisors of all windows, (*out): per-axis counts multiplied."""
    if plan.divisor is Divisor.OVERRIDE:
        return np.full([axis.out for axis in plan.axes], plan.divisor_override, np.int64)
    total = np.ones((1,) * len(plan.axes), np.int64)
    for a, axis in enumerate(plan.axes):
        shape = [1] * len(plan.axes)
        shape[a] = axis.out
        total = total * axis_divisors(plan, a).reshape(shape)
    return total


def inside(plan: PoolPlan) -> NDArray[np.int64]:
    """Taps inside the input of all windows, (*out)."""
    total = np.ones((1,) * len(plan.axes), np.int64)
    for a, axis in enumerate(plan.axes):
        shape = [1] * len(plan.axes)
        shape[a] = axis.out
        total = total * counts_inside(axis).reshape(shape)
    return total


def _count(plan: PoolPlan, a: int, axis: Axis, window: int) -> int:
    taps = axis.taps(window)
    if plan.divisor is Divisor.KERNEL:
        return axis.kernel if isinstance(axis, StridedAxis) else len(taps)
    if plan.divisor is Divisor.CAFFE:
        assert isinstance(axis, StridedAxis)
        return min(taps.start + axis.kernel, axis.size + axis.pad_lo) - taps.start
    lo, hi = _padded(plan, a, axis) if plan.divisor is Divisor.PADDED else (0, axis.stretched)
    taps = taps[bisect_left(taps, lo) : bisect_left(taps, hi)]
    step = axis.input_dilation if isinstance(axis, StridedAxis) else 1
    return len(taps) if plan.divisor is Divisor.PADDED or step == 1 else sum(p % step == 0 for p in taps)


def axis_divisors(plan: PoolPlan, a: int) -> Indices:
    """One axis's part of the divisors, (out); their product over the axes is the divisor."""
    axis = plan.axes[a]
    if plan.divisor is Divisor.VALID:
        return counts_inside(axis)
    if not isinstance(axis, StridedAxis):
        return np.array(axis.ends, np.int64) - np.array(axis.starts, np.int64)
    start = np.arange(axis.out, dtype=np.int64) * axis.stride - axis.pad_lo
    if plan.divisor is Divisor.KERNEL:
        return np.full(axis.out, axis.kernel, np.int64)
    if plan.divisor is Divisor.CAFFE:
        return np.minimum(start + axis.kernel, axis.size + axis.pad_lo) - start
    return counts_between(axis, *_padded(plan, a, axis))


def _padded(plan: PoolPlan, a: int, axis: Axis) -> tuple[int, int]:
    """The input with the padding the divisor counts."""
    if plan.divisor_pad is not None:
        lo, hi = plan.divisor_pad[a]
    elif isinstance(axis, StridedAxis):
        lo, hi = axis.pad_lo, axis.pad_hi
    else:
        lo, hi = 0, 0
    return -lo, axis.stretched + hi
