"""Convolution in many small groups where the channels come last: lanes are channels, of several groups at once.

Depthwise, every channel is its own group and a vector of x is what a vector of y needs. In groups of two to eight channels
each of these is a vector that has one of its group's channels in every lane, by a shuffle.

A unit is two rows of y. Their windows are taken some at a time, whose sums lie in registers: a pixel is loaded once for all
the windows that have it as a tap. How taps lie along the width is written out in the code (depthwise_tiles.py). Along the
height there are three loops: rows of x that only the upper windows read, rows that both do, and rows of the lower ones; along
the depth there is one over the taps inside the input. Channels are the loop around all that, so memory is walked in leaps:
what the next unit reads is asked for in order, a few lines with every vector.
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
from .contraction import LINE, PIECE, fused, mask_below, prefetch
from .conv_layout import transpose
from .conv_pack import first_sums, form_of
from .conv_relation import Relation, strides
from .depthwise_tiles import RUN, Row, Tile, row_of
from .edges import taps_inside
from .ending import bits, finisher, given, opened, spilled, stored
from .ir import Function, Value, Variable, module
from .ir_types import BITS, vector
from .kept import kept
from .machine import Machine, machine
from .schedule_last import STREAMED
from .tables import Geometry
from .window import kernel_function
from .workers import address_of, run

CHANNELS, DEPTHS, PAIRS, X_IMAGE, Y_DEPTH, X_TAP, W_TAP, RUNS, W_INPUT, HOW, AHEAD = 0, 1, 2, 3, 4, 5, 7, 9, 10, 11, 12
TABLES = 13
"""Fields: channels; depths of y and pairs of rows; bytes of an image of x and of a depth of y; bytes from tap to tap along depth
and height, in x and in w; how many runs of tiles a row has; bytes of an input channel's taps in w; what is done with
sums; how many bytes of x are asked for ahead with each of y, 0 for none of either. Then tables: depths, pairs and runs. Weights
are in blocks of a vector of channels of y, each of which has input channels and taps."""

PLACE = 3
"""Numbers of a depth: the byte of its first tap inside in x, how many are inside, and the byte of that tap in w."""

PAIR = 9
"""Numbers of a pair of rows: the byte of the first row read in x; rows of x that only the upper windows read, that both do, and
that only the lower ones do; the bytes of the first tap of either in w; the byte of the upper row in y, and from there to the
lower, 0 where there is none; and from the first row read to the first one behind all that are."""

WIDEST, MOST_TILES = 16, 16
"""Taps along the width, and different tiles, that are written out; what is beyond goes tap by tap."""

MOST_INPUTS, MOST_TAPS, MOST_WRITTEN = 8, 48, 1024
"""Channels of a group, taps along the width times those, and taps of all tiles times those, that are written out."""

LOOKED_AT = 16
"""Rows after another among which a second one is looked for."""

TAKEN = 1 << 15
"""Products that a thread takes at once, at least."""

FAR = 1 << 20
"""Bytes of x from which it is asked for ahead: what is smaller mostly is in the cache."""

VECTORS = 4
"""Vectors of channels that are moved to scratch memory at once at most."""

MOST_AHEAD = 16
"""Bytes of x that are asked for with each of y at most."""


@dataclass(frozen=True, slots=True)
class Depthwise:
    """All that the code depends on: the tiles of a row, `inputs` channels of a group; with `few` channels fill no vector;
    `streamed` results go past the caches."""

    kind: str
    tiles: tuple[Tile, ...]
    inputs: int
    flip: bool
    few: bool
    streamed: bool = False

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
    if not small_groups(relation):
        return False
    row = tiles(relation)
    return len(row.tiles) <= MOST_TILES and row.taps * (relation.inputs // relation.groups) <= MOST_WRITTEN


def small_groups(relation: Relation) -> bool:
    """Whether there are groups of few channels, the same in x and y, whose products are not too many."""
    inputs, width = relation.inputs // relation.groups, relation.axes[-1].kernel
    if relation.groups == 1 or relation.inputs != relation.outputs or width > WIDEST or width * inputs > MOST_TAPS:
        return False
    return inputs == 1 or (
        inputs <= MOST_INPUTS and relation.spec.lanes(machine()) % inputs == 0 and relation.taps * inputs <= 2 * PIECE
    )


def tiles(relation: Relation) -> Row:
    """A row of y cut into tiles, which of two rows leave registers for a pixel and some weights."""
    return row_of(relation.axes[-1], 8 if machine().registers >= 32 else 4, overlap=True)


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
    found, weights = schedule(relation, how, x.nbytes >= FAR, streams(y)), by_tap(relation, w)
    begin, memory = given(how, first_sums(relation, b), epilogue, residual, y)
    places = (address_of(x), address_of(weights), begin, address_of(y))
    run(found.address, found.geometry.address, *places, found.pairs * len(x), found.taken)
    del memory


def streams(y: Array) -> bool:
    """Whether y goes past the caches: it is large, and all its vectors are whole lines."""
    m = machine()
    wide = m.vector_bytes == LINE and m.triple.startswith("x86")
    return wide and y.nbytes >= STREAMED and y.shape[-1] * y.itemsize % LINE == 0 and address_of(y) % LINE == 0


def by_tap(relation: Relation, w: Array, starts: tuple[int, ...] = ()) -> Array:
    """The weights in blocks (inputs of a group, taps, lanes) of the channels of y that begin at `starts`, or of all of them as
    they are walked; made once if frozen."""
    return kept(w, ("by tap", form_of(relation), starts), lambda: _by_tap(relation, w, starts))


def _by_tap(relation: Relation, w: Array, starts: tuple[int, ...]) -> Array:
    groups, inputs = relation.groups, relation.inputs // relation.groups
    if relation.swapped and inputs > 1:
        w = w.reshape(groups, inputs, inputs, -1).swapaxes(1, 2)
    lanes, rows, by_channel = relation.spec.lanes(machine()), inputs * relation.taps, w.reshape(relation.outputs, -1)
    whole = vector_starts(relation.outputs, lanes)
    starts = starts or whole
    if starts != whole or relation.outputs % lanes:
        ends = (start + lanes for start in starts)
        by_channel = np.concatenate([by_channel[start:end] for start, end in zip(starts, ends, strict=True)])
        by_channel = np.concatenate([by_channel, np.zeros((lanes * len(starts) - len(by_channel), rows), w.dtype)])
    weights = np.empty((len(starts), inputs, max(relation.taps, 1), lanes), w.dtype)
    transpose(np.ascontiguousarray(by_channel).reshape(len(starts), lanes, rows), weights, lanes)
    return weights


@lru_cache(maxsize=512)
def vector_starts(channels: int, lanes: int) -> tuple[int, ...]:
    """Where vectors of channels begin, the last one early enough to be full."""
    return tuple(min(start, max(channels - lanes, 0)) for start in range(0, channels, lanes))


def specification(relation: Relation, channels: int, *, streamed: bool = False) -> Depthwise:
    """What the code depends on, for so many channels at a time."""
    few = channels < relation.spec.lanes(machine())
    return Depthwise(relation.spec.kind, tiles(relation).tiles, relation.inputs // relation.groups, relation.flip, few, streamed)


@lru_cache(maxsize=512)
def schedule(relation: Relation, how: int = 0, far: bool = False, streamed: bool = False) -> Schedule:
    """How a relation is computed over any number of images; `how` is what is done with sums, x may be `far`."""
    channels, out = relation.outputs, relation.axes[-1].out
    spec = specification(relation, channels, streamed=streamed)
    (address,) = functions("depthwise_last", spec, lambda: depthwise(spec, machine()), ("depthwise",))
    made, pairs = geometry(relation, channels, how, far)
    taken = max(TAKEN // max(2 * out * channels * relation.taps * spec.inputs, 1), 1)
    return Schedule(address, made, pairs, taken)


def geometry(relation: Relation, channels: int, how: int, far: bool = False) -> tuple[Geometry, int]:
    """The geometry for x and y of so many channels, and the pairs of rows of an image."""
    bytes_, lanes = relation.spec.bytes, relation.spec.lanes(machine())
    axes = relation.volume
    x_steps, y_steps = strides([a.size for a in axes], channels * bytes_), strides([a.out for a in axes], channels * bytes_)
    w_steps = strides([a.kernel for a in axes], lanes * bytes_)
    first, w_input = (w_steps[0] - w_steps[3] if relation.flip else 0), w_steps[0]
    w_steps = [step * (-1 if relation.flip else 1) for step in w_steps[1:]]
    tables = [depths(axes[0], x_steps[1], w_steps[0], first), _pairs(axes[1], x_steps[2], w_steps[1], y_steps[2])]
    runs, inside = tiles(relation).runs, [taps_inside(a) for a in axes[:2]]
    tables.append((runs * [1, 1, x_steps[3], x_steps[3], y_steps[3], y_steps[3]]).astype(np.int64))
    fields = [channels, axes[0].out, len(tables[1]), x_steps[0], y_steps[1]]
    fields += [inside[k].step * x_steps[1 + k] for k in range(2)] + [inside[k].skip * w_steps[k] for k in range(2)]
    ahead = min(-(-2 * axes[1].stride * x_steps[2] // max(axes[1].input_dilation * y_steps[2], 1)), MOST_AHEAD) if far else 0
    return Geometry([*fields, len(runs), w_input, how, ahead], tables), axes[0].out * len(tables[1])


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
        found.append([first, *parts, *bytes_, ((sum(parts) - 1) * taps.step + 1) * x_step])
    return np.array(found, np.int64).reshape(-1, PAIR)


def depthwise(spec: Depthwise, machine: Machine) -> str:
    """The module of `depthwise`: a is x, b the weights by tap, c the bias as `given`, d is y; units are (image, depth, pair)."""
    return module(*all_rows(spec, machine, private=False))


def all_rows(spec: Depthwise, machine: Machine, *, private: bool) -> list[Function]:
    """The function `depthwise` and those that it calls."""
    f = kernel_function("depthwise", private=private)
    rows = Rows(spec, machine)
    depths, pairs, runs = (f.at(f.geometry, f.field(f.geometry, TABLES + k)) for k in range(3))
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
        sent = (f.at(w, w_upper), f.at(w, w_lower), begin, numbers, f.geometry, taps, pair)
        with f.loop(0, f.field(f.geometry, RUNS)) as number:
            row = f.at(runs, number * (8 * RUN))
            which, count, x_at, x_step, y_at, y_step = (f.load("i64", f.at(row, 8 * k)) for k in range(RUN))
            for k in range(len(spec.tiles)):
                with f.when(which.eq(k)), f.loop(0, count) as one:
                    y_byte = y_at + one * y_step
                    f.call("void", f"tile_{k}", f.at(x, x_at + one * x_step), f.at(y, y_byte), y_byte, *sent)
    if spec.streamed:
        f.call("void", "llvm.x86.sse.sfence")
    return [f, *rows.functions]


class Rows:
    """The functions of one module that compute a tile in a pair of rows."""

    def __init__(self, spec: Depthwise, machine: Machine) -> None:
        self.spec, self.machine, self.lanes = spec, machine, max(machine.lanes(spec.kind), 2)
        tiles = [self._tile(f"tile_{k}", tile) for k, tile in enumerate(spec.tiles)]
        self.functions = [finisher(vector(self.lanes, spec.kind)), *tiles]

    def _tile(self, name: str, tile: Tile) -> Function:
        """The windows of two rows, all channels: x at the tile's first pixel, y at its first window, which is `along` bytes from
        the row's first; the weights at tap 0 of the width."""
        spec, kind, size = self.spec, vector(self.lanes, self.spec.kind), len(tile)
        arguments = {"upper": "ptr", "lower": "ptr", "bias": "ptr", "numbers": "ptr", "geometry": "ptr"}
        arguments |= {"deep": "i64", "pair": "ptr"}
        f = Function(name, private=True, x="ptr", y="ptr", along="i64", **arguments)
        channels, ahead = f.field(f.geometry, CHANNELS), f.field(f.geometry, AHEAD)
        parts, pixel = [f.load("i64", f.at(f.pair, 8 * k)) for k in (1, 2, 3)], channels * spec.bytes
        y_lower = f.at(f.y, f.load("i64", f.at(f.pair, 56)))
        x_tap, w_tap = ([f.field(f.geometry, start + k) for k in range(2)] for start in (X_TAP, W_TAP))
        with f.loop(0, channels, self.lanes) as c:
            mask = mask_below(f, self.lanes, channels) if spec.few else None
            at = (f.value("i64", 0) if spec.few else f.smaller(c, channels - self.lanes)) * spec.bytes
            self._ask(f, size, ahead, at, (y_lower, pixel))
            start, block = f.load(kind, f.at(f.bias, at), mask=mask), c // self.lanes * f.field(f.geometry, W_INPUT) * spec.inputs
            sums = [[f.variable(kind, start) for _ in range(size)] for _ in range(2)]
            with f.loop(0, f.deep) as z:
                places = [f.variable("ptr", f.at(f.x, z * x_tap[0] + at))]
                places += [f.variable("ptr", f.at(w, z * w_tap[0] + block)) for w in (f.upper, f.lower)]
                for some, count in zip(([0], [0, 1], [1]), parts, strict=True):
                    with f.loop(0, count):
                        taken = [(sums[k], places[1 + k].get()) for k in some]
                        self._row(f, tile, places[0].get(), pixel, taken, mask)
                        for place, step in [(places[0], x_tap[1]), *((places[1 + k], w_tap[1]) for k in some)]:
                            place.set(f.at(place.get(), step))
            # the lower row first: where there is none it is overwritten
            totals, here = [*sums[1], *sums[0]], [(y, m) for y in (y_lower, f.y) for m in range(size)]
            rest = channels if spec.few else f.value("i64", self.lanes)

            def table(here: list[tuple[Value, int]] = here, at: Value = at) -> Value:
                return spilled(f, [f.at(y, pixel * m + at) for y, m in here])

            with stored(f, f.field(f.geometry, HOW), f.numbers, totals, table, 1, rest):
                for one, (y, m) in zip(totals, here, strict=True):
                    f.store(one.get(), f.at(y, pixel * m + at), mask=mask, streaming=spec.streamed)
        return f

    def _ask(self, f: Function, size: int, ahead: Value, at: Value, lower: tuple[Value, Value]) -> None:
        """Ask for what the next pair of rows reads behind this one's, a share of it that is as large as this tile's of its row,
        and for where the next tile is stored. The processor sees leaps of a pixel in all else, which it does not foresee."""
        spec, (y_lower, pixel) = self.spec, lower
        with f.when(ahead > 0):
            lines = range(0, size * self.lanes * spec.bytes, LINE)
            x = f.at(f.x, f.load("i64", f.at(f.pair, 64)) + at * size)
            place = f.variable("ptr", f.at(x, f.along * (ahead - 1)))
            with f.loop(0, ahead):
                for line in lines:
                    prefetch(f, f.at(place.get(), line), near=False)
                place.set(f.at(place.get(), pixel * size))
            if not spec.streamed:
                for y in (f.y, y_lower):
                    for line in lines:
                        prefetch(f, f.at(y, (pixel + at) * size + line), write=True)

    def _row(
        self,
        f: Function,
        tile: Tile,
        x: Value,
        pixel: Value,
        taken: list[tuple[list[Variable], Value]],
        mask: Value | None,
    ) -> None:
        """Add what the windows have of one row of x, to the sums of one or both rows with the weights of each."""
        kind = vector(self.lanes, self.spec.kind)
        users: dict[int, list[tuple[int, int]]] = {}
        for m, window in enumerate(tile):
            for place, tap in window:
                users.setdefault(place, []).append((m, tap))
        inputs, of_input = self.spec.inputs, f.field(f.geometry, W_INPUT)
        step = self.lanes * self.spec.bytes * (-1 if self.spec.flip else 1)
        taps = sorted({tap for window in tile for _, tap in window})
        for channel in range(inputs):
            rows = [f.at(w, of_input * channel) for _, w in taken]
            weights = [{t: f.load(kind, f.at(w, step * t)) for t in taps} for w in rows]
            for place in sorted(users):
                value = f.load(kind, f.at(x, pixel * place), mask=mask)
                if inputs > 1:
                    value = f.shuffle(value, value, [lane // inputs * inputs + channel for lane in range(self.lanes)])
                for (sums, _), of_row in zip(taken, weights, strict=True):
                    for m, t in users[place]:
                        sums[m].set(fused(f, value, of_row[t], sums[m].get()))
