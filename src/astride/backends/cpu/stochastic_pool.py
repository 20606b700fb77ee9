"""Stochastic pooling: the tap at which a window's running sum reaches its draw, or at test time sum x^2 / sum x.

Sums run tap by tap in row-major order, as the reference's do, so that a draw finds the same tap. Lanes are channels where
they come last; where they come first, planes are turned into such channels, or where they are few each is an image of one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ...plan import PoolPlan
from ...plan.kinds import Layout, Reduce
from .. import memory
from ..protocol import Array, Arrays, Kernel, Saved, offset_dtype
from . import pooling
from .cache import functions
from .edges import apart, axes_read
from .gradients import Gradient
from .ir import Function, Value, module
from .ir_types import BITS, vector
from .machine import Machine, machine
from .numbers import NUMBERS, Number, converted, lacks
from .pool_last import COVERS, TABLES, over_channels
from .schedule import KEPT, Schedule, chunk_of, shape3
from .schedule_gradient import cover_tables
from .sums import ACCUMULATORS
from .tables import Geometry
from .window import CHANNELS, DILATION, KERNEL, OUT, SIZE, Cover, Window, fields, kernel_function, walk


@dataclass(frozen=True, slots=True)
class Draw:
    """What a kernel depends on besides geometry. `gives` is "draw", "mean" or "total", the sum in the type it is formed in."""

    gives: str
    dtype: str
    accumulate: str
    limit: str = "float"
    offsets: int = 0

    @property
    def number(self) -> Number:
        return NUMBERS[self.dtype]

    @property
    def index(self) -> str:
        return f"i{max(BITS[self.accumulate], BITS[self.number.computed], 8 * self.offsets)}"

    def lanes(self, machine: Machine) -> int:
        return machine.lanes(self.index)


def text(spec: Draw, machine: Machine) -> str:
    """The module of `forward`: a is x, b is y, c the offsets, d the draws; units are rows (image, depth, height) of y."""
    f = kernel_function("forward")
    channels, number = f.field(f.geometry, CHANNELS), spec.number
    size, out, kernel, dilation = (fields(f, start) for start in (SIZE, OUT, KERNEL, DILATION))
    tables = [f.at(f.geometry, f.field(f.geometry, TABLES + axis)) for axis in range(3)]
    pixel = channels * number.bytes
    steps = [dilation[0] * size[1] * size[2] * pixel, dilation[1] * size[2] * pixel, dilation[2] * pixel]
    with f.loop(f.begin, f.end) as unit:
        image, row = unit // (out[0] * out[1]), unit % (out[0] * out[1])
        depth, height = Window.read(f, tables[0], row // out[1]), Window.read(f, tables[1], row % out[1])
        line = ((image * size[0] + depth.pixel) * size[1] + height.pixel) * size[2]
        with f.loop(0, out[2]) as column:
            axes = (depth, height, Window.read(f, tables[2], column))
            x, place = f.at(f.a, (line + axes[2].pixel) * pixel), (unit * out[2] + column) * channels

            def body(c: Value, lanes: int, blocks: int) -> None:
                window = OneWindow(f, spec, lanes, place + c)
                base = f.at(x, c * number.bytes)
                walk(f, axes, kernel, steps, base, window.add)
                if spec.gives == "draw":
                    window.draw()
                    walk(f, axes, kernel, steps, base, window.look)
                window.finish()

            over_channels(f, channels, spec.lanes(machine), 1, body)
    return module(f)


class OneWindow:
    """The registers of one vector of windows."""

    def __init__(self, f: Function, spec: Draw, lanes: int, place: Value) -> None:
        self.f, self.spec, self.lanes, self.place = f, spec, lanes, place
        self._kind, self._index = vector(lanes, spec.accumulate), vector(lanes, spec.index)
        self.total, self.squares = f.variable(self._kind, 0), f.variable(self._kind, 0)
        self.value, self.found = f.variable(vector(lanes, spec.number.computed), 0), f.variable(self._index, -1)

    def add(self, pointer: Value, number: Value) -> None:
        """The sums, tap by tap."""
        x = self._wide(self.spec.number.load(self.f, pointer, self.lanes))
        self.total.set(self.total.get() + x)
        if self.spec.gives == "mean":
            self.squares.set(self.squares.get() + x * x)

    def draw(self) -> None:
        """The threshold: draw * sum, rounded as the plan says; then the sum starts again."""
        spec, f = self.spec, self.f
        uniform = self._wide(spec.number.load(f, f.at(f.d, self.place * spec.number.bytes), self.lanes))
        self.threshold = (uniform * self.total.get()).to(spec.limit).to(spec.accumulate)
        self.total.set(0)

    def look(self, pointer: Value, number: Value) -> None:
        """Whether the running sum reaches the threshold at this tap, for the first time."""
        f, spec = self.f, self.spec
        tap, found = spec.number.load(f, pointer, self.lanes), self.found.get()
        running = self.total.get() + self._wide(tap)
        self.total.set(running)
        here = (running >= self.threshold) & found.eq(-1)
        self.value.set(f.select(here, tap, self.value.get()))
        self.found.set(f.select(here, f.splat(number.to(spec.index), self.lanes), found))

    def finish(self) -> None:
        """Store what the window gives."""
        f, spec, total = self.f, self.spec, self.total.get()
        if spec.gives == "total":
            f.store(total, f.at(f.b, self.place * (BITS[spec.accumulate] // 8)))
            return
        y = f.at(f.b, self.place * spec.number.bytes)
        if spec.gives == "mean":
            mean = f.select(total > 0.0, self.squares.get() / total, f.value(self._kind, 0.0))
            spec.number.store(f, mean.to(spec.number.computed), y)
            return
        spec.number.store(f, self.value.get(), y)
        if spec.offsets:
            f.store(self.found.get().to(f"i{8 * spec.offsets}"), f.at(f.c, self.place * spec.offsets))

    def _wide(self, value: Value) -> Value:
        return converted(self.f, value, self.spec.number, self.spec.accumulate)


def gradient_text(spec: Draw, machine: Machine) -> str:
    """The module of `backward` of the mean: a is x and becomes dx, b is dy, c is y, d the windows' totals; units are rows
    (image, depth, height) of dx. A pixel is read by nobody but the vector that then writes it."""
    f = kernel_function("backward")
    number, channels, kind = spec.number, f.field(f.geometry, CHANNELS), spec.accumulate
    size, out = (fields(f, start) for start in (SIZE, OUT))
    firsts = [f.at(f.geometry, f.field(f.geometry, COVERS + axis)) for axis in range(3)]
    entries = [f.at(f.geometry, f.field(f.geometry, COVERS + 3 + axis)) for axis in range(3)]
    with f.loop(f.begin, f.end) as unit, f.loop(0, size[2]) as column:
        image, row = unit // (size[0] * size[1]), unit % (size[0] * size[1])
        depths, heights = Cover.range(f, firsts[0], row // size[1]), Cover.range(f, firsts[1], row % size[1])
        widths = Cover.range(f, firsts[2], column)

        def numbers(pointer: Value, place: Value, lanes: int) -> Value:
            return converted(f, number.load(f, f.at(pointer, place * number.bytes), lanes), number, kind)

        with f.loop(0, channels) as c:
            place = (unit * size[2] + column) * channels + c
            x, zero = numbers(f.a, place, 1), f.value(kind, 0.0)
            sum_ = f.variable(kind, 0)
            with f.loop(*depths) as i, f.loop(*heights) as j, f.loop(*widths) as k:
                d, h, w = (Cover.read(f, entries[a], n).window for a, n in enumerate((i, j, k)))
                window = (((image * out[0] + d) * out[1] + h) * out[2] + w) * channels + c
                total = f.load(kind, f.at(f.d, window * (BITS[kind] // 8)))
                slope = f.select(total > 0.0, (x + x - numbers(f.c, window, 1)) / total, zero)
                sum_.set(sum_.get() + slope * numbers(f.b, window, 1))
            number.store(f, sum_.get().to(number.computed), f.at(f.a, place * number.bytes))
    return module(f)


def declines(plan: PoolPlan) -> str | None:
    """Why this backend does not draw by a plan; None if it does."""
    if lacks(plan.dtype) or not NUMBERS[plan.dtype].floating:
        return f"no kernels for {plan.dtype}"
    if plan.accumulate not in ("float32", "float64") or plan.threshold not in ("float32", "float64"):
        return f"no kernels that compare in {plan.threshold} or sum in {plan.accumulate}"
    if plan.dtype == "float64" != plan.accumulate:
        return f"no kernels that sum float64 in {plan.accumulate}"
    return None


@lru_cache(maxsize=KEPT)
def _forward_schedule(plan: PoolPlan, gives: str, channels: int, save: bool) -> Schedule:
    accumulate = ACCUMULATORS[plan.accumulate]
    # A limit wider than the sums changes nothing: what is compared are the sums' own numbers.
    limit = "float" if "float32" in (plan.threshold, plan.accumulate) else "double"
    spec = Draw(gives, plan.dtype, accumulate, limit, offset_dtype(plan.taps).itemsize if save and gives == "draw" else 0)
    (address,) = functions(f"stochastic_pool_{gives}", spec, lambda: text(spec, machine()), ("forward",))
    shape = shape3(plan, close=True)
    return _schedule(plan, spec, address, Geometry(shape.fields(channels, 1), shape.tables), [a.out for a in plan.axes], channels)


@lru_cache(maxsize=KEPT)
def _backward_schedule(plan: PoolPlan, channels: int) -> Schedule:
    spec = Draw("mean", plan.dtype, ACCUMULATORS[plan.accumulate])
    (address,) = functions("stochastic_pool_gradient", spec, lambda: gradient_text(spec, machine()), ("backward",))
    tables = cover_tables(plan, Gradient.of(plan))[0]
    geometry = Geometry(shape3(plan).fields(channels, 1), tables)
    return _schedule(plan, spec, address, geometry, [axis.size for axis in axes_read(plan)], channels)


def _schedule(plan: PoolPlan, spec: Any, address: int, geometry: Geometry, sizes: list[int], channels: int) -> Schedule:
    chunk = chunk_of(sizes[-1] * channels * spec.number.bytes * max(plan.taps, 1))
    return Schedule(plan, address, geometry, spec, math.prod(sizes[:-1]), chunk)


def forward(plan: PoolPlan, x: Array, uniform: Array | None = None, *, out: Array, save: bool) -> tuple[Array, Saved | None]:
    """Pool x into out by draws, or by the weighted mean; with `save`, keep what backward needs."""
    drawn, last = plan.reduce is Reduce.STOCHASTIC, plan.layout is Layout.CHANNELS_LAST
    x, y = memory.contiguous(x), out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
    offsets = np.empty(y.shape, offset_dtype(plan.taps)) if save and drawn else None
    _run(plan, "draw" if drawn else "mean", x, y, offsets, None if uniform is None else memory.contiguous(uniform))
    if y is not out:
        out[...] = y
    if not save:
        return out, None
    shapes = (x.shape, None if uniform is None else uniform.shape)
    if offsets is not None:
        return out, Saved(shapes, apart(plan, np.moveaxis(offsets, -1, 1) if last else offsets))
    return out, Saved(shapes, x=x, y=out)


MANY = 16
"""Planes from which it pays to turn them into channels that come last."""


def _run(plan: PoolPlan, gives: str, x: Array, y: Array, offsets: Array | None, uniform: Array | None) -> None:
    if not y.size:
        return
    if plan.layout is Layout.CHANNELS_LAST:
        schedule = _forward_schedule(plan, gives, x.shape[-1], offsets is not None)
        pooling.launch(schedule, schedule.units * x.shape[0], x, y, offsets, uniform)
        return
    planes = x.shape[0] * x.shape[1]
    if planes < MANY:
        schedule = _forward_schedule(plan, gives, 1, offsets is not None)
        pooling.launch(schedule, schedule.units * planes, x, y, offsets, uniform)
        return
    schedule = _forward_schedule(plan, gives, planes, offsets is not None)
    given, draws = (None if a is None else memory.contiguous(a.reshape(planes, -1).T) for a in (x, uniform))
    assert given is not None
    found, places = (None if a is None else np.empty((a.size // planes, planes), a.dtype) for a in (y, offsets))
    assert found is not None
    pooling.launch(schedule, schedule.units, given, found, places, draws)
    for to, part in ((y, found), (offsets, places)):
        if to is not None and part is not None:
            to.reshape(planes, -1)[...] = part.T


def backward(plan: PoolPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """dy to the drawn tap; of the weighted mean (2x - y) / sum x."""
    if saved.offsets is not None or not want[0]:
        return pooling.backward(plan, dy, saved, want=want)
    assert saved.x is not None and saved.y is not None
    last = plan.layout is Layout.CHANNELS_LAST
    dx = np.array(saved.x, order="C")
    total = np.empty(dy.shape, plan.accumulate)
    _run(plan, "total", dx, total, None, None)
    if dx.size:
        schedule = _backward_schedule(plan, dx.shape[-1] if last else 1)
        planes = dx.shape[0] * (1 if last else dx.shape[1])
        pooling.launch(schedule, schedule.units * planes, dx, memory.contiguous(dy), memory.contiguous(saved.y), total)
    return (dx, None)


KERNELS = (Kernel("taps", forward, backward, declines, numpy=False),)
