"""Lp pooling: the p-norm of each window, in the forms frameworks have.

With m the power of two at the window's greatest magnitude, y = m * (sum (|x|/m)^p)^(1/p): nothing overflows or
vanishes on the way where y itself does not. Plans with lp_scaled false form the powers as they are, as PyTorch does.
The gradient is (x/y)^(p-1), which needs no power of y. p = infinity is the greatest magnitude, chosen like a maximum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...plan import PoolPlan
from ...plan.kinds import Empty, LpForm, LpScale, Reduce, ZeroWindow
from ..protocol import Array, Arrays, Saved
from . import _extremes, max_pool
from ._divisors import inside
from ._pool_ladder import OneWindow, kernels, new_offsets, saved_record
from ._windows import PixelGradient, Place, as_channels_first, extension, taps


def keeps(plan: PoolPlan) -> frozenset[str]:
    return frozenset({"offsets", "x"}) if math.isinf(plan.p) else frozenset({"x", "y"})


def numbers(plan: PoolPlan, values: list[Any], place: Place, uniform: Any, dtype: np.dtype[Any]) -> tuple[float, int]:
    if math.isinf(plan.p):
        return _extremes.best_of_numbers(as_maximum(plan), [abs(v) for v in values], dtype)
    greatest = max(map(abs, values)) if plan.lp_scaled and all(map(math.isfinite, values)) else 0.0
    exponent = math.frexp(greatest)[1]
    total = sum(_power(plan, math.ldexp(v, -exponent)) for v in values) * _scale_of(plan, len(values))
    return float(np.ldexp(_root(plan, total), exponent)), -1


def numbers_gradient(plan: PoolPlan, values: list[Any] | None, place: Place, y: Any, position: int, dy: float) -> list[float]:
    assert values is not None
    if math.isinf(plan.p):
        return [math.copysign(dy * (v != 0), v * dy) if tap == position else 0.0 for tap, v in enumerate(values)]
    if _silent(plan, np.asarray(y)):
        return [_slope_at_zero(plan) * _scale_of(plan, len(values)) * dy] * len(values)
    scale = _scale_of(plan, len(values))
    return [_slope(plan, v, y) * scale * dy for v in values]


def rows(plan: PoolPlan, window: Array, place: Place, uniform: Array | None) -> tuple[Array, Array | None]:
    if math.isinf(plan.p):
        return _extremes.best_of_rows(as_maximum(plan), np.abs(window))
    window = window.astype(plan.accumulate, copy=False)
    exponent = _exponent(plan, np.abs(window).max(-1))
    total = powers(plan, np.ldexp(window, -exponent[..., None])).sum(-1)
    return np.ldexp(roots(plan, total * _scale_of(plan, window.shape[-1])), exponent), None


def rows_gradient(
    plan: PoolPlan, window: Array | None, place: Place, y: Array | None, position: Array | None, dy: Array
) -> Array:
    assert window is not None
    if math.isinf(plan.p):
        return max_pool.rows_gradient(as_maximum(plan), None, place, None, position, dy) * np.sign(window)
    assert y is not None
    wide = np.dtype(plan.accumulate)
    return (
        slopes(plan, window.astype(wide), y.astype(wide)[..., None])
        * (dy.astype(wide) * _scale_of(plan, window.shape[-1]))[..., None]
    )


def empty(plan: PoolPlan, dtype: np.dtype[Any], place: Place) -> float:
    if math.isinf(plan.p):
        return float(_extremes.empty_value(as_maximum(plan), dtype))
    return math.nan if plan.empty is Empty.NAN else 0.0


def forward_im2col(
    plan: PoolPlan, x: Array, uniform: Array | None = None, *, out: Array, save: bool
) -> tuple[Array, Saved | None]:
    """Two passes over the taps: the greatest magnitude, then the sum of scaled powers."""
    grown = extension(plan.axes, plan.edge)
    xv = grown.grow(as_channels_first(x, plan.layout), plan.edge_value)
    yv = as_channels_first(out, plan.layout)
    every = taps(grown.axes)
    if math.isinf(plan.p):
        _extremes.scan_values(as_maximum(plan), np.abs(xv), every, yv)
        offsets = new_offsets(plan, out) if save else None
        if offsets is not None:
            offsets[...] = _extremes.scan_offsets(as_maximum(plan), np.abs(xv), every, yv.shape)
        return out, saved_record(keeps(plan), x, None, out, offsets) if save else None
    xw = xv.astype(plan.accumulate, copy=False)
    magnitude = np.zeros(yv.shape, plan.accumulate)
    for tap in every if plan.lp_scaled else ():
        tap.put(magnitude, np.maximum(tap.of(magnitude), np.abs(tap.read(xw))))
    exponent = _exponent(plan, magnitude)
    total = np.zeros(yv.shape, plan.accumulate)
    with np.errstate(over="ignore", invalid="ignore"):
        for tap in every:
            tap.put(total, tap.of(total) + powers(plan, np.ldexp(tap.read(xw), -tap.of(exponent))))
        yv[...] = np.ldexp(roots(plan, total * _scales(plan).astype(plan.accumulate)), exponent)
    unpopulated = inside(plan) == 0
    if plan.empty is Empty.NAN and grown.sources is None and unpopulated.any():
        yv[..., unpopulated] = np.nan
    return out, saved_record(keeps(plan), x, None, out, None) if save else None


def backward_im2col(plan: PoolPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """dy * (x/y)^(p-1) at every tap; for p = infinity dy with the sign of the winner."""
    if not want[0]:
        return (None, None)
    assert saved.shapes[0] is not None and saved.x is not None
    grown = extension(plan.axes, plan.edge)
    gradient = PixelGradient(saved.shapes[0], dy.dtype, plan.layout, grown, plan.accumulate)
    wide = np.dtype(plan.accumulate)
    xv = grown.grow(as_channels_first(saved.x, plan.layout), plan.edge_value).astype(wide, copy=False)
    dyv = as_channels_first(dy, plan.layout).astype(wide, copy=False)
    if saved.offsets is not None:
        for tap in taps(grown.axes):
            won = tap.of(saved.offsets) == tap.offset
            tap.add(gradient.total, np.where(won, tap.of(dyv) * np.sign(tap.read(xv)), wide.type(0)))
        return (gradient.finish(), None)
    assert saved.y is not None
    yv = as_channels_first(saved.y, plan.layout).astype(wide, copy=False)
    scaled = dyv * _scales(plan).astype(wide)
    for tap in taps(grown.axes):
        tap.add(gradient.total, slopes(plan, tap.read(xv), tap.of(yv)) * tap.of(scaled))
    unread(plan, saved, gradient.total)
    return (gradient.finish(), None)


def twice(plan: PoolPlan, dy: Array, saved: Saved, cotangents: Arrays, *, want: Sequence[bool]) -> tuple[Array, Arrays]:
    """With a the slope dy/dx at each tap, c = (x/y)^(p-2), s the scale, g the cotangent and T = sum g a over a window:

    dy's gradient is s T, and x's is dy s (p-1)/y (g c - s a T). For p = infinity dy's is g with the winner's sign.
    """
    assert cotangents[0] is not None and saved.x is not None and saved.shapes[0] is not None
    grown, wide = extension(plan.axes, plan.edge), np.dtype(plan.accumulate)
    xv = grown.grow(as_channels_first(saved.x, plan.layout), plan.edge_value).astype(wide, copy=False)
    arriving = grown.grow(as_channels_first(cotangents[0], plan.layout), 0).astype(wide, copy=False)
    gradient = np.empty(dy.shape, dy.dtype)
    view, every = as_channels_first(gradient, plan.layout), taps(grown.axes)
    total = np.zeros(view.shape, wide)
    if saved.offsets is not None:
        for tap in every:
            won = tap.of(saved.offsets) == tap.offset
            tap.put(total, tap.of(total) + np.where(won, tap.read(arriving) * np.sign(tap.read(xv)), wide.type(0)))
        view[...] = total
        return gradient, (None, None)
    assert saved.y is not None
    yv, scale = as_channels_first(saved.y, plan.layout).astype(wide, copy=False), _scales(plan).astype(wide)
    for tap in every:
        tap.put(total, tap.of(total) + tap.read(arriving) * slopes(plan, tap.read(xv), tap.of(yv)))
    total *= scale
    view[...] = total
    if not want[0] or plan.p == 1:
        return gradient, (None, None)
    dx = PixelGradient(saved.shapes[0], dy.dtype, plan.layout, grown, plan.accumulate)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        front = as_channels_first(dy, plan.layout).astype(wide, copy=False) * scale * wide.type(plan.p - 1) / yv
        front[yv == 0] = np.nan if plan.zero_window is ZeroWindow.FORMULA else 0
        for tap in every:
            x, y = tap.read(xv), tap.of(yv)
            bend = tap.read(arriving) * _curvature(plan, x, y) - slopes(plan, x, y) * tap.of(total)
            tap.add(dx.total, np.where(tap.of(front) == 0, wide.type(0), tap.of(front) * bend))
    return gradient, (dx.finish(), None)


def _curvature(plan: PoolPlan, x: Array, y: Array) -> Array:
    """(x/y)^(p-2), of magnitudes in the absolute form."""
    ratio = np.abs(x / y) if plan.lp_form is LpForm.ABSOLUTE else x / y
    return np.ones_like(ratio) if plan.p == 2 else np.asarray(np.power(ratio, ratio.dtype.type(plan.p - 2)))


def unread(plan: PoolPlan, saved: Saved, dx: Array) -> None:
    """Where powers are formed as they are, a pixel at which nothing arrives gets 0 times the slope of its power: 0, or NaN.

    Nothing arrives where no window reads, and by ZeroWindow.ZERO from a window whose result is 0 or whose sum is.
    """
    if plan.lp_scaled or math.isinf(plan.p) or saved.x is None or saved.y is None:
        return
    grown = extension(plan.axes, plan.edge)
    y = as_channels_first(saved.y, plan.layout)
    sends = np.ones(y.shape, np.int64) if plan.zero_window is ZeroWindow.FORMULA else (~_silent(plan, y)).astype(np.int64)
    reads = np.zeros(dx.shape, np.int64)
    for tap in taps(grown.axes):
        tap.add(reads, tap.of(sends))
    bare = reads == 0
    x = grown.grow(as_channels_first(saved.x, plan.layout), plan.edge_value)[bare].astype(dx.dtype)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        base = np.abs(x) if plan.lp_form is LpForm.ABSOLUTE else x
        dx[bare] = 0 * np.power(base, dx.dtype.type(plan.p - 1))


def _silent(plan: PoolPlan, y: Array) -> Array:
    """Windows that send no gradient back: of the result 0 and, for p < 0, of the sum 0, whose result is infinite."""
    return np.asarray((y == 0) | np.isinf(y) if plan.p < 0 else y == 0)


def as_maximum(plan: PoolPlan) -> PoolPlan:
    """The choice among magnitudes that p = infinity makes."""
    return replace(plan, reduce=Reduce.MAX)


def powers(plan: PoolPlan, x: Array) -> Array:
    """What each tap adds to the sum."""
    x = np.abs(x) if plan.lp_form is LpForm.ABSOLUTE else x
    if plan.p == 2:
        return x * x
    with np.errstate(invalid="ignore", over="ignore"):
        return x if plan.p == 1 else np.power(x, x.dtype.type(plan.p))


def roots(plan: PoolPlan, total: Array) -> Array:
    """The p-th root of the sum; of a negative one as the form has it."""
    if plan.p == 1:
        return total
    with np.errstate(invalid="ignore"):
        if plan.p == 2:
            return np.sqrt(total)
        if plan.lp_form is LpForm.SIGNED_ROOT:
            return np.asarray(np.copysign(np.power(np.abs(total), total.dtype.type(1 / plan.p)), total))
        return np.asarray(np.power(total, total.dtype.type(1 / plan.p)))


def slopes(plan: PoolPlan, x: Array, y: Array) -> Array:
    """dy/dx of the norm at each tap, the scale left out; 0 (or 0/0) where y is 0."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = x / y
        if plan.p == 2:
            slope = ratio
        elif plan.lp_form is LpForm.ABSOLUTE:
            magnitude = np.power(np.abs(ratio), ratio.dtype.type(plan.p - 1))
            slope = np.where(x == 0, ratio, np.copysign(magnitude, x)) if plan.p != 1 else np.sign(x)
        else:
            slope = np.ones_like(ratio) if plan.p == 1 else np.power(ratio, ratio.dtype.type(plan.p - 1))
    return np.where(_silent(plan, y), ratio.dtype.type(_slope_at_zero(plan)), slope)


def _slope_at_zero(plan: PoolPlan) -> float:
    """0, or the formula as written: (x/0)^(p-1), which is 1 for a signed sum."""
    if plan.zero_window is ZeroWindow.ZERO:
        return 0.0
    return 1.0 if plan.p == 1 and plan.lp_form is not LpForm.ABSOLUTE else math.nan


def _exponent(plan: PoolPlan, magnitude: Array) -> Array:
    """The power of two to divide by; 0 where the plan wants the powers as they are, or nothing is finite."""
    if not plan.lp_scaled:
        return np.zeros(magnitude.shape, np.int32)
    return np.asarray(np.where(np.isfinite(magnitude), np.frexp(magnitude)[1], 0), np.int32)


def _scale_of(plan: PoolPlan, count: int) -> float:
    if plan.lp_scale is LpScale.SUM:
        return 1.0
    return 1.0 / count if plan.lp_scale is LpScale.MEAN else plan.taps / count


def _scales(plan: PoolPlan) -> Array:
    """_scale_of for all windows, (*out); 1 for a window with no tap."""
    counts = np.maximum(inside(plan), 1) if plan.edge.value == "skip" else np.full([a.out for a in plan.axes], plan.taps)
    if plan.lp_scale is LpScale.SUM:
        return np.ones(counts.shape, np.float64)
    return 1.0 / counts if plan.lp_scale is LpScale.MEAN else plan.taps / counts


def _power(plan: PoolPlan, value: float) -> float:
    number = np.dtype(plan.accumulate).type
    base = abs(value) if plan.lp_form is LpForm.ABSOLUTE else value
    with np.errstate(invalid="ignore", over="ignore"):
        return float(np.power(number(base), number(plan.p)))


def _root(plan: PoolPlan, total: float) -> float:
    if total < 0 and plan.p != 1 and plan.lp_form is LpForm.SIGNED_ROOT:
        return -float((-total) ** (1 / plan.p))
    return float(np.power(np.float64(total), 1 / plan.p))


def _slope(plan: PoolPlan, value: float, y: float) -> float:
    if plan.lp_form is LpForm.ABSOLUTE:
        if plan.p == 1:
            return float(np.sign(value))
        return math.copysign(abs(value / y) ** (plan.p - 1), value) if value else value / y
    return float(np.power(np.float64(value) / np.float64(y), np.float64(plan.p - 1)))


KERNELS = kernels(
    OneWindow(numbers, numbers_gradient, rows, rows_gradient, empty, keeps, unread), forward_im2col, backward_im2col, twice
)
