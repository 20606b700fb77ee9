"""How a pooling plan is computed: which kernel, the numbers it reads, and how its work is cut into units. Made once a plan."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...plan import PoolPlan, StridedAxis
from ...plan.kinds import Divisor, Layout, Reduce
from . import (
    line_direct,
    line_quick,
    pool_first,
    pool_first_whole,
    pool_last,
    pool_last_quick,
    pool_planes,
    schedule_flat,
    schedule_planes,
)
from .cache import functions
from .edges import axes_read, taps_inside
from .extremes import Extreme, Matching
from .gradients import Gradient
from .line import BUFFER, TOGETHER, Across, Wide
from .machine import machine
from .sums import Sum
from .tables import Geometry, windows
from .window import OUT, Spec

CHUNK_BYTES = 1 << 17
"""About as much memory as one thread takes at once."""

SHARED_CHUNKS = 16
"""Chunks from which work is shared: some thirty microseconds."""

FEW_TAPS = 9
"""Taps of a window up to which those of several planes are compared at once even where a row fills two vectors."""

KEPT = 512
"""Schedules kept, one a plan and purpose."""


@dataclass(slots=True)
class Schedule:
    """How a plan is computed: the kernel's address, its geometry, how many units of the output one image (plane, where the
    channels come first) has, or with `bundled` all of them together, and how many a thread takes at once."""

    plan: PoolPlan
    address: int
    geometry: Geometry
    spec: Any
    units: int
    chunk: int
    bundled: bool = False
    alone: int = 0
    """Units up to which the caller computes alone: waking others would take longer."""

    def total(self, shape: Sequence[int]) -> int:
        """The units of an array of this shape."""
        if self.bundled:
            return self.units
        return self.units * shape[0] * (1 if self.plan.layout is Layout.CHANNELS_LAST else shape[1])


schedules: dict[tuple[int, str, int], Schedule] = {}


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


def merged(shape: Shape3) -> Shape3:
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


def factor_of(plan: PoolPlan) -> int:
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
    few = 0 < channels < FEW and channels * machine().vector_bytes <= 256
    if few and _way(plan, spec, _shape(plan, spec), channels) is not None:
        return _forward_first(plan, spec, channels)
    shape = _shape(plan, spec)
    whole = pool_last_quick.way_of(spec, shape.kernels)
    (address,) = functions(
        f"pool_last_{plan.reduce}",
        (spec, whole),
        lambda: pool_last_quick.forward(spec, whole, machine()) if whole else pool_last.forward(spec, machine()),
        ("forward",),
    )
    return address, Geometry(shape.fields(channels, factor_of(plan)), shape.tables)


def _forward_first(plan: PoolPlan, spec: Spec, group: int = 1) -> tuple[int, Geometry]:
    shape = merged(_shape(plan, spec)) if group == 1 else _shape(plan, spec)
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
        tables += [column(np.repeat(tables[2][:, part], group), kind) for part in (3, 1)]
    return address, Geometry([*shape.fields(1, factor_of(plan)), start, tile, batch, segment], tables)


def column(values: NDArray[np.int64], kind: Any) -> NDArray[np.int64]:
    """One number a column, in the type sums are formed in and with room for a vector's end, as words."""
    column = np.pad(values.astype(kind), (0, 64))
    return column.view(np.uint8)[: column.nbytes // 8 * 8].view(np.int64)


def forward_schedule(plan: PoolPlan, shape: Sequence[int], save: bool) -> Schedule:
    """How a plan is computed forward, for an input of this shape; made once."""
    last = plan.layout is Layout.CHANNELS_LAST
    number = shape[-1] if last else shape[0] * shape[1]
    key = (id(plan), "save" if save else "forward", number)
    found = schedules.get(key)
    if found is not None and found.plan is plan:
        return found
    spec = spec_of(plan, save)
    bundled = None if last else _together(plan, spec, number)
    if bundled is not None:
        taps = number * math.prod(axis.out for axis in axes_read(plan)) * max(plan.taps, 1)
        return kept(key, bundle(plan, spec, bundled, taps * spec.number.bytes // bundled[2]))
    address, geometry = _forward_last(plan, spec, number) if last else _forward_first(plan, spec)
    return kept(key, _scheduled(plan, spec, address, geometry, number if last else 1))


def _together(plan: PoolPlan, spec: Spec, planes: int) -> tuple[int, Geometry, int] | None:
    """The kernel's address, what it reads and its units, where it takes several planes at once; None where it should not."""
    flat = schedule_flat.forward(plan, spec, _shape(plan, spec), planes) if isinstance(spec, Extreme) else None
    return flat or _whole_planes(plan, spec, planes) or _bundled(plan, spec, planes)


def _whole_planes(plan: PoolPlan, spec: Spec, planes: int) -> tuple[int, Geometry, int] | None:
    """One sum over each plane."""
    fields = whole_planes(plan, spec, planes)
    if fields is None or not isinstance(spec, Sum):
        return None
    (address,) = functions(f"pool_whole_{plan.reduce}", spec, lambda: pool_first_whole.forward(spec, machine()), ("forward",))
    return address, Geometry(fields, []), -(-planes // machine().lanes(spec.accumulate))


def whole_planes(plan: PoolPlan, spec: Spec | Gradient, planes: int) -> list[int] | None:
    """What `pool_first_whole` reads, where each window is a whole plane and there are enough planes; else None."""
    if not isinstance(spec, Sum | Gradient) or not pool_first_whole.takes(spec, machine()):
        return None
    if planes < machine().lanes(spec.accumulate):
        return None
    shape = merged(shape3(plan))
    pixels, table = shape.sizes[2], shape.tables[2]
    if shape.outs != [1, 1, 1] or shape.sizes[:2] != [1, 1]:
        return None
    if table[0, 0] or table[0, 1] != pixels or shape.dilations[2] != 1 or not pixels:
        return None
    divisor = math.prod(int(part[0, 3]) for part in shape.tables) * factor_of(plan)
    return [planes, pixels, divisor, math.prod(shape.kernels)]


def _bundled(plan: PoolPlan, spec: Spec, planes: int) -> tuple[int, Geometry, int] | None:
    """Several planes at a time, where rows are too short for lanes of their own or windows would be scanned tap by tap."""
    shape, lanes = _shape(plan, spec), pool_planes.lanes_of(spec, machine())
    way = _way(plan, spec, merged(shape), 1)
    if lanes is None or isinstance(way, Wide):
        return None
    direct = isinstance(way, Across) and line_direct.takes(spec, way, machine())
    least = lanes
    if spec.offsets and plan.taps <= FEW_TAPS and not direct:
        least = 2 * lanes
    elif direct and not spec.offsets and isinstance(way, Across) and way.stride > 1:
        least = lanes * 3 // 4
    if way is not None and shape.outs[2] >= least:
        return None
    return schedule_planes.forward(plan, spec, shape, factor_of(plan), planes)


def _scheduled(plan: PoolPlan, spec: Spec, address: int, geometry: Geometry, channels: int) -> Schedule:
    depth, height, width = (int(n) for n in geometry.memory[OUT : OUT + 3])  # where axes were merged, not the plan's
    rows, row = depth * height, width * channels * spec.number.bytes * max(plan.taps, 1)
    return Schedule(plan, address, geometry, spec, rows, chunk_of(row), alone=alone_of(row))


def alone_of(unit_bytes: int) -> int:
    """Units that are too little work to share."""
    return SHARED_CHUNKS * CHUNK_BYTES // max(unit_bytes, 1)


def chunk_of(unit_bytes: int) -> int:
    """Units one thread takes at once."""
    return max(CHUNK_BYTES // max(unit_bytes, 1), 1)


def bundle(plan: PoolPlan, spec: Any, found: tuple[int, Geometry, int], unit_bytes: int) -> Schedule:
    """A schedule whose units, of so many bytes each, are those of all planes; `found` is the kernel, what it reads and units."""
    address, geometry, units = found
    return Schedule(plan, address, geometry, spec, units, chunk_of(unit_bytes), bundled=True, alone=alone_of(unit_bytes))


def kept(key: tuple[int, str, int], made: Schedule) -> Schedule:
    if len(schedules) >= KEPT:
        schedules.clear()
    schedules[key] = made
    return made


@lru_cache(maxsize=KEPT)
def schedule_of(plan: PoolPlan, spec: Spec, channels: int) -> Schedule:
    """How another spec than the plan's own is computed over its windows; `channels` is 1 where they come first."""
    last = plan.layout is Layout.CHANNELS_LAST
    address, geometry = _forward_last(plan, spec, channels) if last else _forward_first(plan, spec)
    return _scheduled(plan, spec, address, geometry, channels)
