"""How a pooling plan's gradient is computed: pixels gather from their windows, or windows scatter to theirs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...plan import PoolPlan, StridedAxis
from ...plan.kinds import Edge, Layout
from . import (
    pool_first_flat,
    pool_first_gradient,
    pool_first_scatter,
    pool_first_whole,
    pool_last,
    schedule_flat,
    schedule_last,
    schedule_planes,
)
from .cache import functions
from .edges import axes_read, taps_inside
from .gradients import Gradient
from .line import Across
from .machine import machine
from .schedule import (
    Schedule,
    alone_of,
    bundle,
    chunk_of,
    column,
    factor_of,
    kept,
    merged,
    schedules,
    shape3,
    three,
    whole_planes,
)
from .tables import Geometry, covers, windows

LITTLE_OVERLAP = 4
"""Windows that have a pixel up to which pixels gather rather than windows scatter one by one."""

SIDE_BY_SIDE = 8
"""Taps along the width from which a window's gradient is added row by row."""

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
    return shape3(plan).fields(channels, factor_of(plan) if spec.kind == "share" else 1)


def _backward_last(plan: PoolPlan, spec: Gradient, channels: int) -> tuple[int, Geometry]:
    (address,) = functions(f"pool_last_{plan.reduce}_gradient", spec, lambda: pool_last.backward(spec, machine()), ("backward",))
    return address, Geometry(_backward_fields(plan, spec, channels), cover_tables(plan, spec)[0])


def _scattered(plan: PoolPlan, spec: Gradient) -> tuple[int, Geometry] | None:
    """The gradient plane by plane, where that is faster: one tap a window, or many side by side."""
    shape = merged(shape3(plan))
    number, table = spec.number, shape.tables[2]
    if plan.edge is not Edge.SKIP or any(isinstance(axis, StridedAxis) and axis.input_dilation > 1 for axis in plan.axes):
        return None
    in_order = pool_first_scatter.in_order(spec)
    largest = pool_first_scatter.LARGEST_IN_ORDER if in_order else pool_first_scatter.LARGEST_PLANE
    if number.stored != spec.accumulate or math.prod(shape.sizes) * number.bytes > largest:
        return None
    wide = spec.kind in ("share", "norm") and len(table) > 0 and table[:, 1].mean() >= SIDE_BY_SIDE and shape.dilations[2] == 1
    if not wide and (spec.kind != "offsets" or math.prod(shape.kernels) > pool_first_scatter.MOST_TAPS):
        return None
    if not wide and not in_order and _overlap(plan) <= LITTLE_OVERLAP:
        return None
    group = pool_first_scatter.together(spec, math.prod(shape.sizes) * number.bytes)
    (address,) = functions(
        f"pool_first_{plan.reduce}_scatter",
        (spec, group),
        lambda: pool_first_scatter.backward(spec, group, machine()),
        ("backward",),
    )
    tables, places, more = list(shape.tables), np.zeros(1, np.int64), list[NDArray[np.int64]]()
    if spec.kind == "offsets":
        for size, kernel, dilation in zip(shape.sizes, shape.kernels, shape.dilations, strict=True):
            places = (places[:, None] * size + np.arange(kernel, dtype=np.int64) * dilation).ravel()
        planes = (shape.sizes[1] * shape.sizes[2], shape.sizes[2], 1)
        starts = [table[:, 0] - table[:, 2] * dilation for table, dilation in zip(tables, shape.dilations, strict=True)]
        tables = [start * plane for start, plane in zip(starts, planes, strict=True)]
        if in_order:
            more = [pool_first_scatter.starts_table(shape.kernels, shape.sizes, shape.dilations, tables)]
    factor = factor_of(plan) if spec.kind == "share" else 1
    return address, Geometry(shape.fields(1, factor), [*tables, places, *more])


def _flat(plan: PoolPlan, spec: Gradient, planes: int) -> Schedule | None:
    """All planes as one row, where there are as many windows as pixels."""
    window = schedule_flat.window_of(plan)
    if window is None or not pool_first_flat.takes(spec, machine()):
        return None
    (address,) = functions(
        f"pool_flat_{plan.reduce}_gradient",
        (spec, window),
        lambda: pool_first_flat.backward(spec, window, machine()),
        ("backward",),
    )
    sizes = three([axis.size for axis in plan.axes], 1)
    total = planes * math.prod(sizes)
    units = -(-total // pool_first_flat.UNIT)
    geometry = Geometry([total, sizes[2], sizes[1] * sizes[2]], [])
    return bundle(plan, spec, (address, geometry, units), pool_first_flat.UNIT * spec.number.bytes * plan.taps // 2)


def _whole(plan: PoolPlan, spec: Gradient, planes: int) -> Schedule | None:
    """Each plane filled with its share, where there is one average over it."""
    fields = whole_planes(plan, spec, planes)
    if fields is None:
        return None
    (address,) = functions(
        f"pool_whole_{plan.reduce}_gradient", spec, lambda: pool_first_whole.backward(spec, machine()), ("backward",)
    )
    lanes = machine().lanes(spec.accumulate)
    unit = 2 * fields[pool_first_whole.PIXELS] * spec.number.bytes * lanes
    return bundle(plan, spec, (address, Geometry(fields, []), -(-planes // lanes)), unit)


def _overlap(plan: PoolPlan) -> int:
    """Windows that have a pixel, at most."""
    return math.prod(-(-axis.kernel // axis.stride) if isinstance(axis, StridedAxis) else 2 for axis in plan.axes)


def _quick_gradient(plan: PoolPlan, spec: Gradient) -> Across | None:
    """The window along the width, if rows of pixels gather from it at once."""
    axis = axes_read(plan)[-1]
    if not isinstance(axis, StridedAxis) or axis.pad_lo < 0 or axis.input_dilation > 1:
        return None
    across = Across(axis.kernel, axis.stride, axis.dilation)
    return across if pool_first_gradient.takes(spec, across, 16) else None


def _backward_first(plan: PoolPlan, spec: Gradient) -> tuple[int, Geometry]:
    axis, across = axes_read(plan)[-1], _quick_gradient(plan, spec)
    (address,) = functions(
        f"pool_first_{plan.reduce}_gradient",
        (spec, across),
        lambda: pool_first_gradient.backward(spec, across, machine()),
        ("backward",),
    )
    tables, shares = cover_tables(plan, spec)
    tables.append(column(shares, {"i64": np.int64, "double": np.float64, "float": np.float32}[spec.share]))
    pad = axis.pad_lo if isinstance(axis, StridedAxis) else 0
    tile = pool_first_gradient.tile(across, 16) if across is not None else 0
    return address, Geometry([*_backward_fields(plan, spec, 1), pad, tile, 0], tables)


def _bundled(plan: PoolPlan, spec: Gradient, planes: int) -> tuple[int, Geometry, int] | None:
    """Several planes at a time."""
    factor = factor_of(plan) if spec.kind == "share" else 1
    return schedule_planes.backward(plan, spec, shape3(plan), factor, cover_tables(plan, spec)[0], planes)


def backward_schedule(plan: PoolPlan, shape: tuple[int, ...]) -> Schedule:
    """How a plan's gradient is computed for an input of this shape; made once."""
    last = plan.layout is Layout.CHANNELS_LAST
    if last and shape[-1] == 1:
        last, shape = False, (shape[0], 1, *shape[1:-1])  # one channel lies in memory as a plane does
    channels, planes = (shape[-1], 0) if last else (1, shape[0] * shape[1])
    many = planes >= pool_first_scatter.FEWEST_PLANES
    streamed = last and schedule_last.large(plan, shape)
    key = (id(plan), "streamed" if streamed else "backward" if last else "planes", channels if last else planes)
    found = schedules.get(key)
    if found is not None and found.plan is plan:
        return found
    spec = Gradient.of(plan)
    if last and (quick := schedule_last.backward_last(plan, spec, shape)) is not None:
        return kept(key, quick)
    if not last and (made := _whole(plan, spec, planes) or _flat(plan, spec, planes)) is not None:
        return kept(key, made)
    scattered = _scattered(plan, spec) if many else None
    bundled = _bundled(plan, spec, planes) if many and scattered is None else None
    if bundled is not None:
        pixels = planes * math.prod(axis.size for axis in axes_read(plan))
        return kept(key, bundle(plan, spec, bundled, 2 * pixels * spec.number.bytes // bundled[2]))
    address, geometry = scattered or (_backward_last(plan, spec, channels) if last else _backward_first(plan, spec))
    axes = axes_read(plan)
    units = 1 if scattered else math.prod(axis.size for axis in axes[:-1])
    row = axes[-1].size * channels * spec.number.bytes * 2
    if scattered:
        row *= math.prod(axis.size for axis in axes[:-1])
    chunk, together = chunk_of(row), pool_first_scatter.together(spec, row // 2)
    if scattered and planes >= 4 * together:
        chunk = -(-chunk // together) * together
    return kept(key, Schedule(plan, address, geometry, spec, units, chunk, alone=alone_of(row)))
