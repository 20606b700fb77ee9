"""Max pooling, and by the mirrored order min pooling: the extreme of each window, its gradient by the plan's tie rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...plan import PoolPlan
from ...plan.kinds import Nan, Tie
from ..protocol import Array, Arrays, Saved
from . import _extremes
from ._extreme_twice import twice_of
from ._pool_ladder import OneWindow, kernels, saved_record
from ._windows import PixelGradient, Place, as_channels_first, extension, taps

OFFSETS, COMPARED = frozenset({"offsets"}), frozenset({"x", "y"})
RECORDED = (Tie.RECORDED, Tie.NEAR)


def keeps(plan: PoolPlan) -> frozenset[str]:
    return OFFSETS if plan.tie.picks_one else COMPARED


def numbers(plan: PoolPlan, values: list[Any], place: Place, uniform: Any, dtype: np.dtype[Any]) -> tuple[Any, int]:
    return _extremes.best_of_numbers(plan, values, dtype)


def numbers_gradient(plan: PoolPlan, values: list[Any] | None, place: Place, y: Any, position: int, dy: float) -> list[float]:
    if plan.tie.picks_one:
        return [dy if tap == position else 0.0 for tap in range(len(place.offsets))]
    assert values is not None
    best = _extremes.compared_number(plan, values, y)
    winners = [_extremes.same_number(plan, value, best) for value in values]
    if plan.tie is Tie.EQUAL_SHARE:
        return [dy / sum(winners) * won if any(winners) else math.nan for won in winners]
    return [dy * won for won in winners]


def rows(plan: PoolPlan, window: Array, place: Place, uniform: Array | None) -> tuple[Array, Array | None]:
    return _extremes.best_of_rows(plan, window)


def rows_gradient(
    plan: PoolPlan, window: Array | None, place: Place, y: Array | None, position: Array | None, dy: Array
) -> Array:
    if position is not None:
        return np.where(np.arange(len(place.offsets)) == position[..., None], dy[..., None], dy.dtype.type(0))
    assert window is not None and y is not None
    best = y if plan.tie in RECORDED else _extreme_of(plan, window)
    winners = _extremes.same(plan, window, best[..., None])
    if plan.tie is Tie.EQUAL_SHARE:
        with np.errstate(divide="ignore", invalid="ignore"):  # a NaN window equals nothing: 0/0 is its gradient
            return np.asarray(winners * dy[..., None] / winners.sum(-1, keepdims=True), dy.dtype)
    return np.asarray(winners * dy[..., None], dy.dtype)


def _extreme_of(plan: PoolPlan, window: Array) -> Array:
    """The extreme of the taps themselves, whatever the start value."""
    o = _extremes.order(plan)
    if plan.nan is Nan.PROPAGATED:
        return np.asarray(o.keep.reduce(window, axis=-1))
    return np.asarray((np.fmax if o.sign > 0 else np.fmin).reduce(window, axis=-1))


def forward_im2col(
    plan: PoolPlan, x: Array, uniform: Array | None = None, *, out: Array, save: bool
) -> tuple[Array, Saved | None]:
    """One pass over the taps for the values, one for the offsets if they are kept."""
    grown = extension(plan.axes, plan.edge)
    xv = grown.grow(as_channels_first(x, plan.layout), plan.edge_value)
    yv = as_channels_first(out, plan.layout)
    every = taps(grown.axes)
    _extremes.scan_values(plan, xv, every, yv)
    if not save:
        return out, None
    offsets = _extremes.scan_offsets(plan, xv, every, yv.shape) if plan.tie.picks_one else None
    return out, saved_record(keeps(plan), x, None, out, offsets)


def backward_im2col(plan: PoolPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """For each tap, dy where that tap won (or matched), added to the pixels it reads."""
    if not want[0]:
        return (None, None)
    assert saved.shapes[0] is not None
    grown = extension(plan.axes, plan.edge)
    gradient = PixelGradient(saved.shapes[0], dy.dtype, plan.layout, grown, plan.accumulate)
    dyv = as_channels_first(dy, plan.layout)
    if saved.offsets is None:
        _add_to_matches(plan, saved, grown.grow, taps(grown.axes), dyv, gradient.total)
    else:
        for tap in taps(grown.axes):
            tap.add(gradient.total, np.where(tap.of(saved.offsets) == tap.offset, tap.of(dyv), dy.dtype.type(0)))
    return (gradient.finish(), None)


def _add_to_matches(plan: PoolPlan, saved: Saved, grow: Any, every: Sequence[Any], dy: Array, total: Array) -> None:
    """Rules by which every tap equal to the extreme (or to the recorded output) has a part."""
    assert saved.x is not None and saved.y is not None
    xv = grow(as_channels_first(saved.x, plan.layout), plan.edge_value)
    best = as_channels_first(saved.y, plan.layout)
    if plan.tie not in RECORDED:
        o = _extremes.order(plan)
        keep = o.keep if plan.nan is Nan.PROPAGATED else (np.fmax if o.sign > 0 else np.fmin)
        best = np.full(best.shape, o.worst(xv.dtype) if plan.nan is Nan.PROPAGATED else np.nan, xv.dtype)
        for tap in every:
            tap.put(best, keep(tap.of(best), tap.read(xv)))
    if plan.tie is Tie.EQUAL_SHARE:
        count = np.zeros(best.shape, dy.dtype)
        for tap in every:
            tap.put(count, tap.of(count) + (tap.read(xv) == tap.of(best)))
        with np.errstate(divide="ignore", invalid="ignore"):
            dy = dy / count
            dy = np.where(count == 0, np.array(np.nan, dy.dtype), dy)
        for tap in every:
            share = tap.of(dy)
            tap.add(total, np.where((tap.read(xv) == tap.of(best)) | np.isnan(share), share, dy.dtype.type(0)))
        return
    for tap in every:
        tap.add(total, np.where(_extremes.same(plan, tap.read(xv), tap.of(best)), tap.of(dy), dy.dtype.type(0)))


ONE_WINDOW = OneWindow(
    numbers,
    numbers_gradient,
    rows,
    rows_gradient,
    lambda plan, dtype, place: _extremes.empty_value(plan, dtype),
    keeps,
)

KERNELS = kernels(ONE_WINDOW, forward_im2col, backward_im2col, twice_of(rows_gradient))
