"""Comparisons that raise. tests/test_compare.py shows that each of them can fail."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from astride.plan import ConvPlan, Plan, PoolPlan


def assert_same(actual: Any, expected: Any, where: str = "") -> None:
    """Equal shape, dtype and values; NaN equals NaN."""
    _same_kind(actual, expected, where)
    a, e = _wide(actual), _wide(expected)
    differs = ~((a == e) | (np.isnan(a) & np.isnan(e)))
    if differs.any():
        place = tuple(int(i) for i in np.argwhere(differs)[0])
        raise AssertionError(
            f"{where}: {int(differs.sum())} of {a.size} values differ; at {place} {a[place]!r} is not {e[place]!r}"
        )


def assert_close(actual: Any, expected: Any, tolerance: float, where: str = "", *, scale: float = 0.0) -> None:
    """Equal shape and dtype; NaN and infinities in the same places; the rest within `tolerance` of the largest finite value.

    `scale` is a greater measure, for sums whose terms may cancel.
    """
    _same_kind(actual, expected, where)
    assert_near(actual, expected, tolerance, where, scale=scale)


def assert_near(actual: Any, expected: Any, tolerance: float, where: str = "", *, scale: float = 0.0) -> None:
    """As assert_close, whatever the dtypes: for values recorded as decimal text."""
    a, e = _wide(actual), _wide(expected)
    if a.shape != e.shape:
        raise AssertionError(f"{where}: shape {a.shape} is not {e.shape}")
    finite = np.isfinite(e)
    odd = ~finite & ~((a == e) | (np.isnan(a) & np.isnan(e))) | (finite & ~np.isfinite(a))
    if odd.any():
        place = tuple(int(i) for i in np.argwhere(odd)[0])
        raise AssertionError(f"{where}: at {place} {a[place]!r} is not {e[place]!r}")
    largest = float(np.abs(e[finite]).max(initial=scale))
    off = np.where(finite, np.abs(np.where(finite, a, 0) - np.where(finite, e, 0)), 0)
    if float(off.max(initial=0.0)) > tolerance * largest:
        place = tuple(int(i) for i in np.unravel_index(int(off.argmax()), off.shape))
        raise AssertionError(
            f"{where}: at {place} {a[place]!r} is not {e[place]!r}, {off[place] / max(largest, 1e-300):.2e} of the largest"
        )


def assert_unchanged(array: Any, before: bytes, where: str = "") -> None:
    """The array's elements are bit by bit what `array.tobytes()` was before."""
    if array.tobytes() != before:
        raise AssertionError(f"{where}: an input array was changed")


def tolerance_of(plan: Plan) -> float:
    """How far two right orders of summation may lie apart, relative to the largest value: terms times eps, a few more.

    Integers are exact.
    """
    sums = plan.accumulate if isinstance(plan, ConvPlan | PoolPlan) else plan.dtype
    if np.dtype(plan.dtype).kind in "iu":
        return 0.0
    eps, own = (float(ml_dtypes.finfo(np.dtype(dtype)).eps) for dtype in (sums, plan.dtype))
    terms = 1
    if isinstance(plan, ConvPlan | PoolPlan):
        for axis in plan.axes:
            terms *= max(axis.kernel, 1)
    if isinstance(plan, ConvPlan):
        terms *= max(plan.in_channels, plan.out_channels, 1)
    return (terms + 8) * eps * 8 + (own if own > eps else 0.0)


def _same_kind(actual: Any, expected: Any, where: str) -> None:
    if actual is None or expected is None:
        if actual is not expected:
            raise AssertionError(f"{where}: {actual!r} is not {expected!r}")
        raise AssertionError(f"{where}: nothing to compare")
    if actual.shape != expected.shape:
        raise AssertionError(f"{where}: shape {actual.shape} is not {expected.shape}")
    if actual.dtype != expected.dtype:
        raise AssertionError(f"{where}: dtype {actual.dtype} is not {expected.dtype}")


def _wide(array: Any) -> Any:
    array = np.asarray(array)
    return array.astype(np.float64) if array.dtype.kind not in "iub" else array.astype(object).astype(np.float64)
