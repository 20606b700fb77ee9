"""From pooling plans to kernels: what each accepts, the schedule of one plan, and the call."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import settings
from ...plan import PoolPlan, StridedAxis
from ...plan.kinds import Divisor, Edge, Empty, Layout, Reduce, Start, Tie
from ..protocol import Array, Arrays, Saved, offset_dtype
from ..reference._windows import counts_inside
from . import pool_first, pool_first_gradient, pool_last
from .cache import functions
from .extremes import Extreme, Matching
from .gradients import Gradient
from .machine import machine
from .numbers import NUMBERS
from .sums import ACCUMULATORS, POWERS, Sum
from .tables import Geometry, covers, windows
from .window import Spec
from .workers import workers

CHUNK_BYTES = 1 << 17
"""About as much memory as one thread takes at once."""

KEPT = 512
"""Schedules kept, one a plan and purpose."""


@dataclass(slots=True)
class Schedule:
    """How a plan is computed: the kernel's address, its geometry, and how many units of the output one image has."""

    plan: PoolPlan
    address: int
    geometry: Geometry
    spec: Any
    units: int
    unit_bytes: int


_schedules: dict[tuple[int, str, int], Schedule] = {}


def declines(plan: PoolPlan) -> str | None:
    """Why this backend does not pool by a plan; None if it does."""
    if plan.dtype not in NUMBERS:
        return f"no kernels for {plan.dtype}"
    if plan.edge is not Edge.SKIP:
        return f"no kernels for edge {plan.edge}: the input would be grown first"
    if any(isinstance(axis, StridedAxis) and axis.input_dilation > 1 for axis in plan.axes):
        return "no kernels for input dilation"
    if plan.reduce in (Reduce.AVERAGE, Reduce.LP) and plan.accumulate not in ACCUMULATORS:
        return f"no kernels that sum in {plan.accumulate}"
    if plan.reduce is Reduce.LP and not math.isinf(plan.p):
        if plan.p not in POWERS:
            return f"no kernels for norms of order {plan.p:g}"
        if plan.dtype == "float64" and plan.lp_scaled:
            return "no kernels for float64 norms that scale"
        if not NUMBERS[plan.dtype].floating:
            return "no kernels for norms of integers"
    if plan.reduce in (Reduce.STOCHASTIC, Reduce.STOCHASTIC_MEAN):
        return "no kernels for draws"
    return None


def spec_of(plan: PoolPlan, save: bool) -> Spec:
    """What the kernel computes besides geometry."""
    if plan.reduce in (Reduce.MAX, Reduce.MIN) or (plan.reduce is Reduce.LP and math.isinf(plan.p)):
        return Extreme.of(plan, save=save)
    return Sum.of(plan)


def three(values: Sequence[int], fill: int) -> list[int]:
    """One to three numbers, one an axis, as three."""
    return [fill] * (3 - len(values)) + list(values)


def _fields(plan: PoolPlan, channels: int) -> list[int]:
    axes = plan.axes
    return [
        channels,
        *three([axis.size for axis in axes], 1),
        *three([axis.out for axis in axes], 1),
        *three([axis.kernel for axis in axes], 1),
        *three([getattr(axis, "dilation", 1) for axis in axes], 1),
        plan.divisor_override if plan.divisor is Divisor.OVERRIDE else 1,
    ]


def _tables(plan: PoolPlan) -> list[Any]:
    whole = np.array([[0, 1, 0, 1]], np.int64)
    return [whole] * (3 - len(plan.axes)) + [windows(plan, a) for a in range(len(plan.axes))]


def _across(plan: PoolPlan, spec: Spec) -> pool_first.Across | None:
    """The window along the width if the quick way is written for it, and every window has a tap there."""
    axis = plan.axes[-1]
    if not isinstance(axis, StridedAxis) or not axis.out or not (counts_inside(axis) > 0).all():
        return None
    across = pool_first.Across(axis.kernel, axis.stride, axis.dilation)
    return across if pool_first.takes(spec, across, 64) else None


def _forward_last(plan: PoolPlan, spec: Spec, channels: int) -> tuple[int, Geometry]:
    (address,) = functions(f"pool_last_{plan.reduce}", spec, lambda: pool_last.forward(spec, machine()), ("forward",))
    return address, Geometry(_fields(plan, channels), _tables(plan))


def _forward_first(plan: PoolPlan, spec: Spec) -> tuple[int, Geometry]:
    across = _across(plan, spec)
    (address,) = functions(
        f"pool_first_{plan.reduce}", (spec, across), lambda: pool_first.forward(spec, across, machine()), ("forward",)
    )
    axis, tables = plan.axes[-1], _tables(plan)
    start = -axis.pad_lo if isinstance(axis, StridedAxis) else 0
    tile = across.tile(64) if across is not None else 0
    if isinstance(spec, Sum):
        kind = np.int64 if spec.whole else np.float64 if spec.accumulate == "double" else np.float32
        counts = [np.pad(column.astype(kind), (0, 64)) for column in (tables[2][:, 3], tables[2][:, 1])]
        tables += [column.view(np.uint8)[: column.nbytes // 8 * 8].view(np.int64) for column in counts]
    return address, Geometry([*_fields(plan, 1), start, tile, 0], tables)


def forward_schedule(plan: PoolPlan, channels: int, save: bool) -> Schedule:
    """How a plan is computed forward, for this many channels where they come last; made once."""
    last = plan.layout is Layout.CHANNELS_LAST
    key = (id(plan), "save" if save else "forward", channels if last else 1)
    found = _schedules.get(key)
    if found is not None and found.plan is plan:
        return found
    spec = spec_of(plan, save)
    address, geometry = _forward_last(plan, spec, channels) if last else _forward_first(plan, spec)
    return _kept(key, _scheduled(plan, spec, address, geometry, channels if last else 1))


def _scheduled(plan: PoolPlan, spec: Spec, address: int, geometry: Geometry, channels: int) -> Schedule:
    rows = math.prod(axis.out for axis in plan.axes[:-1])
    row = plan.axes[-1].out * channels * spec.number.bytes * max(plan.taps, 1)
    return Schedule(plan, address, geometry, spec, rows, row)


def _kept(key: tuple[int, str, int], made: Schedule) -> Schedule:
    if len(_schedules) >= KEPT:
        _schedules.clear()
    _schedules[key] = made
    return made


def forward(plan: PoolPlan, x: Array, uniform: Array | None = None, *, out: Array, save: bool) -> tuple[Array, Saved | None]:
    """Pool x into out; with `save`, keep what backward needs."""
    last = plan.layout is Layout.CHANNELS_LAST
    channels = x.shape[-1] if last else x.shape[1]
    schedule = forward_schedule(plan, channels, save)
    x = np.ascontiguousarray(x)
    y = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
    offsets = np.empty(y.shape, offset_dtype(plan.taps)) if schedule.spec.offsets else None
    if y.size:
        _launch(schedule, schedule.units * x.shape[0] * (1 if last else channels), x, y, offsets, None)
    if y is not out:
        out[...] = y
    if not save:
        return out, None
    if offsets is not None and last:
        offsets = np.moveaxis(offsets, -1, 1)
    kept_x, kept_y = _keeps(plan)
    return out, Saved((x.shape, None), offsets, x if kept_x else None, out if kept_y else None)


def _keeps(plan: PoolPlan) -> tuple[bool, bool]:
    """Whether backward needs x, and y."""
    if plan.reduce is Reduce.AVERAGE:
        return False, False
    if plan.reduce is Reduce.LP:
        return True, not math.isinf(plan.p)
    return (not plan.picks,) * 2


def _covers(plan: PoolPlan, spec: Gradient) -> tuple[list[Any], NDArray[np.int64]]:
    """The tables of covers, first entries and then entries, and the shares of the columns."""
    missing = 3 - len(plan.axes)
    firsts, entries = [np.array([0, 1], np.int64)] * missing, [np.array([[0, 0, 1]], np.int64)] * missing
    shares = np.ones(1, np.int64)
    for a, axis in enumerate(plan.axes):
        shares = np.asarray(counts_inside(axis) if spec.kind == "norm" else windows(plan, a)[:, 3])
        first, found = covers(axis, shares)
        firsts.append(first)
        entries.append(found)
    return [*firsts, *entries], shares


def _backward_fields(plan: PoolPlan, spec: Gradient, channels: int) -> list[int]:
    fields = _fields(plan, channels)
    if spec.kind != "share":
        fields[-1] = 1
    return fields


def _backward_last(plan: PoolPlan, spec: Gradient, channels: int) -> tuple[int, Geometry]:
    (address,) = functions(f"pool_last_{plan.reduce}_gradient", spec, lambda: pool_last.backward(spec, machine()), ("backward",))
    return address, Geometry(_backward_fields(plan, spec, channels), _covers(plan, spec)[0])


def _backward_first(plan: PoolPlan, spec: Gradient) -> tuple[int, Geometry]:
    axis, across = plan.axes[-1], None
    if isinstance(axis, StridedAxis) and axis.pad_lo >= 0:
        across = pool_first.Across(axis.kernel, axis.stride, axis.dilation)
        if not pool_first_gradient.takes(spec, across, 16):
            across = None
    (address,) = functions(
        f"pool_first_{plan.reduce}_gradient",
        (spec, across),
        lambda: pool_first_gradient.backward(spec, across, machine()),
        ("backward",),
    )
    tables, shares = _covers(plan, spec)
    column = np.pad(shares.astype({"i64": np.int64, "double": np.float64, "float": np.float32}[spec.share]), (0, 64))
    tables.append(column.view(np.uint8)[: column.nbytes // 8 * 8].view(np.int64))
    pad = axis.pad_lo if isinstance(axis, StridedAxis) else 0
    tile = pool_first_gradient.tile(across, 16) if across is not None else 0
    return address, Geometry([*_backward_fields(plan, spec, 1), pad, tile, 0], tables)


def backward_schedule(plan: PoolPlan, channels: int) -> Schedule:
    """How a plan's gradient is computed; made once."""
    last = plan.layout is Layout.CHANNELS_LAST
    key = (id(plan), "backward", channels if last else 1)
    found = _schedules.get(key)
    if found is not None and found.plan is plan:
        return found
    spec = Gradient.of(plan)
    address, geometry = _backward_last(plan, spec, channels) if last else _backward_first(plan, spec)
    rows = math.prod(axis.size for axis in plan.axes[:-1])
    row = plan.axes[-1].size * (channels if last else 1) * spec.number.bytes * 2
    return _kept(key, Schedule(plan, address, geometry, spec, rows, row))


def backward(plan: PoolPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """The gradient of x."""
    if not want[0]:
        return (None, None)
    shape = saved.shapes[0]
    assert shape is not None
    last = plan.layout is Layout.CHANNELS_LAST
    schedule = backward_schedule(plan, shape[-1] if last else shape[1])
    spec = schedule.spec
    other = saved.offsets if spec.offsets else saved.y if spec.kind == "norm" else None
    if spec.kind == "match":
        other, dy = _matched(plan, dy, saved)
    if other is not None:
        other = np.ascontiguousarray(np.moveaxis(other, 1, -1) if spec.offsets and last else other)
    dx, dy = np.empty(shape, dy.dtype), np.ascontiguousarray(dy)
    x = np.ascontiguousarray(saved.x) if spec.reads_x else None
    if dx.size:
        units = schedule.units * shape[0] * (1 if last else shape[1])
        _launch(schedule, units, dx, dy, other, x)
    return (dx, None)


def _launch(schedule: Schedule, units: int, a: Array, b: Array, c: Array | None, d: Array | None) -> None:
    workers().launch(
        schedule.address,
        schedule.geometry.address,
        a.ctypes.data,
        b.ctypes.data,
        0 if c is None else c.ctypes.data,
        0 if d is None else d.ctypes.data,
        units,
        max(CHUNK_BYTES // max(schedule.unit_bytes, 1), 1),
        settings.threads(),
    )


def _matched(plan: PoolPlan, dy: Array, saved: Saved) -> tuple[Array, Array]:
    """What taps are compared with, and each window's dy for one of those that match."""
    assert saved.x is not None and saved.y is not None
    if plan.tie in (Tie.RECORDED, Tie.NEAR):
        return saved.y, dy
    x = np.ascontiguousarray(saved.x)
    best = np.empty(saved.y.shape, saved.y.dtype)
    forward(_choosing(plan), x, out=best, save=False)
    if plan.tie is Tie.ALL_FULL:
        return best, dy
    counting = _counting(plan, x.shape[-1] if plan.layout is Layout.CHANNELS_LAST else 1)
    count = np.empty(best.shape, best.dtype)
    if count.size:
        planes = x.shape[0] * (1 if plan.layout is Layout.CHANNELS_LAST else x.shape[1])
        _launch(counting, counting.units * planes, x, count, None, best)
    with np.errstate(all="ignore"):  # a window of NaN matches nothing: NaN is its share
        return best, np.asarray(np.where(count == 0, np.nan, dy / count), dy.dtype)


@lru_cache(maxsize=KEPT)
def _choosing(plan: PoolPlan) -> PoolPlan:
    """The extreme of the taps themselves, whatever the start value."""
    return replace(plan, start=Start.INFINITY, tie=Tie.FIRST, empty=Empty.START)


@lru_cache(maxsize=KEPT)
def _counting(plan: PoolPlan, channels: int) -> Schedule:
    """How the taps equal to a window's value are counted."""
    spec = Matching(plan.dtype)
    make = _forward_last if plan.layout is Layout.CHANNELS_LAST else lambda p, s, c: _forward_first(p, s)
    return _scheduled(plan, spec, *make(plan, spec, channels), channels)
