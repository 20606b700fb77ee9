"""Average pooling: the sum of each window over the plan's divisor; the gradient in equal shares to the real taps.

Integers are summed and divided as integers, the rest rounded as the plan says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...plan import PoolPlan
from ...plan.kinds import Empty, Rounding
from ..protocol import Array, Arrays, Saved
from ._divisors import divisor_of, divisors, inside
from ._pool_ladder import OneWindow, kernels, saved_record
from ._windows import PixelGradient, Place, as_channels_first, extension, taps


def keeps(plan: PoolPlan) -> frozenset[str]:
    return frozenset()


def numbers(plan: PoolPlan, values: list[Any], place: Place, uniform: Any, dtype: np.dtype[Any]) -> tuple[float, int]:
    if dtype.kind in "iu":
        return _whole(plan, sum(values), divisor_of(plan, place.window)), -1
    return _divide(math.fsum(values) if all(map(math.isfinite, values)) else sum(values), divisor_of(plan, place.window)), -1


def numbers_gradient(plan: PoolPlan, values: Any, place: Place, y: Any, position: int, dy: float) -> list[float]:
    if np.dtype(plan.accumulate).kind in "iu":
        return [_whole(plan, int(dy), divisor_of(plan, place.window))] * len(place.offsets)
    return [_divide(dy, divisor_of(plan, place.window))] * len(place.offsets)


def rows(plan: PoolPlan, window: Array, place: Place, uniform: Array | None) -> tuple[Array, None]:
    return _quotients(plan, window.sum(-1, dtype=plan.accumulate), divisor_of(plan, place.window)), None


def rows_gradient(plan: PoolPlan, window: Any, place: Place, y: Any, position: Any, dy: Array) -> Array:
    share = _quotients(plan, dy.astype(plan.accumulate, copy=False), divisor_of(plan, place.window))
    return np.repeat(share[..., None], len(place.offsets), axis=-1)


def empty(plan: PoolPlan, dtype: np.dtype[Any], place: Place) -> float:
    if dtype.kind in "iu":
        return 0
    if plan.empty is Empty.QUOTIENT:
        return _divide(0.0, divisor_of(plan, place.window))
    return math.nan if plan.empty is Empty.NAN else 0.0


def forward_im2col(
    plan: PoolPlan, x: Array, uniform: Array | None = None, *, out: Array, save: bool
) -> tuple[Array, Saved | None]:
    """Taps summed in row-major order, then one division."""
    grown = extension(plan.axes, plan.edge)
    xv = grown.grow(as_channels_first(x, plan.layout), plan.edge_value)
    yv = as_channels_first(out, plan.layout)
    total = np.zeros(yv.shape, plan.accumulate)
    for tap in taps(grown.axes):
        tap.put(total, tap.of(total) + tap.read(xv))
    yv[...] = _quotients(plan, total, divisors(plan))
    unpopulated = inside(plan) == 0
    if plan.empty is not Empty.QUOTIENT and grown.sources is None and unpopulated.any():
        yv[..., unpopulated] = np.nan if plan.empty is Empty.NAN and yv.dtype.kind not in "iu" else 0
    return out, saved_record(keeps(plan), x, None, out, None) if save else None


def backward_im2col(plan: PoolPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """dy over the divisor, added to every real tap."""
    if not want[0]:
        return (None, None)
    assert saved.shapes[0] is not None
    grown = extension(plan.axes, plan.edge)
    gradient = PixelGradient(saved.shapes[0], dy.dtype, plan.layout, grown, plan.accumulate)
    share = _quotients(plan, as_channels_first(dy, plan.layout).astype(plan.accumulate, copy=False), divisors(plan))
    for tap in taps(grown.axes):
        tap.add(gradient.total, tap.of(share))
    return (gradient.finish(), None)


def twice(plan: PoolPlan, dy: Array, saved: Saved, cotangents: Arrays, *, want: Sequence[bool]) -> tuple[Array, Arrays]:
    """The gradient is linear in dy and does not see x: dy's own is the average of the cotangent."""
    assert cotangents[0] is not None
    linear = replace(plan, empty=Empty.ZERO, edge_value=0.0)
    return forward_im2col(linear, cotangents[0], out=np.empty(dy.shape, dy.dtype), save=False)[0], (None, None)


def _quotients(plan: PoolPlan, total: Array, divisor: Any) -> Array:
    """Sums over divisors, in the dtype sums are formed in; integers as `_whole` divides them, 0 over 0 being 0."""
    wide = np.dtype(plan.accumulate)
    if wide.kind not in "iu":
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(total / np.asarray(divisor, wide))
    count = np.abs(np.asarray(divisor, np.int64))
    half = count // 2 if plan.rounding is Rounding.HALF_AWAY else np.zeros_like(count)
    whole = total.astype(np.uint64 if wide.kind == "u" else np.int64)
    magnitude = np.abs(whole) + half.astype(whole.dtype)
    quotient = np.floor_divide(magnitude, np.maximum(count, 1).astype(whole.dtype))
    return np.asarray(np.where((whole < 0) != (np.asarray(divisor) < 0), np.negative(quotient), quotient).astype(wide))


def _whole(plan: PoolPlan, total: int, divisor: int) -> int:
    """The rounded quotient of a sum that has wrapped around in the dtype sums are formed in."""
    limits = np.iinfo(plan.accumulate)
    total = (total - int(limits.min)) % 2**limits.bits + int(limits.min)
    half = abs(divisor) // 2 if plan.rounding is Rounding.HALF_AWAY else 0
    quotient = (abs(total) + half) // max(abs(divisor), 1)
    return -quotient if (total < 0) != (divisor < 0) else quotient


def _divide(total: float, divisor: int) -> float:
    """Division as floating point has it: 0/0 is NaN, not an exception."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.float64(total) / np.float64(divisor))


KERNELS = kernels(OneWindow(numbers, numbers_gradient, rows, rows_gradient, empty, keeps), forward_im2col, backward_im2col, twice)
