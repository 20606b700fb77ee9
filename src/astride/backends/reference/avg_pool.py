"""Average pooling: the sum of each window over the plan's divisor; the gradient in equal shares to the real taps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...plan import PoolPlan
from ...plan.kinds import Empty
from ..protocol import Array, Arrays, Saved
from ._divisors import divisor_of, divisors, inside
from ._pool_ladder import OneWindow, kernels, saved_record
from ._windows import PixelGradient, Place, as_channels_first, extension, taps


def keeps(plan: PoolPlan) -> frozenset[str]:
    return frozenset()


def numbers(plan: PoolPlan, values: list[Any], place: Place, uniform: Any, dtype: np.dtype[Any]) -> tuple[float, int]:
    return _divide(math.fsum(values) if all(map(math.isfinite, values)) else sum(values), divisor_of(plan, place.window)), -1


def numbers_gradient(plan: PoolPlan, values: Any, place: Place, y: Any, position: int, dy: float) -> list[float]:
    return [_divide(dy, divisor_of(plan, place.window))] * len(place.offsets)


def rows(plan: PoolPlan, window: Array, place: Place, uniform: Array | None) -> tuple[Array, None]:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(window.sum(-1, dtype=plan.accumulate) / _typed(plan, divisor_of(plan, place.window))), None


def rows_gradient(plan: PoolPlan, window: Any, place: Place, y: Any, position: Any, dy: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        share = dy.astype(plan.accumulate, copy=False) / _typed(plan, divisor_of(plan, place.window))
    return np.repeat(share[..., None], len(place.offsets), axis=-1)


def empty(plan: PoolPlan, dtype: np.dtype[Any], place: Place) -> float:
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
    with np.errstate(divide="ignore", invalid="ignore"):
        yv[...] = total / divisors(plan).astype(plan.accumulate)
    unpopulated = inside(plan) == 0
    if plan.empty is not Empty.QUOTIENT and grown.sources is None and unpopulated.any():
        yv[..., unpopulated] = np.nan if plan.empty is Empty.NAN else 0
    return out, saved_record(keeps(plan), x, None, out, None) if save else None


def backward_im2col(plan: PoolPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """dy over the divisor, added to every real tap."""
    if not want[0]:
        return (None, None)
    assert saved.shapes[0] is not None
    grown = extension(plan.axes, plan.edge)
    gradient = PixelGradient(saved.shapes[0], dy.dtype, plan.layout, grown, plan.accumulate)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = as_channels_first(dy, plan.layout).astype(plan.accumulate, copy=False) / divisors(plan).astype(plan.accumulate)
    for tap in taps(grown.axes):
        tap.add(gradient.total, tap.of(share))
    return (gradient.finish(), None)


def _typed(plan: PoolPlan, divisor: int) -> Any:
    return np.dtype(plan.accumulate).type(divisor)


def _divide(total: float, divisor: int) -> float:
    """Division as floating point has it: 0/0 is NaN, not an exception."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.float64(total) / np.float64(divisor))


KERNELS = kernels(OneWindow(numbers, numbers_gradient, rows, rows_gradient, empty, keeps), forward_im2col, backward_im2col)
