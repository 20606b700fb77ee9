"""Pooling by plans: what is accepted, and the calls forward and backward."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from ...plan import PoolPlan
from ...plan.kinds import Edge, Empty, Layout, Reduce, Start, Tie
from .. import memory
from ..protocol import Array, Arrays, Saved
from . import powers
from .edges import apart, fold, grow, grown_shape, in_float32
from .extremes import Extreme, Matching
from .numbers import NUMBERS, lacks
from .schedule import KEPT, Schedule, forward_schedule, schedule_of
from .schedule_gradient import backward_schedule
from .sums import ACCUMULATORS, POWERS
from .window import Spec
from .workers import address_of, run

WORTH_WAKING = 8
"""Times as much work as is shared with helpers at hand, from which sleeping ones are woken."""


def declines(plan: PoolPlan) -> str | None:
    """Why this backend does not pool by a plan; None if it does."""
    missing = lacks(plan.dtype)
    if missing:
        return missing
    if plan.reduce in (Reduce.AVERAGE, Reduce.LP) and plan.accumulate not in ACCUMULATORS:
        return f"no kernels that sum in {plan.accumulate}"
    if plan.reduce is Reduce.LP and not NUMBERS[plan.dtype].floating and not math.isinf(plan.p):
        return "no kernels for norms of integers but the greatest magnitude"
    if plan.reduce is Reduce.LP and not math.isinf(plan.p) and plan.p not in POWERS and not powers.known():
        return f"no power function for norms of order {plan.p:g}"
    return None


def forward(plan: PoolPlan, x: Array, uniform: Array | None = None, *, out: Array, save: bool) -> tuple[Array, Saved | None]:
    """Pool x into out; with `save`, keep what backward needs."""
    last = plan.layout is Layout.CHANNELS_LAST
    schedule = forward_schedule(plan, x.shape, save)
    x = memory.contiguous(x)
    read = grow(plan, x)
    y = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
    offsets = memory.empty(y.shape, _OFFSETS[schedule.spec.offsets]) if schedule.spec.offsets else None
    if y.size:
        launch(schedule, schedule.total(x.shape), read, y, offsets, None)
    if y is not out:
        out[...] = y
    if not save:
        return out, None
    if offsets is not None:
        offsets = apart(plan, _to_first(offsets) if last else offsets)
    kept_x, kept_y = _keeps(plan)
    return out, Saved((x.shape, None), offsets, x if kept_x else None, out if kept_y else None)


_OFFSETS = {dtype.itemsize: dtype for dtype in map(np.dtype, ("u1", "u2", "u4", "u8"))}
_TO_FIRST = [(0, rank - 1, *range(1, rank - 1)) for rank in range(2, 6)]
_TO_LAST = [(0, *range(2, rank), 1) for rank in range(2, 6)]


def _to_first(array: Array) -> Array:
    """The same numbers with the channels first; numpy.moveaxis asks for longer than a small kernel takes."""
    return array.transpose(_TO_FIRST[array.ndim - 2])


def _to_last(array: Array) -> Array:
    """The same numbers with the channels last."""
    return array.transpose(_TO_LAST[array.ndim - 2])


def _keeps(plan: PoolPlan) -> tuple[bool, bool]:
    """Whether backward needs x, and y."""
    if plan.reduce is Reduce.AVERAGE:
        return False, False
    if plan.reduce is Reduce.LP:
        return True, not math.isinf(plan.p)
    return (not plan.picks,) * 2


def backward(plan: PoolPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """The gradient of x."""
    if not want[0]:
        return (None, None)
    shape = saved.shapes[0]
    assert shape is not None
    last = plan.layout is Layout.CHANNELS_LAST
    if plan.edge is not Edge.SKIP:
        if plan.dtype in ("float16", "bfloat16") and (plan.picks or plan.reduce in (Reduce.AVERAGE, Reduce.LP)):
            return in_float32(plan, dy, saved, backward)
        shape = grown_shape(plan, shape)
        saved = replace(saved, shapes=(shape, None), x=None if saved.x is None else grow(plan, np.asarray(saved.x)))
    schedule = backward_schedule(plan, shape)
    spec = schedule.spec
    other = saved.offsets if spec.offsets else saved.y if spec.kind == "norm" else None
    if spec.kind == "match":
        other, dy = _matched(plan, dy, saved)
    if other is not None:
        other = memory.contiguous(_to_last(other) if spec.offsets and last else other)
    dx, dy = memory.empty(shape, dy.dtype), memory.contiguous(dy)
    x = memory.contiguous(saved.x) if spec.reads_x else None
    if dx.size:
        launch(schedule, schedule.total(shape), dx, dy, other, x)
        if spec.kind == "norm" and not plan.lp_scaled:
            powers.unread(plan, saved, dx, backward)
    return (fold(plan, dx), None)


def launch(schedule: Schedule, units: int, a: Array, b: Array, c: Array | None, d: Array | None) -> None:
    """Run a schedule over `units` units of contiguous arrays."""
    run(
        schedule.address,
        schedule.geometry.address,
        address_of(a),
        address_of(b),
        0 if c is None else address_of(c),
        0 if d is None else address_of(d),
        units,
        schedule.chunk,
        1 if units <= schedule.alone else None,
        wake=units > WORTH_WAKING * schedule.alone,
    )


def _matched(plan: PoolPlan, dy: Array, saved: Saved) -> tuple[Array, Array]:
    """What taps are compared with, and each window's dy for one of those that match."""
    assert saved.x is not None and saved.y is not None
    if plan.tie in (Tie.RECORDED, Tie.NEAR):
        return saved.y, dy
    x = memory.contiguous(saved.x)
    best = np.empty(saved.y.shape, saved.y.dtype)
    over_windows(plan, Extreme.of(_choosing(plan), save=False), x, best)
    if plan.tie is Tie.ALL_FULL:
        return best, dy
    count = np.empty(best.shape, best.dtype)
    over_windows(plan, Matching(plan.dtype), x, count, best)
    with np.errstate(all="ignore"):  # a window of NaN matches nothing: NaN is its share
        return best, np.asarray(np.where(count == 0, np.nan, dy / count), dy.dtype)


@lru_cache(maxsize=KEPT)
def _choosing(plan: PoolPlan) -> PoolPlan:
    """The extreme of the taps themselves, whatever the start value."""
    return replace(plan, start=Start.INFINITY, tie=Tie.FIRST, empty=Empty.START)


def over_windows(plan: PoolPlan, spec: Spec, x: Array, y: Array, given: Array | None = None) -> None:
    """Compute a spec over a plan's windows: x as it is read, y and `given` like y, all contiguous in the plan's layout."""
    last = plan.layout is Layout.CHANNELS_LAST
    if y.size:
        schedule = schedule_of(plan, spec, x.shape[-1] if last else 1)
        launch(schedule, schedule.total(x.shape), x, y, None, given)
