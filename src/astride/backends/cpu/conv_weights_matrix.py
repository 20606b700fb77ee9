"""The gradient of the weights of windows of one pixel: a product of matrices, dy's channels times pixels and pixels times x's.

The channels of one array are rows, read where they lie, or copied where they lie so far apart that they share few places of
the cache; those of the other are columns, packed in blocks. A unit is some chunks of pixels times a part of one group's rows and
one of its columns. Units of different chunks have sums of their own, as many as the plan says, which are added up at the end:
so neither threads nor their number show in the result. While a chunk is computed, the rows of the next are asked for.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...plan import Shape
from .. import memory
from ..protocol import Array
from . import slots
from .cache import functions
from .contraction import AHEAD, AHEAD_NEST, NEST, Contraction, Tiles, mask_below
from .conv_move import band_copier, mover
from .conv_relation import Relation
from .cuts import at_most, bounds_of
from .ending import ADD
from .ir import Function, Value, module
from .ir_types import vector
from .machine import Machine, machine
from .tables import Geometry
from .window import kernel_function
from .workers import address_of, run

Numbers = NDArray[np.int64]

SIDE = ("channels", "part", "channel", "pixel", "image")
"""Fields of each side: its channels in a group, those of a part; bytes from one channel, pixel and image to the next."""

FIELDS = (
    *("groups", "parts", "column_parts", "copies", "block", "copied", "copied_channel", "copied_pixel", "line", "slot"),
    *(f"{side}_{word}" for side in "ab" for word in SIDE),
)
"""Fields: groups, parts of the rows and of the columns; whether rows are copied; bytes of a packed block, where copied rows
begin, and from one of their channels and pixels to the next; bytes of a row of sums, and of a thread's scratch. Then the sides,
a the rows, and two tables: the first chunk of each set of sums, and chunks."""

CHUNK = 4
"""Numbers of a chunk: its first image and how many it has, its first pixel and how many of each image."""

PIXELS = 256
"""Pixels of a chunk, at most."""

ROWS, BLOCKS = 264, 8
"""Rows and blocks of columns that a unit has at most: with a chunk of both they fit the second cache."""

FEW_ROWS = 128
"""Rows below which those had better be the longer side."""

UNITS, SUMS_BYTES = 8, 1 << 22
"""Units that a call has at least, if it has chunks enough and their sums take no more than so many bytes."""

ALIAS = 2048
"""Bytes from one row or pixel to the next of which multiples leave few places of the cache."""

ZEROS = slots.FIRST_FREE
"""The word of a call's block with the address of zeros."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A kernel's address, its geometry, how many sets of sums there are, units, the scratch of a thread, and whether sums have
    the channels of x, or what is first in the weights, as rows."""

    address: int
    geometry: Geometry
    sums: int
    units: int
    slot: int
    turned: bool
    shape: tuple[int, int, int]


def takes(relation: Relation) -> bool:
    """Whether every window is one pixel."""
    return relation.single


def weights_gradient(relation: Relation, a: Array, b: Array, shape: Shape, first: bool) -> Array:
    """As conv_weights.weights_gradient, from contiguous arrays whose channels are `first`, or last."""
    if not (a.size and b.size and math.prod(shape)):
        return np.zeros(shape, a.dtype)
    if any(axis.stride > 1 or axis.size != axis.out for axis in relation.axes):
        read = [slice(0, (axis.out - 1) * axis.stride + 1, axis.stride) for axis in relation.axes]
        a = np.ascontiguousarray(a[(slice(None), slice(None), *read) if first else (slice(None), *read)])
    found = schedule(relation, len(a), first)
    # Weights are (first side, second side); their rows are the first, unless the schedule has turned them round.
    rows, columns = (a, b) if relation.swapped != found.turned else (b, a)
    dw = np.empty(shape, a.dtype)
    groups, inputs, outputs = relation.parts
    sides = (groups, inputs, outputs) if relation.swapped else (groups, outputs, inputs)
    alone = found.sums == 1 and found.shape == sides and not found.turned
    sums = dw if alone else memory.empty((found.sums, *found.shape), a.dtype)
    zeros = np.zeros(relation.packed_shape[-1], a.dtype)
    block, scratch = slots.block(found.slot, found.units, address_of(zeros))
    places = (address_of(rows), address_of(columns), address_of(block), address_of(sums))
    run(found.address, found.geometry.address, *places, found.units, 1)
    del scratch
    if not alone:
        total = np.add.reduce(sums, axis=0) if found.sums > 1 else sums[0]
        total = total[..., : sides[1] if found.turned else sides[2]]  # lines may be longer than they have columns
        dw.reshape(sides)[...] = total.swapaxes(1, 2) if found.turned else total
    return dw


def _turned(relation: Relation) -> bool:
    """Whether the rows of the products are what the weights have last: where that fills vectors better, or rows would be few."""
    _, inputs, outputs = relation.parts
    lanes = relation.spec.lanes(machine())
    rows, columns = (inputs, outputs) if relation.swapped else (outputs, inputs)
    waste = [-(-n // lanes) * lanes / n for n in (columns, rows)]
    if waste[0] != waste[1]:
        return waste[1] < waste[0]
    return rows < FEW_ROWS and rows < columns


def _chunks(images: int, pixels: int) -> Numbers:
    """The table of chunks: some images, or a part of one image's pixels."""
    if pixels > PIXELS:
        parts = -(-pixels // PIXELS)
        bounds = [pixels * k // parts for k in range(parts + 1)]
        return np.array([(i, 1, p, q - p) for i in range(images) for p, q in itertools.pairwise(bounds)], np.int64)
    together = -(-images // -(-images // (PIXELS // pixels)))
    return np.array([(i, min(together, images - i), 0, pixels) for i in range(0, images, together)], np.int64)


@lru_cache(maxsize=512)
def schedule(relation: Relation, images: int, first: bool) -> Schedule:
    """How the gradient is computed over so many images."""
    spec, block = dataclasses.replace(relation.spec, ahead=True), relation.spec.block(machine())
    (address,) = functions("conv_weights_matrix", (spec, first), lambda: product(spec, machine(), first), ("product",))
    groups, inputs, outputs = relation.parts
    pixels, turned = relation.pixels[1], _turned(relation)
    rows, columns = (inputs, outputs) if relation.swapped != turned else (outputs, inputs)
    part, parts = at_most(rows, spec.rows(machine())[0], ROWS)
    column_part, column_parts = at_most(columns, block, BLOCKS * block)
    chunks = _chunks(images, pixels) if first else _chunks(1, images * pixels)
    most = int((chunks[:, 1] * chunks[:, 3]).max())
    line = columns + (64 // spec.bytes if columns * spec.bytes % ALIAS == 0 else 0)
    sums_bytes = groups * rows * line * spec.bytes
    units = groups * parts * column_parts
    sums = max(min(UNITS // units, SUMS_BYTES // sums_bytes, len(chunks)), 1)
    bounds = bounds_of(len(chunks), sums)
    a_side, b_side = (_side(n, groups, pixels, spec.bytes, first) for n in (rows, columns))
    far = a_side[0] if first else a_side[1]
    copied = (most * spec.bytes + 64, spec.bytes) if first else (spec.bytes, part * spec.bytes)
    packed = most * block * spec.bytes
    columns_bytes = -(-column_part // block) * packed + 64
    slot = columns_bytes + most * part * spec.bytes + 64 * (part + 1)
    fields = [groups, parts, column_parts, int(far % ALIAS == 0), packed, columns_bytes, *copied, line * spec.bytes, slot]
    fields += [rows, part, *a_side, columns, column_part, *b_side]
    return Schedule(address, Geometry(fields, [bounds, chunks]), sums, sums * units, slot, turned, (groups, rows, line))


def _side(channels: int, groups: int, pixels: int, bytes_: int, first: bool) -> tuple[int, int, int]:
    """Bytes from one channel, pixel and image to the next."""
    whole = channels * groups * pixels * bytes_
    return (pixels * bytes_, bytes_, whole) if first else (bytes_, channels * groups * bytes_, whole)


def product(spec: Contraction, machine: Machine, first: bool) -> str:
    """The module of `product`: a has the rows and b the columns, c is the scratch block, d the sums."""
    f, tiles = kernel_function("product"), Tiles(spec, machine)
    get = {name: f.field(f.geometry, k) for k, name in enumerate(FIELDS)}
    bounds, chunks = (f.at(f.geometry, f.field(f.geometry, len(FIELDS) + k)) for k in range(2))
    number, scratch = slots.slot(f, f.c, get["slot"])
    with f.loop(f.begin, f.end) as unit:
        rest, column_part = unit // get["column_parts"], unit % get["column_parts"]
        rest, part = rest // get["parts"], rest % get["parts"]
        group, set_ = rest % get["groups"], rest // get["groups"]
        here = _Unit(f, tiles, get, scratch, (set_, group), (part * get["a_part"], column_part * get["b_part"]), first=first)
        start = f.load("i64", f.at(bounds, set_ * 8))
        with f.loop(start, f.load("i64", f.at(bounds, set_ * 8 + 8))) as index:
            place = f.at(chunks, index * (8 * CHUNK))
            chunk = [f.load("i64", f.at(place, 8 * k)) for k in range(CHUNK)]
            here.pack(chunk)
            here.multiply(chunk, f.select(index.eq(start), f.value("i64", 0), ADD))
    slots.give_back(f, f.c, number)
    copy = band_copier(spec.kind, machine, "copy")
    return module(f, slots.taker(), copy, mover(spec.kind, machine) if first else packer(tiles), *tiles.functions)


def packer(tiles: Tiles) -> Function:
    """The function `pack`: columns of pixels `x_step` bytes apart, into blocks `y_step` bytes apart. Pixels are read one after
    the other, since they may lie pages apart."""
    width, spec = tiles.lanes, tiles.spec
    f = Function("pack", private=True, x="ptr", y="ptr", columns="i64", pixels="i64", x_step="i64", y_step="i64")
    kind, row = vector(width, spec.kind), tiles.block * spec.bytes
    whole, parts = f.columns // tiles.block * tiles.block, range(tiles.vectors)
    masks = [mask_below(f, width, f.columns - whole - k * width) for k in parts]
    with f.loop(0, f.pixels) as pixel:
        x, y = f.at(f.x, pixel * f.x_step), f.at(f.y, pixel * row)
        with f.loop(0, f.columns, tiles.block) as column:
            source, place = f.at(x, column * spec.bytes), f.at(y, column // tiles.block * f.y_step)
            with f.when(column < whole, likely=True) as ragged:
                for k in parts:
                    f.store(f.load(kind, f.at(source, k * width * spec.bytes)), f.at(place, k * width * spec.bytes))
                with ragged.otherwise():
                    for k, mask in enumerate(masks):
                        here = f.load(kind, f.at(source, k * width * spec.bytes), mask=mask)
                        f.store(here, f.at(place, k * width * spec.bytes), mask=mask)
    return f


class _Unit:
    """Writes what is done for one part of a group's rows and one of its columns, chunk after chunk."""

    def __init__(
        self,
        f: Function,
        tiles: Tiles,
        get: dict[str, Value],
        scratch: Value,
        place: tuple[Value, Value],
        start: tuple[Value, Value],
        *,
        first: bool,
    ) -> None:
        """The place is the set of sums and the group, `start` the first row and column."""
        self.f, self.tiles, self.get, self.first = f, tiles, get, first
        self.columns_at, self.rows_at = scratch, f.at(scratch, get["copied"])
        (set_, group), (row, column) = place, start
        self.bytes, self.width = tiles.spec.bytes, tiles.block * tiles.spec.bytes
        self.rows, self.columns = (
            f.smaller(get[f"{side}_part"], get[f"{side}_channels"] - begin) for side, begin in (("a", row), ("b", column))
        )
        self.a, self.b = (
            f.at(array, (group * get[f"{side}_channels"] + begin) * get[f"{side}_channel"])
            for side, array, begin in (("a", f.a, row), ("b", f.b, column))
        )
        self.line = get["line"]
        number = (set_ * get["groups"] + group) * get["a_channels"] + row
        self.sums = f.at(f.d, number * self.line + column * self.bytes)
        self.a_places, self.c_places = f.scratch("ptr", tiles.rows[0]), f.scratch("ptr", tiles.rows[0])
        self.nest = f.scratch("i64", AHEAD_NEST)

    def _of(self, side: str, chunk: list[Value]) -> Value:
        """Where a side's numbers of a chunk begin."""
        f, get = self.f, self.get
        return f.at(self.a if side == "a" else self.b, chunk[0] * get[f"{side}_image"] + chunk[2] * get[f"{side}_pixel"])

    def pack(self, chunk: list[Value]) -> None:
        """Pack the chunk's columns, and copy its rows where that is wanted."""
        f, get, (_, images, _, pixels) = self.f, self.get, chunk
        none, columns = f.value("i64", 0), self._of("b", chunk)
        if self.first:
            with f.loop(0, self.columns, self.tiles.block) as column, f.loop(0, images) as image:
                lanes = f.smaller(self.columns - column, f.value("i64", self.tiles.block))
                source = f.at(columns, column * get["b_channel"] + image * get["b_image"])
                place = f.at(self.columns_at, column // self.tiles.block * get["block"] + image * pixels * self.width)
                f.call("void", "move", source, place, lanes, pixels, get["b_channel"], f.value("i64", self.width), none)
        else:
            f.call("void", "pack", columns, self.columns_at, self.columns, pixels, get["b_pixel"], get["block"])
        with f.when(get["copies"].ne(0)), f.loop(0, images) as image:
            source = f.at(self._of("a", chunk), image * get["a_image"])
            place = f.at(self.rows_at, image * pixels * get["copied_pixel"])
            run_, times, step, other = (
                (pixels, self.rows, get["a_channel"], get["copied_channel"])
                if self.first
                else (self.rows, pixels, get["a_pixel"], get["copied_pixel"])
            )
            f.call("void", "copy", source, place, run_, times, step, other, none)

    def multiply(self, chunk: list[Value], how: Value) -> None:
        """Add the chunk's products, tiles of rows one after the other."""
        f, get, tiles, (_, images, _, pixels) = self.f, self.get, self.tiles, chunk
        copies, size, source = get["copies"].ne(0), f.value("i64", tiles.rows[0]), self._of("a", chunk)
        a = f.select(copies, self.rows_at, source)
        channel, pixel = (f.select(copies, get[f"copied_{word}"], get[f"a_{word}"]) for word in ("channel", "pixel"))
        one, image = f.value("i64", 1), f.select(copies, pixels * pixel, get["a_image"])
        steps = [images, pixels, one, one, image, pixel, one, one, pixels * self.width, f.value("i64", self.width)]
        for at, number in zip((2, 3, 0, 1, 6, 7, 4, 5, 10, 11), steps, strict=True):
            f.store(number, f.at(self.nest, 8 * at))
        for at in (8, 9):
            f.store(one, f.at(self.nest, 8 * at))
        zeros = f.load("ptr", f.at(f.c, ZEROS * 8))
        with f.loop(0, self.rows, tiles.rows[0]) as row:
            rest = f.smaller(self.rows - row, size)
            with f.loop(0, size) as m:
                f.store(f.at(a, (row + f.smaller(m, rest - 1)) * channel), f.at(self.a_places, m * 8))
            self._look_ahead(f.at(source, row * get["a_channel"]), images * pixels)
            with f.loop(0, self.columns, tiles.block) as column:
                with f.loop(0, size) as m:
                    there = row + f.smaller(m, rest - 1)
                    f.store(f.at(self.sums, there * self.line + column * self.bytes), f.at(self.c_places, m * 8))
                lanes = f.smaller(self.columns - column, f.value("i64", tiles.block))
                b = f.at(self.columns_at, column // tiles.block * get["block"])
                tiles.call(f, rest, lanes, self.a_places, self.c_places, b, zeros, self.nest, how, zeros)
                self._look_nowhere(b)

    def _look_ahead(self, rows: Value, pixels: Value) -> None:
        """Ask for these rows of the next chunk: lines of channels that lie side by side, or of a pixel after the other."""
        f, get = self.f, self.get
        step = get["a_pixel"]
        line, on = (get["a_channel"], f.value("i64", 64)) if self.first else (step, step * AHEAD)
        for k, number in enumerate((f.at(rows, pixels * step), line, on)):
            f.store(number, f.at(self.nest, 8 * (NEST + k)))

    def _look_nowhere(self, place: Value) -> None:
        """The rows have been asked for."""
        zero = self.f.value("i64", 0)
        for k, number in enumerate((place, zero, zero)):
            self.f.store(number, self.f.at(self.nest, 8 * (NEST + k)))
