"""Convolution in many small groups where the channels come last: lanes are channels, of several groups at once.

Depthwise, every channel is its own group and a vector of x is what a vector of y needs. In groups of two to eight channels
each of these is a vector that has one of its group's channels in every lane, by a shuffle.

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
from ..epilogue import Epilogue
from ..protocol import Array
from .cache import functions
from .contraction import PIECE, fused, mask_below
from .conv_gather import Relation, strides
from .conv_layout import transpose
from .conv_windows import classes_of
from .edges import taps_inside
from .ending import bits, finisher, given, opened, spilled, stored
from .ir import Function, Value, Variable, module
from .ir_types import BITS, vector
from .machine import Machine, machine
from .tables import Geometry
from .window import kernel_function
from .workers import address_of, run

CHANNELS, DEPTHS, PAIRS, X_IMAGE, Y_DEPTH, X_TAP, W_TAP, WAYS, W_INPUT, HOW, TABLES = 0, 1, 2, 3, 4, 5, 7, 9, 10, 11, 12
"""Fields: channels; depths of y and pairs of rows; bytes of an image of x and of a depth of y; bytes from tap to tap along depth
and height, in x and in w; how many classes of windows a row has; bytes of an input channel's taps in w; what is done with
sums. Then tables: depths, pairs and classes. Weights are in blocks of a vector of channels of y, each of which
has input channels and taps."""

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

MOST_INPUTS, MOST_TAPS = 8, 48
"""Channels of a group, and taps along the width times those, that are written out."""

LOOKED_AT = 16
"""Rows after another among which a second one is looked for."""

TAKEN = 1 << 15
"""Products that a thread takes at once, at least."""


@dataclass(frozen=True, slots=True)
class Way:
    """How the taps of some windows lie along the width: so many of them, the next window's and the next tap's pixel, and the
    next tap's number."""

    taps: int
    window: int
    tap: int
    number: int


@dataclass(frozen=True, slots=True)
class Depthwise:
    """All that the code depends on: `inputs` channels of a group; with `few` channels fill no vector."""

    kind: str
    ways: tuple[Way, ...]
    inputs: int
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


@lru_cache(maxsize=512)
def takes_rows(relation: Relation) -> bool:
    """Whether groups are small enough, and windows narrow and alike enough to be written out."""
    inputs, width = relation.inputs // relation.groups, relation.axes[-1].kernel
    if relation.groups == 1 or relation.inputs != relation.outputs or width > WIDEST:
        return False
    if inputs > 1 and (inputs > MOST_INPUTS or relation.spec.lanes(machine()) % inputs or relation.taps * inputs > 2 * PIECE):
        return False
    return width * inputs <= MOST_TAPS and len(set(_ways(relation.axes[-1], relation.flip))) <= MOST_WAYS


def compute(
    relation: Relation,
    x: Array,
    w: Array,
    b: Array | None,
    y: Array,
    *,
    epilogue: Epilogue | None = None,
    residual: Array | None = None,
) -> None:
    """y (N, *out, channels) from x (N, *size, channels) and the weights, all contiguous and of one dtype."""
    if not y.size:
        return
    how = bits(epilogue, residual)
    found, weights = schedule(relation, how), by_tap(relation, w)
    bias = np.zeros(relation.outputs, w.dtype) if b is None else np.ascontiguousarray(b, w.dtype)
    begin, memory = given(how, bias, epilogue, residual, y)
    places = (address_of(x), address_of(weights), begin, address_of(y))
    run(found.address, found.geometry.address, *places, found.pairs * len(x), found.taken)
    del memory


def by_tap(relation: Relation, w: Array, starts: tuple[int, ...] = ()) -> Array:
    """The weights in blocks (inputs of a group, taps, lanes) of the channels of y that begin at `starts`, or of all of them as
    they are walked."""
    groups, inputs = relation.groups, relation.inputs // relation.groups
    if relation.swapped and inputs > 1:
        w = w.reshape(groups, inputs, inputs, -1).swapaxes(1, 2)
    lanes, rows, by_channel = relation.spec.lanes(machine()), inputs * relation.taps, w.reshape(relation.outputs, -1)
    if not starts:
        starts = vector_starts(relation.outputs, lanes)
    if lanes * len(starts) != relation.outputs or starts != tuple(range(0, relation.outputs, lanes)):
        ends = (start + lanes for start in starts)
        by_channel = np.concatenate([by_channel[start:end] for start, end in zip(starts, ends, strict=True)])
        by_channel = np.concatenate([by_channel, np.zeros((lanes * len(starts) - len(by_channel), rows), w.dtype)])
    weights = np.empty((len(starts), inputs, max(relation.taps, 1), lanes), w.dtype)
    transpose(np.ascontiguousarray(by_channel).reshape(len(starts), lanes, rows), weights, lanes)
    return weights


def vector_starts(channels: int, lanes: int) -> tuple[int, ...]:
    """Where vectors of channels begin, the last one early enough to be full."""
    return tuple(min(start, max(channels - lanes, 0)) for start in range(0, channels, lanes))


@lru_cache(maxsize=512)
def _ways(axis: StridedAxis, flip: bool) -> tuple[Way, ...]:
    """The way of each class of an axis."""
    c = classes_of(axis)
    windows = zip(c.taps.tolist(), c.windows.tolist(), c.pixel_step.tolist(), strict=True)
    number = -c.skip if flip else c.skip
    return tuple(
        Way(taps, step if count > 1 else 0, c.step if taps > 1 else 0, number if taps > 1 else 0) for taps, count, step in windows
    )


def _different(ways: tuple[Way, ...]) -> tuple[Way, ...]:
    return tuple(sorted(set(ways), key=lambda way: (way.taps, way.window, way.tap)))


def specification(relation: Relation, channels: int) -> Depthwise:
    """What the code depends on, for so many channels at a time."""
    few = channels < relation.spec.lanes(machine())
    ways = _different(_ways(relation.axes[-1], relation.flip))
    return Depthwise(relation.spec.kind, ways, relation.inputs // relation.groups, few)


@lru_cache(maxsize=512)
def schedule(relation: Relation, how: int = 0) -> Schedule:
    """How a relation is computed over any number of images; `how` is what is done with sums."""
    channels, out = relation.outputs, relation.axes[-1].out
    spec = specification(relation, channels)
    (address,) = functions("depthwise_last", spec, lambda: depthwise(spec, machine()), ("depthwise",))
    made, pairs = geometry(relation, channels, how)
    taken = max(TAKEN // max(2 * out * channels * relation.taps * spec.inputs, 1), 1)
    return Schedule(address, made, pairs, taken)


def geometry(relation: Relation, channels: int, how: int) -> tuple[Geometry, int]:
    """The geometry for x and y of so many channels, and the pairs of rows of an image."""
    axis, bytes_, of_class = relation.axes[-1], relation.spec.bytes, _ways(relation.axes[-1], relation.flip)
    axes = (StridedAxis(1, 1),) * (3 - len(relation.axes)) + relation.axes
    x_steps, y_steps = strides([a.size for a in axes], channels * bytes_), strides([a.out for a in axes], channels * bytes_)
    w_steps = strides([a.kernel for a in axes], relation.spec.lanes(machine()) * bytes_)
    first, w_input = (w_steps[0] - w_steps[3] if relation.flip else 0), w_steps[0]
    w_steps = [step * (-1 if relation.flip else 1) for step in w_steps[1:]]
    tables = [depths(axes[0], x_steps[1], w_steps[0], first), _pairs(axes[1], x_steps[2], w_steps[1], y_steps[2])]
    c, inside = classes_of(axis), [taps_inside(a) for a in axes[:2]]
    way = [_different(of_class).index(one) for one in of_class]
    columns = [np.array(way), c.windows, c.pixel * x_steps[3], c.pixel_step * x_steps[3]]
    tables.append(np.stack([*columns, c.window * y_steps[3], c.window_step * y_steps[3], c.tap * w_steps[2]], 1).astype(np.int64))
    fields = [channels, axes[0].out, len(tables[1]), x_steps[0], y_steps[1]]
    fields += [inside[k].step * x_steps[1 + k] for k in range(2)] + [inside[k].skip * w_steps[k] for k in range(2)]
    return Geometry([*fields, len(way), w_input, how], tables), axes[0].out * len(tables[1])


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
    """The module of `depthwise`: a is x, b the weights by tap, c the bias as `given`, d is y; units are (image, depth, pair)."""
    return module(*all_rows(spec, machine, private=False))


def all_rows(spec: Depthwise, machine: Machine, *, private: bool) -> list[Function]:
    """The function `depthwise` and those that it calls."""
    f = kernel_function("depthwise", private=private)
    rows = Rows(spec, machine)
    depths, pairs, classes = (f.at(f.geometry, f.field(f.geometry, TABLES + k)) for k in range(3))
    deep, high = f.field(f.geometry, DEPTHS), f.field(f.geometry, PAIRS)
    begin, numbers = opened(f, f.field(f.geometry, HOW), f.c)
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
            sent = (f.at(w, w_upper + w_at), f.at(w, w_lower + w_at), begin, numbers, f.geometry, taps, pair)
            for k, one in enumerate(spec.ways):
                with f.when(way.eq(k)):
                    rows.windows(f, one, count, (f.at(x, x_at), x_step), (f.at(y, y_at), y_step), sent)
    return [f, *rows.functions]


class Rows:
    """The functions of one module that compute some windows of a row, written when they are first called."""

    def __init__(self, spec: Depthwise, machine: Machine) -> None:
        self.spec, self.machine, self.lanes = spec, machine, max(machine.lanes(spec.kind), 2)
        self.functions = [finisher(vector(self.lanes, spec.kind))]
        self._known: dict[tuple[Way, int], str] = {}

    def windows(
        self, f: Function, way: Way, count: Value, x: tuple[Value, Value], y: tuple[Value, Value], sent: tuple[Value, ...]
    ) -> None:
        """All windows of a class, the largest tiles first; one that would not be full begins earlier. x and y are the places
        of the first window and the bytes to the next."""
        large, small = (8, 4) if self.machine.registers >= 32 else (4, 2)

        def tile(size: int, at: Value) -> None:
            f.call("void", self._name(way, size), f.at(x[0], at * x[1]), f.at(y[0], at * y[1]), y[1], *sent)

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
        arguments = {"upper": "ptr", "lower": "ptr", "bias": "ptr", "numbers": "ptr", "geometry": "ptr"}
        arguments |= {"deep": "i64", "pair": "ptr"}
        f = Function(name, private=True, x="ptr", y="ptr", step="i64", **arguments)
        channels = f.field(f.geometry, CHANNELS)
        parts = [f.load("i64", f.at(f.pair, 8 * k)) for k in (1, 2, 3)]
        y_lower = f.at(f.y, f.load("i64", f.at(f.pair, 56)))
        x_tap, w_tap = ([f.field(f.geometry, start + k) for k in range(2)] for start in (X_TAP, W_TAP))
        with f.loop(0, channels, self.lanes) as c:
            mask = mask_below(f, self.lanes, channels) if spec.few else None
            at = (f.value("i64", 0) if spec.few else f.smaller(c, channels - self.lanes)) * spec.bytes
            start, block = f.load(kind, f.at(f.bias, at), mask=mask), c // self.lanes * f.field(f.geometry, W_INPUT) * spec.inputs
            sums = [[f.variable(kind, start) for _ in range(size)] for _ in range(2)]
            with f.loop(0, f.deep) as z:
                places = [f.variable("ptr", f.at(f.x, z * x_tap[0] + at))]
                places += [f.variable("ptr", f.at(w, z * w_tap[0] + block)) for w in (f.upper, f.lower)]
                for some, count in zip(([0], [0, 1], [1]), parts, strict=True):
                    with f.loop(0, count):
                        taken = [(sums[k], places[1 + k].get()) for k in some]
                        self._row(f, way, places[0].get(), channels * spec.bytes, taken, mask)
                        for place, step in [(places[0], x_tap[1]), *((places[1 + k], w_tap[1]) for k in some)]:
                            place.set(f.at(place.get(), step))
            # the lower row first: where there is none it is overwritten
            totals, here = [*sums[1], *sums[0]], [(y, m) for y in (y_lower, f.y) for m in range(size)]
            rest = channels if spec.few else f.value("i64", self.lanes)

            def table(here: list[tuple[Value, int]] = here, at: Value = at) -> Value:
                return spilled(f, [f.at(y, f.step * m + at) for y, m in here])

            with stored(f, f.field(f.geometry, HOW), f.numbers, totals, table, 1, rest):
                for one, (y, m) in zip(totals, here, strict=True):
                    f.store(one.get(), f.at(y, f.step * m + at), mask=mask)
        return f

    def _row(
        self,
        f: Function,
        way: Way,
        x: Value,
        pixel: Value,
        taken: list[tuple[list[Variable], Value]],
        mask: Value | None,
    ) -> None:
        """Add what the windows have of one row of x, to the sums of one or both rows with the weights of each."""
        kind = vector(self.lanes, self.spec.kind)
        users: dict[int, list[tuple[int, int]]] = {}
        for m in range(len(taken[0][0])):
            for t in range(way.taps):
                users.setdefault(m * way.window + t * way.tap, []).append((m, t))
        inputs, of_input = self.spec.inputs, f.field(f.geometry, W_INPUT)
        tap = way.number * self.lanes * self.spec.bytes
        for channel in range(inputs):
            rows = [f.at(w, of_input * channel) for _, w in taken]
            weights = [[f.load(kind, f.at(w, tap * t)) for t in range(way.taps)] for w in rows]
            for place in sorted(users):
                value = f.load(kind, f.at(x, pixel * place), mask=mask)
                if inputs > 1:
                    value = f.shuffle(value, value, [lane // inputs * inputs + channel for lane in range(self.lanes)])
                for (sums, _), of_row in zip(taken, weights, strict=True):
                    for m, t in users[place]:
                        sums[m].set(fused(f, value, of_row[t], sums[m].get()))
