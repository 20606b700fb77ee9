"""From pooling plans to kernels: what each accepts, the schedule of one plan, and the call."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import settings
from ...plan import PoolPlan, StridedAxis
from ...plan.kinds import Divisor, Edge, Layout, Reduce
from ..reference._windows import counts_inside
from ..protocol import Array, Arrays, Saved, offset_dtype
from . import pool_last
from .cache import functions
from .extremes import Extreme
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


def forward_schedule(plan: PoolPlan, channels: int, save: bool) -> Schedule:
    key = (id(plan), "save" if save else "forward", channels)
    found = _schedules.get(key)
    if found is not None and found.plan is plan:
        return found
    spec = spec_of(plan, save)
    (address,) = functions(f"pool_last_{plan.reduce}", spec, lambda: pool_last.forward(spec, machine()), ("forward",))
    rows = math.prod(axis.out for axis in plan.axes[:-1])
    row = plan.axes[-1].out * channels * spec.number.bytes * max(plan.taps, 1)
    made = Schedule(plan, address, Geometry(_fields(plan, channels), _tables(plan)), spec, rows, row)
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
        total = schedule.units * x.shape[0]
        chunk = max(CHUNK_BYTES // max(schedule.unit_bytes, 1), 1)
        workers().launch(
            schedule.address,
            schedule.geometry.address,
            x.ctypes.data,
            y.ctypes.data,
            0 if offsets is None else offsets.ctypes.data,
            0,
            total,
            chunk,
            settings.threads(),
        )
    if y is not out:
        out[...] = y
    if not save:
        return out, None
    if offsets is not None and last:
        offsets = np.moveaxis(offsets, -1, 1)
    return out, Saved(shapes=(x.shape, None), offsets=offsets, x=x, y=out)


def backward_schedule(plan: PoolPlan, channels: int) -> Schedule:
    key = (id(plan), "backward", channels)
    found = _schedules.get(key)
    if found is not None and found.plan is plan:
        return found
    spec = Gradient.of(plan)
    (address,) = functions(f"pool_last_{plan.reduce}_gradient", spec, lambda: pool_last.backward(spec, machine()), ("backward",))
    tables = [np.array([0, 1], np.int64)] * (3 - len(plan.axes)), [np.array([[0, 0, 1]], np.int64)] * (3 - len(plan.axes))
    for a, axis in enumerate(plan.axes):
        shares = counts_inside(axis) if spec.kind == "norm" else windows(plan, a)[:, 3]
        for kept, table in zip(tables, covers(axis, shares), strict=True):
            kept.append(table)
    fields = _fields(plan, channels)
    if spec.kind == "norm":
        fields[-1] = 1
    rows = math.prod(axis.size for axis in plan.axes[:-1])
    row = plan.axes[-1].size * channels * spec.number.bytes * 2
    made = Schedule(plan, address, Geometry(fields, [*tables[0], *tables[1]]), spec, rows, row)
    if len(_schedules) >= KEPT:
        _schedules.clear()
    _schedules[key] = made
    return made


def backward(plan: PoolPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """The gradient of x."""
    if not want[0]:
        return (None, None)
    shape = saved.shapes[0]
    assert shape is not None
    last = plan.layout is Layout.CHANNELS_LAST
    schedule = backward_schedule(plan, shape[-1] if last else shape[1])
    dx = np.empty(shape, dy.dtype)
    other = saved.offsets if schedule.spec.offsets else saved.y if schedule.spec.kind == "norm" else None
    if other is not None:
        other = np.ascontiguousarray(np.moveaxis(other, 1, -1) if schedule.spec.offsets and last else other)
    dy = np.ascontiguousarray(dy)
    x = np.ascontiguousarray(saved.x) if schedule.spec.reads_x else None
    if dx.size:
        workers().launch(
            schedule.address,
            schedule.geometry.address,
            dx.ctypes.data,
            dy.ctypes.data,
            0 if other is None else other.ctypes.data,
            0 if x is None else x.ctypes.data,
            schedule.units * shape[0],
            max(CHUNK_BYTES // max(schedule.unit_bytes, 1), 1),
            settings.threads(),
        )
    return (dx, None)
