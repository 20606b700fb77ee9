"""Stochastic pooling: in training one tap drawn in proportion to its activation, at test time their weighted mean.

Training takes a draw r in (0, 1] per output. The taps are summed in row-major order, and the first one whose running
sum reaches r * sum is drawn. A window of zeros draws its first tap. With negative activations the running sum can
fall; the first crossing is drawn, and where there is none the output is 0 and no gradient returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...plan import PoolPlan
from ...plan.kinds import Reduce
from ..protocol import Array, Arrays, Saved, no_offset
from ._extreme_twice import twice_of
from ._pool_ladder import OneWindow, kernels, new_offsets, saved_record
from ._windows import PixelGradient, Place, as_channels_first, extension, taps


def keeps(plan: PoolPlan) -> frozenset[str]:
    return frozenset({"offsets"}) if plan.reduce is Reduce.STOCHASTIC else frozenset({"x", "y"})


def numbers(plan: PoolPlan, values: list[Any], place: Place, uniform: Any, dtype: np.dtype[Any]) -> tuple[float, int]:
    number, limit = np.dtype(plan.accumulate).type, np.dtype(plan.threshold).type
    total = number(0)
    for value in values:
        total = total + number(value)
    if plan.reduce is Reduce.STOCHASTIC_MEAN:
        return (float(sum(v * v for v in values) / total) if total > 0 else 0.0), -1
    threshold = limit(number(uniform) * total)
    running = number(0)
    for position, value in enumerate(values):
        running = running + number(value)
        if running >= threshold:
            return value, position
    return 0.0, -1


def numbers_gradient(plan: PoolPlan, values: list[Any] | None, place: Place, y: Any, position: int, dy: float) -> list[float]:
    if plan.reduce is Reduce.STOCHASTIC:
        return [dy if tap == position else 0.0 for tap in range(len(place.offsets))]
    assert values is not None
    total = sum(values)
    return [(2 * v - y) / total * dy if total > 0 else 0.0 for v in values]


def rows(plan: PoolPlan, window: Array, place: Place, uniform: Array | None) -> tuple[Array, Array | None]:
    running = np.cumsum(window, axis=-1, dtype=plan.accumulate)
    total = running[..., -1]
    if plan.reduce is Reduce.STOCHASTIC_MEAN:
        squares = np.square(window, dtype=plan.accumulate).sum(-1)
        return np.divide(squares, total, out=np.zeros_like(total), where=total > 0), None
    assert uniform is not None
    threshold = (uniform.astype(plan.accumulate, copy=False) * total).astype(plan.threshold)
    reached = running >= threshold[..., None]
    position = np.where(reached.any(-1), np.argmax(reached, axis=-1), -1)
    value = np.take_along_axis(window, np.maximum(position, 0)[..., None], axis=-1)[..., 0]
    return np.where(position < 0, window.dtype.type(0), value), position


def rows_gradient(
    plan: PoolPlan, window: Array | None, place: Place, y: Array | None, position: Array | None, dy: Array
) -> Array:
    if position is not None:
        return np.where(np.arange(len(place.offsets)) == position[..., None], dy[..., None], dy.dtype.type(0))
    assert window is not None and y is not None
    total = window.sum(-1, dtype=plan.accumulate)[..., None]
    slope = np.divide(2 * window - y[..., None], total, out=np.zeros(window.shape, total.dtype), where=total > 0)
    return np.asarray(slope * dy[..., None])


def empty(plan: PoolPlan, dtype: np.dtype[Any], place: Place) -> float:
    return 0.0


def forward_im2col(
    plan: PoolPlan, x: Array, uniform: Array | None = None, *, out: Array, save: bool
) -> tuple[Array, Saved | None]:
    """One pass over the taps for the sums, one for the first tap that reaches the threshold."""
    xv = as_channels_first(x, plan.layout)
    yv = as_channels_first(out, plan.layout)
    every = taps(plan.axes)
    total = np.zeros(yv.shape, plan.accumulate)
    squares = np.zeros(yv.shape, plan.accumulate)
    for tap in every:
        tap.put(total, tap.of(total) + tap.read(xv))
        if plan.reduce is Reduce.STOCHASTIC_MEAN:
            tap.put(squares, tap.of(squares) + np.square(tap.read(xv), dtype=plan.accumulate))
    if plan.reduce is Reduce.STOCHASTIC_MEAN:
        yv[...] = np.divide(squares, total, out=np.zeros_like(total), where=total > 0)
        return out, saved_record(keeps(plan), x, None, out, None) if save else None
    assert uniform is not None
    threshold = (as_channels_first(uniform, plan.layout).astype(plan.accumulate, copy=False) * total).astype(plan.threshold)
    offsets = new_offsets(plan, out)
    running = np.zeros(yv.shape, plan.accumulate)
    yv[...] = 0
    for tap in every:
        tap.put(running, tap.of(running) + tap.read(xv))
        drawn = (tap.of(running) >= tap.of(threshold)) & (tap.of(offsets) == no_offset(offsets.dtype))
        tap.put(offsets, np.where(drawn, np.array(tap.offset, offsets.dtype), tap.of(offsets)))
        tap.put(yv, np.where(drawn, tap.read(xv), tap.of(yv)))
    return out, saved_record(keeps(plan), x, uniform, out, offsets) if save else None


def backward_im2col(plan: PoolPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """dy to the drawn tap; at test time the derivative of sum x^2 / sum x."""
    if not want[0]:
        return (None, None)
    assert saved.shapes[0] is not None
    grown = extension(plan.axes, plan.edge)
    gradient = PixelGradient(saved.shapes[0], dy.dtype, plan.layout, grown, plan.accumulate)
    dyv = as_channels_first(dy, plan.layout)
    if saved.offsets is not None:
        for tap in taps(plan.axes):
            tap.add(gradient.total, np.where(tap.of(saved.offsets) == tap.offset, tap.of(dyv), dy.dtype.type(0)))
        return (gradient.finish(), None)
    assert saved.x is not None and saved.y is not None
    xv, yv = as_channels_first(saved.x, plan.layout), as_channels_first(saved.y, plan.layout)
    total = np.zeros(yv.shape, plan.accumulate)
    for tap in taps(plan.axes):
        tap.put(total, tap.of(total) + tap.read(xv))
    for tap in taps(plan.axes):
        part = tap.of(total)
        slope = np.divide(2 * tap.read(xv) - tap.of(yv), part, out=np.zeros_like(part), where=part > 0)
        tap.add(gradient.total, slope * tap.of(dyv))
    return (gradient.finish(), None)


def twice(plan: PoolPlan, dy: Array, saved: Saved, cotangents: Arrays, *, want: Sequence[bool]) -> tuple[Array, Arrays]:
    """Of a draw as of a maximum. At test time, with T = sum x, c the cotangent, C = sum c and X = sum c x, the gradient gives
    dy s, s = (2X - yC)/T, whose derivative by dy is s and by x is dy/T (2c - C(2x - y)/T - s)."""
    if saved.offsets is not None:
        return drawn_twice(plan, dy, saved, cotangents, want=want)
    assert cotangents[0] is not None and saved.x is not None and saved.y is not None and saved.shapes[0] is not None
    cv, xv, yv, dyv = (as_channels_first(a, plan.layout) for a in (cotangents[0], saved.x, saved.y, dy))
    total, count, weighed = (np.zeros(yv.shape, plan.accumulate) for _ in range(3))
    for tap in taps(plan.axes):
        tap.put(total, tap.of(total) + tap.read(xv))
        tap.put(count, tap.of(count) + tap.read(cv))
        tap.put(weighed, tap.of(weighed) + np.multiply(tap.read(cv), tap.read(xv), dtype=plan.accumulate))
    positive = total > 0
    share = np.divide(1, total, out=np.zeros_like(total), where=positive)
    slope = (2 * weighed - yv * count) * share
    by_dy = np.empty(dy.shape, dy.dtype)
    as_channels_first(by_dy, plan.layout)[...] = np.where(positive, slope, 0)
    by_x = PixelGradient(saved.shapes[0], dy.dtype, plan.layout, extension(plan.axes, plan.edge), plan.accumulate)
    for tap in taps(plan.axes):
        bend = (2 * tap.read(xv) - tap.of(yv)) * tap.of(count) * tap.of(share)
        change = (2 * tap.read(cv) - bend - tap.of(slope)) * tap.of(share) * tap.of(dyv)
        tap.add(by_x.total, np.where(tap.of(positive), change, 0))
    return by_dy, (by_x.finish(), None)


drawn_twice = twice_of(rows_gradient)

KERNELS = kernels(OneWindow(numbers, numbers_gradient, rows, rows_gradient, empty, keeps), forward_im2col, backward_im2col, twice)
