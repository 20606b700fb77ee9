"""The gradient of the weights in many small groups: lanes are channels, of several groups at once, as in depthwise_last.py.

A row of dy is taken a tile of windows at a time (depthwise_tiles.py). The tile's numbers lie in registers; for every row of x
that it reads, the sums of the taps along the width come from memory, grow by all that the tile has for them, and go back. They
are cut: after about PIECE terms they are added to totals and begin anew.

A unit is some rows, or where channels come first some images, times a block of channels, and has totals of its own, as many as
the sizes say. All are added up at the end: neither threads nor their number show in the result. Channels that come first are
moved to scratch memory channels last, a block of one image at a time, or where that does not fit all of them before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...plan import Shape
from ..protocol import Array
from . import slots
from .cache import functions
from .contraction import LINE, PIECE, fused, mask_below, prefetch
from .conv_layout import channels_last, transpose
from .conv_move import mover
from .conv_relation import Relation, strides
from .cuts import at_most, bounds_of
from .depthwise_last import FAR, MOST_AHEAD, MOST_TILES, MOST_WRITTEN, VECTORS, depths, small_groups, vector_starts
from .depthwise_tiles import RUN, Row, Tile, row_of
from .edges import taps_inside
from .ir import Function, Value, module
from .ir_types import BITS, vector
from .machine import Machine, machine
from .slots import MOST
from .tables import Geometry
from .window import kernel_function
from .workers import address_of, run

FIELDS = (
    *("channels", "rows", "high", "piece", "chunk", "long", "runs", "ahead", "x_image", "x_depth", "x_row"),
    *("y_row", "sum_depth", "sum_row", "sum_input", "sum_vector"),
)
"""Fields of rows: channels; rows of dy in an image, and along the height; rows, and tiles, after which sums are cut, and whether
tiles count; runs of tiles in a row; bytes of x asked for ahead with each of dy; bytes of an image of x, and from tap to tap along
depth and height in x; bytes of a row of dy; bytes in sums from tap to tap along depth and height, from an input channel of a
group to the next, and of a vector of channels. Then tables: depths, heights, runs."""

OUTER = ("blocks", "vectors", "of_block", "unit", "channels", "block", "x_plane", "y_plane", "y_at", "slot")
"""Fields of a call: blocks of channels; vectors of all channels, and of a block; bytes of a unit's totals and sums; then where
channels come first those of all and of a block, the bytes of a plane of x and of dy, and of the scratch for x and of all. Then
tables: where sets begin, where blocks do, and the fields of rows."""

BYTES = 1 << 19
"""About as many bytes as a block has in scratch memory."""

SUMS_BYTES = 20 << 10
"""Bytes of the sums of a unit, about: they stay in the first cache."""

MOST_WINDOWS = 14
"""Windows of a tile at most."""

SET, UNITS = 1 << 20, 32
"""Products that a set has at least, and units of a call at most."""


@dataclass(frozen=True, slots=True)
class Correlation:
    """All that the code depends on: the tiles of a row, `inputs` channels of a group; with `few` channels fill no vector; whether
    channels come first."""

    kind: str
    tiles: tuple[Tile, ...]
    inputs: int
    few: bool
    first: bool

    @property
    def bytes(self) -> int:
        return BITS[self.kind] // 8


@dataclass(frozen=True, slots=True)
class Schedule:
    """A kernel's address, its geometry, sets and blocks of a set, the vectors of a block, the first channel of each vector, and
    the scratch of a thread."""

    address: int
    geometry: Geometry
    sets: int
    blocks: int
    vectors: int
    starts: tuple[int, ...]
    slot: int


@lru_cache(maxsize=512)
def takes(relation: Relation) -> bool:
    """Whether groups are small enough, and windows narrow and alike enough to be written out."""
    if not small_groups(relation):
        return False
    row = _tiles(relation)
    return len(row.tiles) <= MOST_TILES and row.taps * (relation.inputs // relation.groups) <= MOST_WRITTEN


def weights_gradient(relation: Relation, a: Array, b: Array, shape: Shape, first: bool) -> Array:
    """w[j] = sum_i a[i*s - p + j*d] b[i], of this shape, from contiguous arrays whose channels are `first`, or last."""
    if not (a.size and b.size and math.prod(shape)):
        return np.zeros(shape, a.dtype)
    if first and sum(_scratch(relation)) > MOST:
        a, b, first = channels_last(a), channels_last(b), False
    found, lanes = schedule(relation, len(a), first), relation.spec.lanes(machine())
    inputs, units = relation.inputs // relation.groups, found.sets * found.blocks
    sums = np.zeros((found.sets, found.blocks, 2, found.vectors, inputs, relation.taps, lanes), a.dtype)
    block, memory = slots.block(found.slot, units) if first else (sums, None)
    places = (address_of(a), address_of(b), address_of(block), address_of(sums))
    run(found.address, found.geometry.address, *places, units, 1)
    del memory
    totals = sums[:, :, 0].sum(0) if found.sets > 1 else sums[0, :, 0]
    return _unpacked(relation, totals.reshape(-1, inputs, relation.taps, lanes)[: len(found.starts)], found.starts).reshape(shape)


def _unpacked(relation: Relation, totals: Array, starts: tuple[int, ...]) -> Array:
    """The totals of vectors of channels that begin at `starts` in the order of the weights."""
    vectors, inputs, taps, lanes = totals.shape
    if relation.flip:
        totals = totals[:, :, ::-1]
    of_channel = np.empty((vectors, lanes, inputs * taps), totals.dtype)
    transpose(np.ascontiguousarray(totals), of_channel, inputs * taps)
    if relation.outputs == vectors * lanes:
        return of_channel
    dw = np.empty((relation.outputs, inputs * taps), totals.dtype)
    for start, part in zip(starts, of_channel, strict=True):
        dw[start : start + lanes] = part[: len(dw) - start]
    return dw


def _tiles(relation: Relation) -> Row:
    """A row of dy cut into tiles, which leave registers for the sums of one row of taps."""
    sums = relation.axes[-1].kernel * (relation.inputs // relation.groups)
    return row_of(relation.axes[-1], max(min(MOST_WINDOWS, machine().registers - 4 - sums), 4), overlap=False)


def _sum_vector(relation: Relation) -> int:
    """Bytes of the sums of a vector of channels."""
    return relation.inputs // relation.groups * relation.taps * relation.spec.lanes(machine()) * relation.spec.bytes


def _channels(relation: Relation) -> int:
    """Channels of a block where they come first."""
    lanes = relation.spec.lanes(machine())
    one = sum(relation.pixels) * relation.spec.bytes * lanes
    vectors = min(BYTES // max(one, 1), SUMS_BYTES // _sum_vector(relation), VECTORS)
    return min(relation.outputs, at_most(relation.outputs, lanes, lanes * vectors)[0])


def _scratch(relation: Relation) -> tuple[int, int]:
    """Bytes of scratch for x and for dy; what weaves rows writes a little behind them."""
    x, y = (-(-(pixels * _channels(relation) * relation.spec.bytes + 64) // 64) * 64 for pixels in relation.pixels)
    return x, y


def _sets(relation: Relation, blocks: int, parts: int, images: int) -> int:
    """Sets of totals: units enough for many threads, each with work enough, of whole parts."""
    products = images * relation.pixels[1] * relation.outputs * relation.taps * (relation.inputs // relation.groups)
    return max(min(products // SET, UNITS // blocks, parts), 1)


@lru_cache(maxsize=512)
def schedule(relation: Relation, images: int, first: bool) -> Schedule:
    """How the gradient is computed over so many images."""
    lanes, bytes_, of_vector = relation.spec.lanes(machine()), relation.spec.bytes, _sum_vector(relation)
    channels = _channels(relation) if first else relation.outputs
    spec = Correlation(relation.spec.kind, _tiles(relation).tiles, relation.inputs // relation.groups, channels < lanes, first)
    (address,) = functions("depthwise_weights", spec, lambda: correlate(spec, machine()), ("correlate",))
    vectors = vector_starts(channels, lanes)
    high = ((1, 1, *(axis.out for axis in relation.axes))[-2], relation.axes[-1].out)
    piece = max(PIECE // max(high[1], 1), 1)
    if first:
        begins, of_block, parts, step = vector_starts(relation.outputs, channels), len(vectors), images, 1
        starts = tuple(begin + start for begin in begins for start in vectors)
    else:
        blocks = -(-len(vectors) // max(SUMS_BYTES // of_vector, 1))
        of_block = -(-len(vectors) // blocks)
        begins, starts = tuple(range(0, len(vectors), of_block)), vectors
        rows = images * relation.pixels[1] // max(high[1], 1)
        parts, step = -(-rows // piece), piece
    sets = _sets(relation, len(begins), parts, images)
    bounds = bounds_of(parts, sets) * step
    if not first:
        bounds[-1] = rows
    far = not first and len(begins) == 1 and images * sum(relation.pixels) * channels * bytes_ >= 2 * FAR
    x_plane, y_plane = (pixels * bytes_ for pixels in relation.pixels)
    x_slot, y_slot = _scratch(relation) if first else (0, 0)
    fields = [len(begins), len(vectors), of_block, 2 * of_block * of_vector]
    fields += [relation.outputs, channels, x_plane, y_plane, x_slot, x_slot + y_slot]
    made = Geometry(fields, [bounds, np.array(begins, np.int64), rows_geometry(relation, channels, piece, far).memory])
    return Schedule(address, made, sets, len(begins), of_block, starts, x_slot + y_slot)


def rows_geometry(relation: Relation, channels: int, piece: int, far: bool) -> Geometry:
    """The fields of rows for x and dy of so many channels."""
    lanes, bytes_ = relation.spec.lanes(machine()), relation.spec.bytes
    axes, row = relation.volume, _tiles(relation)
    x_steps, y_steps = strides([a.size for a in axes], channels * bytes_), strides([a.out for a in axes], channels * bytes_)
    sum_steps, inside = strides([a.kernel for a in axes], lanes * bytes_), [taps_inside(a) for a in axes[:2]]
    long = axes[2].out > PIECE
    chunk = PIECE // max(map(len, row.tiles)) if long else axes[2].out
    ahead = min(-(-axes[1].stride * x_steps[2] // y_steps[2]), MOST_AHEAD) if far else 0
    fields = [channels, axes[0].out * axes[1].out, axes[1].out, piece, chunk, int(long), len(row.runs), ahead, x_steps[0]]
    fields += [inside[k].step * x_steps[1 + k] for k in range(2)] + [y_steps[2]]
    fields += [inside[k].skip * sum_steps[1 + k] for k in range(2)] + [sum_steps[0], _sum_vector(relation)]
    tables = [depths(axes[k], x_steps[1 + k], sum_steps[1 + k], 0) for k in range(2)]
    runs = (row.runs * [1, 1, x_steps[3], x_steps[3], y_steps[3], y_steps[3]]).astype(np.int64)
    return Geometry(fields, [*tables, runs])


def correlate(spec: Correlation, machine: Machine) -> str:
    """The module of `correlate`: a and b are the arrays, c the block of scratch, d totals and sums of every unit; units are
    (set, block of channels)."""
    f, rows = kernel_function("correlate"), Rows(spec, machine)
    get = {name: f.field(f.geometry, k) for k, name in enumerate(OUTER)}
    bounds, begins, inner = (f.at(f.geometry, f.field(f.geometry, len(OUTER) + k)) for k in range(3))
    number, memory = slots.slot(f, f.c, get["slot"]) if spec.first else (f.value("i64", 0), f.a)
    with f.loop(f.begin, f.end) as unit:
        set_, block = f.at(bounds, unit // get["blocks"] * 8), f.load("i64", f.at(begins, unit % get["blocks"] * 8))
        first, last, sums = f.load("i64", set_), f.load("i64", f.at(set_, 8)), f.at(f.d, unit * get["unit"])
        if spec.first:
            with f.loop(first, last) as image:
                _moved(f, spec, get, (image * get["channels"] + block, inner, memory, sums))
        else:
            count = f.smaller(get["vectors"] - block, get["of_block"])
            f.call("void", "add_rows", inner, f.a, f.b, sums, first, last, block, count)
    if not spec.first:
        return module(f, *rows.functions)
    slots.give_back(f, f.c, number)
    return module(f, slots.taker(), mover(spec.kind, machine), *rows.functions)


def _moved(f: Function, spec: Correlation, get: dict[str, Value], given: tuple[Value, Value, Value, Value]) -> None:
    """Move a block of channels of one image, and add all its rows to the sums."""
    plane, inner, memory, sums = given
    width, y, no = get["block"] * spec.bytes, f.at(memory, get["y_at"]), f.value("i64", 0)
    for source, there, bytes_ in ((f.a, memory, get["x_plane"]), (f.b, y, get["y_plane"])):
        start, pixels = f.at(source, plane * bytes_), bytes_ // spec.bytes
        f.call("void", "move", start, there, get["block"], pixels, bytes_, width, f.value("i64", 1))
    whole = f.field(inner, FIELDS.index("rows"))
    f.call("void", "add_rows", inner, memory, y, sums, no, whole, no, get["of_block"])


class Rows:
    """The functions of one module that add what rows of dy have to sums."""

    def __init__(self, spec: Correlation, machine: Machine) -> None:
        self.spec, self.lanes = spec, max(machine.lanes(spec.kind), 2)
        self.kind = vector(self.lanes, spec.kind)
        tiles = [self._tile(f"tile_{k}", tile) for k, tile in enumerate(spec.tiles)]
        self.functions = [self._rows(), self._cut(), *tiles]

    def _rows(self) -> Function:
        """Rows `begin` to `end` of dy, counted through all images, and `count` vectors from number `first` on. Totals lie at
        `sums`, and the sums that grow, which are zero before and after, behind them."""
        more = {"sums": "ptr", "begin": "i64", "end": "i64", "first": "i64", "count": "i64"}
        f = Function("add_rows", private=True, geometry="ptr", x="ptr", y="ptr", **more)
        get = {name: f.field(f.geometry, k) for k, name in enumerate(FIELDS)}
        depths, heights, runs = (f.at(f.geometry, f.field(f.geometry, len(FIELDS) + k)) for k in range(3))
        bytes_ = f.count * get["sum_vector"]
        growing = f.at(f.sums, bytes_)
        with f.loop(f.begin, f.end, get["piece"]) as piece:
            with f.loop(piece, f.smaller(piece + get["piece"], f.end)) as row:
                inner = row % get["rows"]
                depth, height = f.at(depths, inner // get["high"] * 24), f.at(heights, inner % get["high"] * 24)
                (x0, deep, s0), (x1, tall, s1) = ([f.load("i64", f.at(at, 8 * k)) for k in range(3)] for at in (depth, height))
                x, y = f.at(f.x, row // get["rows"] * get["x_image"] + x0 + x1), f.at(f.y, row * get["y_row"])
                places = (f.at(growing, s0 + s1), f.geometry, deep, tall, f.first, f.count)
                with f.loop(0, get["runs"]) as number:
                    entry = f.at(runs, number * (8 * RUN))
                    which, count, x_at, x_step, y_at, y_step = (f.load("i64", f.at(entry, 8 * k)) for k in range(RUN))
                    with f.loop(0, count, get["chunk"]) as chunk:
                        for k in range(len(self.spec.tiles)):
                            with f.when(which.eq(k)), f.loop(chunk, f.smaller(chunk + get["chunk"], count)) as one:
                                along = y_at + one * y_step
                                f.call("void", f"tile_{k}", f.at(x, x_at + one * x_step), f.at(y, along), along, *places)
                        with f.when(get["long"].ne(0), likely=False):
                            f.call("void", "cut", f.sums, growing, bytes_)
            f.call("void", "cut", f.sums, growing, bytes_)
        return f

    def _cut(self) -> Function:
        """Add sums to totals, so many bytes of both, and begin them anew."""
        f = Function("cut", private=True, totals="ptr", sums="ptr", bytes="i64")
        with f.loop(0, f.bytes, self.lanes * self.spec.bytes) as at:
            total, sum_ = f.at(f.totals, at), f.at(f.sums, at)
            f.store(f.load(self.kind, total) + f.load(self.kind, sum_), total)
            f.store(f.value(self.kind, 0), sum_)
        return f

    def _tile(self, name: str, tile: Tile) -> Function:
        """Add a tile of one row, `count` vectors from number `first` on: x at its first pixel, y at its first window, which is
        `along` bytes from the row's first; sums at the first tap inside along depth and height, at tap 0 of the width."""
        counts = {"sums": "ptr", "geometry": "ptr", "deep": "i64", "tall": "i64", "first": "i64", "count": "i64"}
        f, spec = Function(name, private=True, x="ptr", y="ptr", along="i64", **counts), self.spec
        get = {name: f.field(f.geometry, k) for k, name in enumerate(FIELDS)}
        channels, pixel = get["channels"], get["channels"] * spec.bytes
        with f.loop(0, f.count) as number:
            mask = mask_below(f, self.lanes, channels) if spec.few else None
            channel = (number + f.first) * self.lanes
            at = (f.value("i64", 0) if spec.few else f.smaller(channel, channels - self.lanes)) * spec.bytes
            self._ask(f, get, at, pixel * len(tile), len(tile))
            numbers = [f.load(self.kind, f.at(f.y, pixel * m + at), mask=mask) for m in range(len(tile))]
            sums, x = f.at(f.sums, number * get["sum_vector"]), f.at(f.x, at)
            with f.loop(0, f.deep) as z, f.loop(0, f.tall) as h:
                here = f.at(sums, z * get["sum_depth"] + h * get["sum_row"])
                self._row(f, tile, f.at(x, z * get["x_depth"] + h * get["x_row"]), pixel, numbers, here, get["sum_input"], mask)
        return f

    def _ask(self, f: Function, get: dict[str, Value], at: Value, tile: Value, size: int) -> None:
        """Ask for what the next row reads of x behind this one's, a share of it that is as large as this tile's of its row, and
        for the next tile of dy: as depthwise_last.py does."""
        ahead, lines = get["ahead"], range(0, size * self.lanes * self.spec.bytes, LINE)
        with f.when(ahead > 0):
            start = f.at(f.x, f.tall * get["x_row"] + at * size)
            place = f.variable("ptr", f.at(start, f.along * (ahead - 1)))
            with f.loop(0, ahead):
                for line in lines:
                    prefetch(f, f.at(place.get(), line), near=False)
                place.set(f.at(place.get(), tile))
            for line in lines:
                prefetch(f, f.at(f.y, tile + at * size + line), near=False)

    def _row(
        self,
        f: Function,
        tile: Tile,
        x: Value,
        pixel: Value,
        numbers: list[Value],
        sums: Value,
        of_input: Value,
        mask: Value | None,
    ) -> None:
        """Add what a tile of dy and one row of x have to the sums of the taps along the width."""
        inputs, step = self.spec.inputs, self.lanes * self.spec.bytes
        users: dict[int, list[tuple[int, int]]] = {}
        for m, window in enumerate(tile):
            for place, tap in window:
                users.setdefault(place, []).append((m, tap))
        taps = sorted({tap for window in tile for _, tap in window})
        places = {(j, t): f.at(f.at(sums, of_input * j), step * t) for j in range(inputs) for t in taps}
        grown = {key: f.load(self.kind, place) for key, place in places.items()}
        for place in sorted(users):
            value = f.load(self.kind, f.at(x, pixel * place), mask=mask)
            for j in range(inputs):
                one = value
                if inputs > 1:
                    one = f.shuffle(value, value, [lane // inputs * inputs + j for lane in range(self.lanes)])
                for m, t in users[place]:
                    grown[j, t] = fused(f, one, numbers[m], grown[j, t])
        for key, total in grown.items():
            f.store(total, places[key])
