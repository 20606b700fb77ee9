"""From pooling plans to kernels: what each accepts, the schedule of one plan, and the call."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...plan import PoolPlan, StridedAxis
from ...plan.kinds import Divisor, Edge, Empty, Layout, Reduce, Start, Tie
from ..protocol import Array, Arrays, Saved, offset_dtype
from . import line_quick, pool_first, pool_first_gradient, pool_last, powers
from .cache import functions
from .edges import apart, axes_read, fold, grow, grown_shape, in_float32, taps_inside
from .extremes import Extreme, Matching
from .gradients import Gradient
from .line import BUFFER, TOGETHER, Across, Wide
from .machine import machine
from .numbers import NUMBERS
from .sums import ACCUMULATORS, POWERS, Sum
from .tables import Geometry, covers, windows
from .window import Spec
from .workers import address_of, run

CHUNK_BYTES = 1 << 17
"""About as much memory as one thread takes at once."""

KEPT = 512
"""Schedules kept, one a plan and purpose."""


@dataclass(slots=True)
class Schedule:
    """How a plan is computed: the kernel's address, its geometry, how many units of the output one image (plane, where the
    channels come first) has, and how many a thread takes at once."""

    plan: PoolPlan
    address: int
    geometry: Geometry
    spec: Any
    units: int
    chunk: int


_schedules: dict[tuple[int, str, int], Schedule] = {}


def declines(plan: PoolPlan) -> str | None:
    """Why this backend does not pool by a plan; None if it does."""
    if plan.dtype not in NUMBERS:
        return f"no kernels for {plan.dtype}"
    if plan.reduce in (Reduce.AVERAGE, Reduce.LP) and plan.accumulate not in ACCUMULATORS:
        return f"no kernels that sum in {plan.accumulate}"
    if plan.reduce is Reduce.LP and not NUMBERS[plan.dtype].floating:
        return "no kernels for norms of integers"
    if plan.reduce is Reduce.LP and not math.isinf(plan.p) and plan.p not in POWERS and not powers.known():
        return f"no power function for norms of order {plan.p:g}"
    return None


def spec_of(plan: PoolPlan, save: bool) -> Spec:
    """What the kernel computes besides geometry."""
    if plan.reduce in (Reduce.MAX, Reduce.MIN) or (plan.reduce is Reduce.LP and math.isinf(plan.p)):
        return Extreme.of(plan, save=save)
    return Sum.of(plan)


def three(values: Sequence[int], fill: int) -> list[int]:
    """One to three numbers, one an axis, as three."""
    return [fill] * (3 - len(values)) + list(values)


@dataclass(frozen=True, slots=True)
class Shape3:
    """A plan's axes as three: what kernels call depth, height and width, and the tables of their windows."""

    sizes: list[int]
    outs: list[int]
    kernels: list[int]
    dilations: list[int]
    tables: list[NDArray[np.int64]]

    def fields(self, channels: int, factor: int) -> list[int]:
        """The geometry's first fields; `factor` is what all divisors are multiplied by."""
        return [channels, *self.sizes, *self.outs, *self.kernels, *self.dilations, factor]


def shape3(plan: PoolPlan, close: bool = False) -> Shape3:
    """With `close` taps are numbered as if those between stretched pixels were not there."""
    axes, missing = axes_read(plan), 3 - len(plan.axes)
    taps = [taps_inside(axis) for axis in axes]
    return Shape3(
        three([axis.size for axis in axes], 1),
        three([axis.out for axis in axes], 1),
        three([-(-axis.kernel // t.skip) if close else axis.kernel for axis, t in zip(axes, taps, strict=True)], 1),
        three([t.step for t in taps], 1),
        [np.array([[0, 1, 0, 1]], np.int64)] * missing + [windows(plan, a, close=close) for a in range(len(axes))],
    )


def _shape(plan: PoolPlan, spec: Spec) -> Shape3:
    return shape3(plan, close=isinstance(spec, Extreme))


def _merged(shape: Shape3) -> Shape3:
    """The same windows with fewer axes: a width that every window has as a whole lies in memory as part of the height.

    A global window becomes one row of taps.
    """
    for _ in range(2):
        size, table = shape.sizes[2], shape.tables[2]
        if not (len(table) == 1 and table[0, 0] == 0 and table[0, 1] == size == shape.kernels[2]):
            break
        if shape.dilations[1] != 1 or shape.dilations[2] != 1:
            break
        rows = shape.tables[1] * np.array([size, size, size, table[0, 3]], np.int64)
        shape = Shape3(
            [1, shape.sizes[0], shape.sizes[1] * size],
            [1, *shape.outs[:2]],
            [1, shape.kernels[0], shape.kernels[1] * size],
            [1, shape.dilations[0], 1],
            [np.array([[0, 1, 0, 1]], np.int64), shape.tables[0], rows],
        )
    return shape


def _factor(plan: PoolPlan) -> int:
    return plan.divisor_override if plan.divisor is Divisor.OVERRIDE else 1


WRITTEN_OUT = 9
"""Rows of a window, over depth and height, up to which kernels have them one by one."""

WIDE = 24
"""Taps along the width from which a window is worth lanes of its own."""


FEW = 8
"""Channels up to which pixels that have them last are taken as columns, not their channels as lanes."""


def _way(plan: PoolPlan, spec: Spec, shape: Shape3, group: int) -> Across | Wide | None:
    """How windows are taken along the width: all of a row at once, each with its taps in lanes, or tap by tap."""
    if isinstance(spec, Sum) and spec.scaled:
        return None
    axis, table = axes_read(plan)[-1], shape.tables[2]
    if not len(table) or not (table[:, 1] > 0).all():
        return None
    plain = group == 1 and shape.dilations[2] == 1 and not spec.offsets and not isinstance(spec, Matching)
    if plain and table[:, 1].mean() >= WIDE:
        return Wide()
    if not isinstance(axis, StridedAxis) or axis.input_dilation > 1:
        return None
    if shape.sizes[2] != axis.size or shape.kernels[2] != axis.kernel:
        return None
    rows = (shape.kernels[0], shape.kernels[1])
    across = Across(
        axis.kernel, axis.stride, axis.dilation, rows if math.prod(rows) <= WRITTEN_OUT else None, group
    )
    return across if line_quick.takes(spec, across, 64) else None


def _forward_last(plan: PoolPlan, spec: Spec, channels: int) -> tuple[int, Geometry]:
    if channels < FEW and channels * machine().vector_bytes <= 256 and _way(plan, spec, _shape(plan, spec), channels) is not None:
        return _forward_first(plan, spec, channels)
    (address,) = functions(f"pool_last_{plan.reduce}", spec, lambda: pool_last.forward(spec, machine()), ("forward",))
    shape = _shape(plan, spec)
    return address, Geometry(shape.fields(channels, _factor(plan)), shape.tables)


def _forward_first(plan: PoolPlan, spec: Spec, group: int = 1) -> tuple[int, Geometry]:
    shape = _merged(_shape(plan, spec)) if group == 1 else _shape(plan, spec)
    way = _way(plan, spec, shape, group)
    (address,) = functions(
        f"pool_first_{plan.reduce}", (spec, way), lambda: pool_first.forward(spec, way, machine()), ("forward",)
    )
    axis, tables = axes_read(plan)[-1], list(shape.tables)
    start = -axis.pad_lo if isinstance(axis, StridedAxis) else 0
    tile = batch = segment = 0
    if isinstance(way, Across):
        tile = min(way.tile(64), shape.outs[2])
        segment = way.segment(tile, 64)
        batch = max(min(BUFFER // segment, TOGETHER), 1)
    if isinstance(spec, Sum):
        kind = np.int64 if spec.whole else np.float64 if spec.accumulate == "double" else np.float32
        tables += [_column(np.repeat(tables[2][:, part], group), kind) for part in (3, 1)]
    return address, Geometry([*shape.fields(1, _factor(plan)), start, tile, batch, segment], tables)


def _column(values: NDArray[np.int64], kind: Any) -> NDArray[np.int64]:
    """One number a column, in the type sums are formed in and with room for a vector's end, as words."""
    column = np.pad(values.astype(kind), (0, 64))
    return column.view(np.uint8)[: column.nbytes // 8 * 8].view(np.int64)


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
    return Schedule(plan, address, geometry, spec, rows, _chunk(row))


def _chunk(unit_bytes: int) -> int:
    return max(CHUNK_BYTES // max(unit_bytes, 1), 1)


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
    read = grow(plan, x)
    y = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
    offsets = np.empty(y.shape, offset_dtype(plan.taps)) if schedule.spec.offsets else None
    if y.size:
        launch(schedule, schedule.units * x.shape[0] * (1 if last else channels), read, y, offsets, None)
    if y is not out:
        out[...] = y
    if not save:
        return out, None
    if offsets is not None:
        offsets = apart(plan, np.moveaxis(offsets, -1, 1) if last else offsets)
    kept_x, kept_y = _keeps(plan)
    return out, Saved((x.shape, None), offsets, x if kept_x else None, out if kept_y else None)


def _keeps(plan: PoolPlan) -> tuple[bool, bool]:
    """Whether backward needs x, and y."""
    if plan.reduce is Reduce.AVERAGE:
        return False, False
    if plan.reduce is Reduce.LP:
        return True, not math.isinf(plan.p)
    return (not plan.picks,) * 2


def cover_tables(plan: PoolPlan, spec: Gradient) -> tuple[list[Any], NDArray[np.int64]]:
    """The tables of covers, first entries and then entries, and the shares of the columns."""
    missing = 3 - len(plan.axes)
    firsts, entries = [np.array([0, 1], np.int64)] * missing, [np.array([[0, 0, 1]], np.int64)] * missing
    shares = np.ones(1, np.int64)
    for a, axis in enumerate(axes_read(plan)):
        shares = np.asarray(taps_inside(axis).count if spec.kind == "norm" else windows(plan, a)[:, 3])
        first, found = covers(axis, shares)
        firsts.append(first)
        entries.append(found)
    return [*firsts, *entries], shares


def _backward_fields(plan: PoolPlan, spec: Gradient, channels: int) -> list[int]:
    return shape3(plan).fields(channels, _factor(plan) if spec.kind == "share" else 1)


def _backward_last(plan: PoolPlan, spec: Gradient, channels: int) -> tuple[int, Geometry]:
    (address,) = functions(f"pool_last_{plan.reduce}_gradient", spec, lambda: pool_last.backward(spec, machine()), ("backward",))
    return address, Geometry(_backward_fields(plan, spec, channels), cover_tables(plan, spec)[0])


def _backward_first(plan: PoolPlan, spec: Gradient) -> tuple[int, Geometry]:
    axis, across = axes_read(plan)[-1], None
    if isinstance(axis, StridedAxis) and axis.pad_lo >= 0 and axis.input_dilation == 1:
        across = Across(axis.kernel, axis.stride, axis.dilation)
        if not pool_first_gradient.takes(spec, across, 16):
            across = None
    (address,) = functions(
        f"pool_first_{plan.reduce}_gradient",
        (spec, across),
        lambda: pool_first_gradient.backward(spec, across, machine()),
        ("backward",),
    )
    tables, shares = cover_tables(plan, spec)
    tables.append(_column(shares, {"i64": np.int64, "double": np.float64, "float": np.float32}[spec.share]))
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
    axes = axes_read(plan)
    rows = math.prod(axis.size for axis in axes[:-1])
    row = axes[-1].size * (channels if last else 1) * spec.number.bytes * 2
    return _kept(key, Schedule(plan, address, geometry, spec, rows, _chunk(row)))


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
        launch(schedule, units, dx, dy, other, x)
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
    )


def _matched(plan: PoolPlan, dy: Array, saved: Saved) -> tuple[Array, Array]:
    """What taps are compared with, and each window's dy for one of those that match."""
    assert saved.x is not None and saved.y is not None
    if plan.tie in (Tie.RECORDED, Tie.NEAR):
        return saved.y, dy
    x = np.ascontiguousarray(saved.x)
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


@lru_cache(maxsize=KEPT)
def schedule_of(plan: PoolPlan, spec: Spec, channels: int) -> Schedule:
    """How another spec than the plan's own is computed over its windows; `channels` is 1 where they come first."""
    make = _forward_last if plan.layout is Layout.CHANNELS_LAST else lambda p, s, c: _forward_first(p, s)
    return _scheduled(plan, spec, *make(plan, spec, channels), channels)


def over_windows(plan: PoolPlan, spec: Spec, x: Array, y: Array, given: Array | None = None) -> None:
    """Compute a spec over a plan's windows: x as it is read, y and `given` like y, all contiguous in the plan's layout."""
    last = plan.layout is Layout.CHANNELS_LAST
    if y.size:
        schedule = schedule_of(plan, spec, x.shape[-1] if last else 1)
        launch(schedule, schedule.units * x.shape[0] * (1 if last else x.shape[1]), x, y, None, given)
