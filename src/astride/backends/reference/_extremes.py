"""Choosing the extreme of a window, told three times: in Python numbers, on a window's row, and tap by tap.

The three are written differently on purpose (a plain scan, NumPy's argmax, a scan over whole arrays), so that each
checks the others. Positions count the taps given; -1 means that no tap beat the start value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...plan import PoolPlan
from ...plan.kinds import NEARNESS, Empty, Nan, Reduce, Start, Tie, Unpicked
from ..protocol import Array, no_offset, offset_dtype
from ._windows import Tap

STARTS_AT_FIRST_TAP = (Tie.LEADING_NAN, Tie.AFTER_NAN)


@dataclass(frozen=True, slots=True)
class Order:
    """Max or min: which of two wins, and NumPy's functions that say so."""

    beats: Callable[[Any, Any], Any]
    matches: Callable[[Any, Any], Any]
    keep: Any  # the extreme of two arrays; a NaN wins
    argbest: Callable[..., Any]
    sign: int  # +1: greater is better

    def worst(self, dtype: np.dtype[Any], start: Start = Start.INFINITY) -> Any:
        """The start value: the infinity or finite limit that loses to everything."""
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            return limits.min if self.sign > 0 else limits.max
        if dtype.kind == "b":
            return self.sign < 0
        if start is Start.FINITE:
            limit = _finite_limit(dtype)
            return -limit if self.sign > 0 else limit
        return -math.inf if self.sign > 0 else math.inf


MAXIMUM = Order(np.greater, np.greater_equal, np.maximum, np.argmax, 1)
MINIMUM = Order(np.less, np.less_equal, np.minimum, np.argmin, -1)


def order(plan: PoolPlan) -> Order:
    return MINIMUM if plan.reduce is Reduce.MIN else MAXIMUM


def empty_value(plan: PoolPlan, dtype: np.dtype[Any]) -> Any:
    """What an extreme gives for a window with no tap inside the input."""
    if plan.empty is Empty.ZERO:
        return 0
    return math.nan if plan.empty is Empty.NAN else order(plan).worst(dtype, plan.start)


def best_of_numbers(plan: PoolPlan, values: Sequence[Any], dtype: np.dtype[Any]) -> tuple[Any, int]:
    """One window as Python numbers: (value, position picked by the tie rule)."""
    if not values:
        return empty_value(plan, dtype), -1
    up = plan.reduce is not Reduce.MIN
    worst = order(plan).worst(dtype, plan.start)

    best = values[0] if plan.start is Start.FIRST_TAP else worst
    for value in values:
        wins = value > best if up else value < best
        if wins or (plan.nan is Nan.PROPAGATED and math.isnan(value)):
            best = value

    first = plan.start is Start.FIRST_TAP or plan.tie in STARTS_AT_FIRST_TAP
    pick, position = (values[0], 0) if first else (worst, -1)
    for i, value in enumerate(values):
        wins = value > pick if up else value < pick
        ties = value == pick
        moves = {
            Tie.LAST: wins or ties,
            Tie.FIRST_NAN: wins or (math.isnan(value) and not math.isnan(pick)),
            Tie.LAST_NAN: wins or math.isnan(value),
            Tie.AFTER_NAN: not (pick >= value if up else pick <= value),
        }.get(plan.tie, wins)
        if moves:
            pick, position = value, i
    if position < 0 and plan.unpicked is Unpicked.FIRST_TAP:
        position = 0
    return best, position


def compared_number(plan: PoolPlan, values: Sequence[Any], y: Any) -> Any:
    """What the taps are compared with where all that match share the gradient."""
    if plan.tie in (Tie.RECORDED, Tie.NEAR) or not values:
        return y
    numbers = [v for v in values if not math.isnan(v)]
    if not numbers or (plan.nan is Nan.PROPAGATED and len(numbers) < len(values)):
        return math.nan
    return min(numbers) if plan.reduce is Reduce.MIN else max(numbers)


def same_number(plan: PoolPlan, value: Any, best: Any) -> bool:
    """Whether a tap counts as the extreme it is compared with."""
    if plan.tie is Tie.NEAR:
        return math.isfinite(value) and math.isfinite(best) and bool(same(plan, np.array(value, plan.dtype), best))
    return bool(value == best)


def same(plan: PoolPlan, taps: Array, best: Array) -> Array:
    """Which taps count as the extreme they are compared with."""
    if plan.tie is not Tie.NEAR or taps.dtype.kind in "iub":
        return np.asarray(taps == best)
    with np.errstate(invalid="ignore", over="ignore"):  # infinity less infinity is NaN, which is not near
        return np.asarray(np.abs(taps - best) < taps.dtype.type(NEARNESS))


def best_of_rows(plan: PoolPlan, window: Array) -> tuple[Array, Array]:
    """Windows as rows (..., taps), all of them inside the input and at least one: values (...) and positions (...)."""
    o = order(plan)
    worst = np.array(o.worst(window.dtype), window.dtype)
    start = np.array(o.worst(window.dtype, plan.start), window.dtype)
    nan = np.isnan(window) if window.dtype.kind not in "iub" else np.zeros(window.shape, bool)
    clean = np.where(nan, worst, window)
    first_best = o.argbest(clean, axis=-1)
    top = _at(clean, first_best)

    value = o.keep(top, start) if plan.start is not Start.FIRST_TAP else np.where(nan[..., 0], window[..., 0], top)
    if plan.nan is Nan.PROPAGATED:
        value = np.where(nan.any(-1), np.nan, value)

    last = window.shape[-1] - 1
    last_nan = np.where(nan.any(-1), last - np.argmax(nan[..., ::-1], axis=-1), -1)
    picks_first = plan.start is Start.FIRST_TAP
    beaten = np.full(top.shape, True) if picks_first else (o.matches if plan.tie is Tie.LAST else o.beats)(top, start)
    position = first_best
    if plan.tie is Tie.LAST:
        equal = window == top[..., None]  # not `clean`: where the extreme is the worst value, a NaN stands for it there
        position = last - np.argmax(equal[..., ::-1], axis=-1)
        beaten = beaten & equal.any(-1)
    position = np.where(beaten, position, -1)
    leading = nan[..., 0]
    if plan.tie is Tie.FIRST_NAN:
        position = np.where(nan.any(-1), np.argmax(nan, axis=-1), position)
    elif plan.tie is Tie.LAST_NAN:
        position = np.where(last_nan >= 0, last_nan, position)
    elif plan.tie is Tie.LEADING_NAN:
        position = np.where(leading, 0, first_best)
    elif plan.tie is Tie.AFTER_NAN:
        after = np.where(np.arange(last + 1) > last_nan[..., None], clean, worst)
        position = np.where(last_nan == last, last, np.maximum(o.argbest(after, axis=-1), last_nan + 1))
    elif picks_first:
        position = np.where(leading, 0, position)
    if plan.unpicked is Unpicked.FIRST_TAP:
        position = np.where(position < 0, 0, position)
    return value.astype(window.dtype, copy=False), position


def scan_values(plan: PoolPlan, x: Array, taps: Sequence[Tap], value: Array) -> None:
    """The windows' extremes, tap by tap: x (..., *size) into value (..., *out)."""
    o = order(plan)
    seen = np.zeros(value.shape[2:], bool)
    value[...] = o.worst(value.dtype, plan.start)
    for tap in taps:
        here, best = tap.read(x), tap.of(value)
        if plan.start is Start.FIRST_TAP:
            best = np.where(tap.of(seen), best, here)
            tap.put(seen, True)  # type: ignore[arg-type]
        wins = o.beats(here, best)  # of equal zeros the first stays, whatever its sign, which np.maximum leaves open
        if plan.nan is Nan.PROPAGATED and here.dtype.kind not in "iub":
            wins = wins | np.isnan(here)
        tap.put(value, np.where(wins, here, best))
    if not seen.all():
        _fill_empty(plan, value, taps)


def scan_offsets(plan: PoolPlan, x: Array, taps: Sequence[Tap], shape: tuple[int, ...]) -> Array:
    """The in-window offsets picked by the tie rule, tap by tap, as the plan saves them: (..., *out)."""
    o = order(plan)
    offsets = np.full(shape, no_offset(offset_dtype(plan.taps)), offset_dtype(plan.taps))
    pick = np.full(shape, o.worst(x.dtype, plan.start), x.dtype)
    first = plan.start is Start.FIRST_TAP or plan.tie in STARTS_AT_FIRST_TAP
    seen = np.zeros(shape[2:], bool)
    for tap in taps:
        here, best = tap.read(x), tap.of(pick)
        moves = _moves(plan.tie, o, here, best)
        if first:
            moves = moves | ~tap.of(seen)
            tap.put(seen, True)  # type: ignore[arg-type]
        tap.put(pick, np.where(moves, here, best))
        tap.put(offsets, np.where(moves, np.array(tap.offset, offsets.dtype), tap.of(offsets)))
    if plan.unpicked is Unpicked.FIRST_TAP and not first:
        _pick_first_tap(offsets, taps)
    return offsets


def _moves(tie: Tie, o: Order, here: Array, pick: Array) -> Array:
    """Whether the pick moves on to this tap."""
    if tie is Tie.AFTER_NAN:
        return ~np.asarray(o.matches(pick, here))
    if tie is Tie.LAST:
        return np.asarray(o.matches(here, pick))
    wins = np.asarray(o.beats(here, pick))
    if here.dtype.kind in "iub" or tie in (Tie.FIRST, Tie.LEADING_NAN):
        return wins
    if tie is Tie.LAST_NAN:
        return wins | np.isnan(here)
    return wins | (np.isnan(here) & ~np.isnan(pick))


def _pick_first_tap(offsets: Array, taps: Sequence[Tap]) -> None:
    """Windows that picked nothing take their first tap inside the input."""
    missing = offsets == no_offset(offsets.dtype)
    if not missing.any():
        return
    for tap in taps:
        here = tap.of(missing)
        tap.put(offsets, np.where(here, np.array(tap.offset, offsets.dtype), tap.of(offsets)))
        tap.put(missing, np.zeros_like(here))


def _fill_empty(plan: PoolPlan, value: Array, taps: Sequence[Tap]) -> None:
    """Windows with no tap inside the input get the plan's value for them."""
    inhabited = np.zeros(value.shape[2:], bool)
    for tap in taps:
        tap.put(inhabited, True)  # type: ignore[arg-type]
    if not inhabited.all():
        value[..., ~inhabited] = empty_value(plan, value.dtype)


def _finite_limit(dtype: np.dtype[Any]) -> float:
    if dtype.kind == "f":
        return float(np.finfo(dtype).max)
    import ml_dtypes

    return float(ml_dtypes.finfo(dtype).max)


def _at(window: Array, position: Array) -> Array:
    return np.take_along_axis(window, position[..., None], axis=-1)[..., 0]
