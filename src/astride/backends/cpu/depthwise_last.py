"""Depthwise convolution where the channels come last: every channel has its own window, lanes are channels.

A unit is two rows of y. Their windows are taken some at a time, whose sums lie in registers: a pixel is loaded once for all
the windows that have it as a tap. How taps lie along the width is written out in the code, one way for the windows inside and
a few for those at the edges. Along the height there are three loops: rows of x that only the upper windows read, rows that
both do, and rows of the lower ones; along the depth there is one over the taps inside the input.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...plan import StridedAxis
from ..protocol import Array
from .cache import functions
from .contraction import fused, mask_below
from .conv_gather import Relation, strides
from .conv_layout import transpose
from .conv_windows import classes_of
from .edges import taps_inside
from .ir import Function, Value, Variable, module
from .ir_types import BITS, vector
from .machine import Machine, machine
from .tables import Geometry
from .window import kernel_function
from .workers import address_of, run

CHANNELS, DEPTHS, PAIRS, X_IMAGE, Y_DEPTH, X_TAP, W_TAP, WAYS, TABLES = 0, 1, 2, 3, 4, 5, 8, 11, 12
"""Fields: channels; depths of y and pairs of rows; bytes of an image of x and of a depth of y; bytes from tap to tap along
depth, height and width, in x and in w; how many classes of windows a row has. Then tables: depths, pairs and classes."""

PLACE = 3
"""Numbers of a depth: the byte of its first tap inside in x, how many are inside, and the byte of that tap in w."""

PAIR = 8
"""Numbers of a pair of rows: the byte of the first row read in x; rows of x that only the upper windows read, that both do, and
that only the lower ones do; the bytes of the first tap of either in w; the byte of the upper row in y, and from there to the
lower, 0 where there is none."""

CLASS = 7
"""Numbers of a class: its way; windows; the byte of the first one in x, and from there to the next; the same in y; the byte of
its first tap in w."""

WIDEST, MOST_WAYS = 16, 24
"""Taps along the width, and ways in which they may lie, that are written out; what is beyond goes tap by tap."""

LOOKED_AT = 16
"""Rows after another among which a second one is looked for."""

TAKEN = 1 << 15
"""Products that a thread takes at once, at least."""


@dataclass(frozen=True, slots=True)
class Way:
    """How the taps of some windows lie along the width: so many of them, the next window's and the next tap's pixel."""

    taps: int
    window: int
    tap: int


@dataclass(frozen=True, slots=True)
class Depthwise:
    """All that the code depends on; with `few` channels fill no vector."""

    kind: str
    ways: tuple[Way, ...]
    few: bool

    @property
    def bytes(self) -> int:
        return BITS[self.kind] // 8


@dataclass(frozen=True, slots=True)
class Schedule:
    """A kernel's address, its geometry, the pairs of rows of one image and how many a thread takes."""

    address: int
    geometry: Geometry
    pairs: int
    taken: int


def takes(relation: Relation) -> bool:
    """Whether windows are narrow and alike enough to be written out."""
    return relation.depthwise and relation.axes[-1].kernel <= WIDEST and len(_ways(relation.axes[-1])) <= MOST_WAYS


def compute(relation: Relation, x: Array, w: Array, b: Array | None, y: Array) -> None:
    """y (N, *out, channels) from x (N, *size, channels) and w (channels, 1, *kernel), all contiguous and of one dtype."""
    if not y.size:
        return
    found = schedule(relation)
    weights = np.empty((max(relation.taps, 1), relation.outputs), w.dtype)
    transpose(w.reshape(1, relation.outputs, -1), weights, relation.outputs)
    bias = np.zeros(relation.outputs, w.dtype) if b is None else np.ascontiguousarray(b, w.dtype)
    run(
        found.address,
        found.geometry.address,
        address_of(x),
        address_of(weights),
        address_of(bias),
        address_of(y),
        found.pairs * len(x),
        found.taken,
    )


def _way(taps: int, windows: int, pixel_step: int, step: int) -> Way:
    return Way(taps, pixel_step if windows > 1 else 0, step if taps > 1 else 0)


@lru_cache(maxsize=512)
def _ways(axis: StridedAxis) -> tuple[Way, ...]:
    """The ways that the classes of an axis need, in order."""
    c = classes_of(axis)
    columns = zip(c.taps.tolist(), c.windows.tolist(), c.pixel_step.tolist(), strict=True)
    return tuple(sorted({_way(*numbers, c.step) for numbers in columns}, key=lambda way: (way.taps, way.window, way.tap)))


@lru_cache(maxsize=512)
def schedule(relation: Relation) -> Schedule:
    """How a relation is computed over any number of images."""
    channels, axis = relation.outputs, relation.axes[-1]
    kind, ways = relation.spec.kind, _ways(axis)
    spec = Depthwise(kind, ways, channels < relation.spec.lanes(machine()))
    (address,) = functions("depthwise_last", spec, lambda: depthwise(spec, machine()), ("depthwise",))
    axes = (StridedAxis(1, 1),) * (3 - len(relation.axes)) + relation.axes
    pixel = channels * spec.bytes
    x_steps, y_steps = strides([a.size for a in axes], pixel), strides([a.out for a in axes], pixel)
    w_steps = [step * (-1 if relation.flip else 1) for step in strides([a.kernel for a in axes], pixel)[1:]]
    first = (relation.taps - 1) * pixel if relation.flip else 0
    tables = [depths(axes[0], x_steps[1], w_steps[0], first), _pairs(axes[1], x_steps[2], w_steps[1], y_steps[2])]
    c, inside = classes_of(axis), [taps_inside(a) for a in axes]
    way = [ways.index(_way(*numbers, c.step)) for numbers in zip(c.taps.tolist(), c.windows.tolist(), c.pixel_step.tolist())]
    columns = [np.array(way), c.windows, c.pixel * x_steps[3], c.pixel_step * x_steps[3]]
    tables.append(np.stack([*columns, c.window * y_steps[3], c.window_step * y_steps[3], c.tap * w_steps[2]], 1).astype(np.int64))
    fields = [channels, axes[0].out, len(tables[1]), x_steps[0], y_steps[1]]
    fields += [t.step * step for t, step in zip(inside, x_steps[1:], strict=True)]
    fields += [t.skip * step for t, step in zip(inside, w_steps, strict=True)]
    taken = max(TAKEN // max(2 * axis.out * channels * relation.taps, 1), 1)
    return Schedule(address, Geometry([*fields, len(way)], tables), axes[0].out * len(tables[1]), taken)


def depths(axis: StridedAxis, x_step: int, w_step: int, first: int) -> NDArray[np.int64]:
    """The table of an axis's windows; `first` is the byte of tap 0."""
    taps = taps_inside(axis)
    there = taps.count > 0
    columns = [np.where(there, taps.pixel * x_step, 0), taps.count, np.where(there, taps.number * w_step, 0) + first]
    return np.stack(columns, 1).astype(np.int64)


def _pairs(axis: StridedAxis, x_step: int, w_step: int, y_step: int) -> NDArray[np.int64]:
    """The table of pairs. A row goes with the next one that reads some of the same rows of x; one that finds none is alone."""
    taps = taps_inside(axis)
    pixel, number, count = (part.tolist() for part in (taps.pixel, taps.number, taps.count))
    free, found = [True] * axis.out, []
    for upper in range(axis.out):
        if not free[upper]:
            continue
        end = pixel[upper] + count[upper] * taps.step
        lower, both = upper, 0
        for other in range(upper + 1, min(upper + 1 + LOOKED_AT, axis.out)):
            apart = pixel[other] - pixel[upper]
            if free[other] and count[other] and 0 <= apart < end - pixel[upper] and apart % taps.step == 0:
                lower, both = other, min(count[upper] - apart // taps.step, count[other])
                free[other] = False
                break
        parts = [count[upper] - both, both, count[lower] - both if lower > upper else 0]
        first = pixel[upper] * x_step if count[upper] else 0
        bytes_ = [number[upper] * w_step, number[lower] * w_step, upper * y_step, (lower - upper) * y_step]
        found.append([first, *parts, *bytes_])
    return np.array(found, np.int64).reshape(-1, PAIR)


def depthwise(spec: Depthwise, machine: Machine) -> str:
    """The module of `depthwise`: a is x, b the weights (taps, channels), c the bias, d is y; units are (image, depth, pair)."""
    f = kernel_function("depthwise")
    rows = Rows(spec, machine)
    depths, pairs, classes = (f.at(f.geometry, f.field(f.geometry, TABLES + k)) for k in range(3))
    deep, high = f.field(f.geometry, DEPTHS), f.field(f.geometry, PAIRS)
    with f.loop(f.begin, f.end) as unit:
        slice_, image = unit // high, unit // (high * deep)
        place, pair = f.at(depths, slice_ % deep * (8 * PLACE)), f.at(pairs, unit % high * (8 * PAIR))
        x_depth, taps, w_depth = (f.load("i64", f.at(place, 8 * k)) for k in range(PLACE))
        x_row, w_upper, w_lower, y_row = (f.load("i64", f.at(pair, 8 * k)) for k in (0, 4, 5, 6))
        x = f.at(f.a, image * f.field(f.geometry, X_IMAGE) + x_depth + x_row)
        w = f.at(f.b, w_depth)
        y = f.at(f.d, slice_ * f.field(f.geometry, Y_DEPTH) + y_row)
        with f.loop(0, f.field(f.geometry, WAYS)) as number:
            row = f.at(classes, number * (8 * CLASS))
            way, count, x_at, x_step, y_at, y_step, w_at = (f.load("i64", f.at(row, 8 * k)) for k in range(CLASS))
            given = (f.at(w, w_upper + w_at), f.at(w, w_lower + w_at), f.c, f.geometry, taps, pair)
            for k, one in enumerate(spec.ways):
                with f.when(way.eq(k)):
                    rows.windows(f, one, count, (f.at(x, x_at), x_step), (f.at(y, y_at), y_step), given)
    return module(f, *rows.functions)


class Rows:
    """The functions of one module that compute some windows of a row, written when they are first called."""

    def __init__(self, spec: Depthwise, machine: Machine) -> None:
        self.spec, self.machine, self.lanes = spec, machine, max(machine.lanes(spec.kind), 2)
        self.functions: list[Function] = []
        self._known: dict[tuple[Way, int], str] = {}

    def windows(
        self, f: Function, way: Way, count: Value, x: tuple[Value, Value], y: tuple[Value, Value], given: tuple[Value, ...]
    ) -> None:
        """All windows of a class, the largest tiles first; one that would not be full begins earlier. x and y are the places
        of the first window and the bytes to the next."""
        large, small = (8, 4) if self.machine.registers >= 32 else (4, 2)

        def tile(size: int, at: Value) -> None:
            f.call("void", self._name(way, size), f.at(x[0], at * x[1]), f.at(y[0], at * y[1]), y[1], *given)

        if way.window == 0 and way.taps:
            tile(1, f.value("i64", 0))
            return
        with f.loop(0, count, large) as at:
            rest = f.smaller(count - at, f.value("i64", large))
            with f.when((count >= large) & (rest > small), likely=True) as less:
                tile(large, f.smaller(at, count - large))
                with less.otherwise(), f.loop(0, rest, small) as more, f.when(count >= small, likely=True) as single:
                    tile(small, f.smaller(at + more, count - small))
                    with single.otherwise(), f.loop(more, f.smaller(rest, more + small)) as one:
                        tile(1, at + one)

    def _name(self, way: Way, size: int) -> str:
        if (way, size) not in self._known:
            self._known[way, size] = f"windows_{size}_{len(self._known)}"
            self.functions.append(self._tile(self._known[way, size], way, size))
        return self._known[way, size]

    def _tile(self, name: str, way: Way, size: int) -> Function:
        """`size` windows of two rows, all channels: x at the first tap of the first window, the weights at those taps."""
        spec, kind = self.spec, vector(self.lanes, self.spec.kind)
        arguments = {"upper": "ptr", "lower": "ptr", "bias": "ptr", "geometry": "ptr", "deep": "i64", "pair": "ptr"}
        f = Function(name, private=True, x="ptr", y="ptr", step="i64", **arguments)
        channels = f.field(f.geometry, CHANNELS)
        parts = [f.load("i64", f.at(f.pair, 8 * k)) for k in (1, 2, 3)]
        y_lower = f.at(f.y, f.load("i64", f.at(f.pair, 56)))
        x_tap, w_tap = ([f.field(f.geometry, start + k) for k in range(3)] for start in (X_TAP, W_TAP))
        with f.loop(0, channels, self.lanes) as c:
            mask = mask_below(f, self.lanes, channels) if spec.few else None
            at = (f.value("i64", 0) if spec.few else f.smaller(c, channels - self.lanes)) * spec.bytes
            start = f.load(kind, f.at(f.bias, at), mask=mask)
            sums = [[f.variable(kind, start) for _ in range(size)] for _ in range(2)]
            with f.loop(0, f.deep) as z:
                places = [f.variable("ptr", f.at(f.x, z * x_tap[0] + at))]
                places += [f.variable("ptr", f.at(w, z * w_tap[0] + at)) for w in (f.upper, f.lower)]
                for some, count in zip(([0], [0, 1], [1]), parts, strict=True):
                    with f.loop(0, count):
                        taken = [(sums[k], places[1 + k].get()) for k in some]
                        self._row(f, way, places[0].get(), channels * spec.bytes, taken, w_tap[2], mask)
                        for place, step in [(places[0], x_tap[1]), *((places[1 + k], w_tap[1]) for k in some)]:
                            place.set(f.at(place.get(), step))
            for y, row in ((y_lower, sums[1]), (f.y, sums[0])):  # the lower one first: where there is none it is overwritten
                for m, total in enumerate(row):
                    f.store(total.get(), f.at(y, f.step * m + at), mask=mask)
        return f

    def _row(
        self,
        f: Function,
        way: Way,
        x: Value,
        pixel: Value,
        taken: list[tuple[list[Variable], Value]],
        tap: Value,
        mask: Value | None,
    ) -> None:
        """Add what the windows have of one row of x, to the sums of one or both rows with the weights of each."""
        kind = vector(self.lanes, self.spec.kind)
        users: dict[int, list[tuple[int, int]]] = {}
        for m in range(len(taken[0][0])):
            for t in range(way.taps):
                users.setdefault(m * way.window + t * way.tap, []).append((m, t))
        weights = [[f.load(kind, f.at(w, tap * t), mask=mask) for t in range(way.taps)] for _, w in taken]
        for place in sorted(users):
            value = f.load(kind, f.at(x, pixel * place), mask=mask)
            for (sums, _), of_row in zip(taken, weights, strict=True):
                for m, t in users[place]:
                    sums[m].set(fused(f, value, of_row[t], sums[m].get()))
