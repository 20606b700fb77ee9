"""The gradient of the weights where the channels come first and are few in x: lanes are columns of dy, read where it lies.

A unit is some slabs, which are some rows and columns of one image, or of some that are small, for some output channels of a
group. A slab packs what it reads of x as conv_planar.py does. A tile's sums are of some output channels and some taps, a vector
each whose lanes are added up at the slab's end. Units of different slabs add into sums of their own, as many as the plan says.

Where there is padding, and behind the last column, products with zeros are added. They show where a number of dy or x is infinite
or NaN, and make a NaN then: if there is any in the result, the next way computes it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...plan import Shape
from ..protocol import Array
from . import slots
from .cache import functions
from .contraction import fused, mask_below
from .conv_planar import offsets_of, over, places_of, reach, row_bytes, written_for
from .conv_planar_tile import PLACES, Planar, pack_rows, row_packer
from .conv_relation import Relation
from .cuts import bounds_of, evenly
from .ir import Function, Value, Variable, module
from .ir_types import element, lanes, vector
from .machine import Machine, machine
from .slots import MOST
from .tables import Geometry
from .window import kernel_function
from .workers import address_of, run

Numbers = NDArray[np.int64]

FIELDS = (*PLACES, "parts", "part", "blocks", "images", "x_images", "x_slot", "set", "packs", "pairs")
"""Fields: those of conv_planar_tile.py; parts that blocks of output channels are taken in, and blocks of one; blocks of a group;
bytes from an image to the next in dy, and in packed x; bytes of all packed x, behind which is room for a block of dy; bytes of a
set of sums; whether dy is packed, and then whether what two rows have behind their last whole vector is one. Then
tables: taps, slabs, and those of sets."""

SLAB = 7
"""Numbers of a slab: its first image and how many, depth, first row and how many, first column and how many."""

VECTORS = 128
"""Vectors of columns that a slab has of one output channel, at most: as many products are added up one by one."""

AGAIN = 24
"""Taps and channels from which rows of dy that end within a vector had better be packed."""

HALVED = 4
"""Lanes of vectors that are filled from two rows, at least."""

SETS, SETS_BYTES = 8, 1 << 22
"""Sets of sums, if they take no more than so many bytes."""


class Cut(NamedTuple):
    """Images, rows and columns of a slab, and the packed numbers of one phase of a row, in whole vectors."""

    images: int
    rows: int
    columns: int
    pitch: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """A kernel's address, its geometry, the shape of its sums, units, and the scratch of a thread."""

    address: int
    geometry: Geometry
    sums: Shape
    units: int
    slot: int


def tiles_of(machine: Machine) -> tuple[int, tuple[int, ...]]:
    """Output channels of a tile; and how many taps tiles have, the largest first."""
    return (4, (6, 3, 2, 1)) if machine.registers >= 32 else (3, (4, 2, 1))


@lru_cache(maxsize=512)
def takes(relation: Relation, images: int) -> bool:
    """Whether it can be computed so: pixels not stretched, weights in their order, and a slab fits into scratch memory."""
    if relation.dtype not in ("float32", "float64") or relation.depthwise or relation.swapped or not images:
        return False
    if any(axis.input_dilation > 1 for axis in relation.axes):
        return False
    return _slot(relation, images) <= MOST


def weights_gradient(relation: Relation, a: Array, b: Array, shape: Shape) -> Array | None:
    """w[j] = sum_i a[i*s - p + j*d] b[i], of this shape, from contiguous a (N, inputs, *size) and b (N, outputs, *out). None
    where it would be NaN somewhere, and perhaps wrongly."""
    if not (a.size and b.size and math.prod(shape)):
        return np.zeros(shape, a.dtype)
    found = schedule(relation, len(a))
    sums = np.zeros(found.sums, a.dtype)
    block, memory = slots.block(found.slot, found.units)
    run(found.address, found.geometry.address, address_of(a), address_of(b), address_of(block), address_of(sums), found.units, 1)
    del memory
    groups, _, outputs = relation.parts
    total = sums[0] if len(sums) == 1 else np.add.reduce(sums, 0)
    _, blocks, taps, channels = total.shape
    dw = total.transpose(0, 1, 3, 2).reshape(groups, blocks * channels, taps)[:, :outputs].reshape(shape)
    return None if np.isnan(dw).any() else np.ascontiguousarray(dw)


@lru_cache(maxsize=512)
def _cut(relation: Relation, images: int) -> Cut:
    depth, height, width = relation.volume
    lanes = relation.spec.lanes(machine())
    vectors = -(-width.out // lanes)
    chunks = -(-vectors // VECTORS)
    each = -(-vectors // chunks)
    columns = each * lanes
    rows = min(max(VECTORS // each, 1), height.out)
    rows = -(-height.out // -(-height.out // rows))
    together = max(min(VECTORS // (each * rows), images), 1) if rows == height.out and depth.out == 1 and chunks == 1 else 1
    return Cut(together, rows, columns, columns + -(-over(width) // lanes) * lanes)


def _slot(relation: Relation, images: int) -> int:
    """Bytes of scratch: packed x, and a block of dy."""
    cut, (depth, height, _) = _cut(relation, images), relation.volume
    x = relation.parts[1] * depth.kernel * reach(height, cut.rows) * row_bytes(relation, cut.pitch)
    return cut.images * (x + tiles_of(machine())[0] * cut.rows * cut.columns * relation.spec.bytes)


def _slabs(relation: Relation, images: int, cut: Cut) -> Numbers:
    """The table of slabs."""
    depth, height, width = relation.volume

    def parts(count: int, step: int) -> list[tuple[int, int]]:
        return [(first, min(step, count - first)) for first in range(0, count, step)]

    found = [
        (*of_images, z, *rows, *columns)
        for of_images in parts(images, cut.images)
        for z in range(depth.out)
        for rows in parts(height.out, cut.rows)
        for columns in parts(width.out, cut.columns)
    ]
    return np.array(found, np.int64)


@lru_cache(maxsize=512)
def schedule(relation: Relation, images: int) -> Schedule:
    """How the gradient is computed over so many images."""
    spec, cut, width = relation.spec, _cut(relation, images), relation.volume[2]
    written = written_for(relation)
    (address,) = functions("conv_planar_weights", written, lambda: correlate(written, machine()), ("correlate",))
    groups, _, outputs = relation.parts
    slabs, channels = _slabs(relation, images, cut), tiles_of(machine())[0]
    fields = places_of(relation, cut.pitch, cut.rows)
    offsets = offsets_of(relation, fields)
    if relation.flip:
        offsets = np.flip(offsets, (1, 2, 3))
    blocks = -(-outputs // channels)
    sums_shape = (groups, blocks, fields["taps"], channels)
    set_bytes = math.prod(sums_shape) * spec.bytes
    sets = max(min(SETS // groups, SETS_BYTES // set_bytes, len(slabs)), 1)
    part, parts = evenly(blocks, 1, SETS // (sets * groups))
    x_images = fields["slot"]
    fields |= {"parts": parts, "part": part, "blocks": blocks, "images": relation.outputs * fields["y_channel"]}
    fields |= {"x_images": x_images, "x_slot": x_images * cut.images, "set": set_bytes, "slot": _slot(relation, images)}
    lanes = spec.lanes(machine())
    packs = width.out % lanes > 0 and fields["taps"] >= AGAIN
    pairs = packs and cut.columns >= width.out and 2 * (width.out % lanes) <= lanes and lanes >= HALVED
    fields |= {"packs": int(packs), "pairs": int(pairs)}
    bounds = bounds_of(len(slabs), sets)
    geometry = Geometry([fields[name] for name in FIELDS], [np.ascontiguousarray(offsets).ravel(), slabs, bounds])
    return Schedule(address, geometry, (sets, *sums_shape), sets * groups * parts, fields["slot"])


def correlate(spec: Planar, machine: Machine) -> str:
    """The module of `correlate`: a is x, b is dy, c the scratch block, d the sums (sets, groups, blocks, taps, channels); units
    are (set, group, part of blocks)."""
    f, width = kernel_function("correlate"), max(machine.lanes(spec.kind), 2)
    channels, sizes = tiles_of(machine)
    get = {name: f.field(f.geometry, k) for k, name in enumerate(FIELDS)}
    offsets, slabs, bounds = (f.at(f.geometry, f.field(f.geometry, len(FIELDS) + k)) for k in range(3))
    number, memory = slots.slot(f, f.c, get["slot"])
    with f.loop(f.begin, f.end) as unit:
        rest, start = unit // get["parts"], unit % get["parts"] * get["part"]
        group, of_set = rest % get["groups"], rest // get["groups"]
        end, place = f.smaller(start + get["part"], get["blocks"]), f.at(bounds, of_set * 8)
        panel = get["taps"] * (channels * spec.bytes)
        sums = f.at(f.d, of_set * get["set"] + group * get["blocks"] * panel)
        with f.loop(f.load("i64", place), f.load("i64", f.at(place, 8))) as index:
            slab = f.at(slabs, index * (8 * SLAB))
            image, images, depth, row, rows, column, columns = (f.load("i64", f.at(slab, 8 * k)) for k in range(SLAB))
            length = (columns + (width - 1)) // width * width + get["c_over"]
            with f.loop(0, images) as nth:
                plane = ((image + nth) * get["groups"] + group) * get["inputs"]
                there = f.at(memory, nth * get["x_images"])
                pack_rows(f, get, there, plane, depth, (row, rows), (column, length))
            dy = f.at(f.b, image * get["images"] + group * get["outputs"] * get["y_channel"] + depth * get["y_depth"])
            dy = f.at(dy, row * get["y_row"] + column * spec.bytes)
            with f.loop(start, end) as block:
                left = get["outputs"] - block * channels
                lines = _Lines(f, spec, width, get, (images, rows, columns))
                of_dy = f.at(dy, block * channels * get["y_channel"])
                y, steps, *count = lines.there(of_dy, f.at(memory, get["x_slot"]), f.smaller(left, f.value("i64", channels)))
                sent = (y, *steps, left, images, rows, *count, f.geometry)
                sums_of, tap = f.at(sums, block * panel), f.variable("i64", 0)
                for size in sizes:
                    with f.loop(tap.get(), get["taps"] - (size - 1), size) as first:
                        places = (f.at(offsets, first * 8), f.at(sums_of, first * (channels * spec.bytes)))
                        f.call("void", f"tile_{size}", memory, *places, *sent)
                        tap.set(first + size)
    slots.give_back(f, f.c, number)
    tiles = [_tile(f"tile_{size}", spec, width, channels, size) for size in sizes]
    return module(f, slots.taker(), row_packer(spec, width), *tiles)


class _Lines:
    """Writes how the rows of a slab of a block of dy are found: where they lie, or packed, zeros behind the last column."""

    def __init__(self, f: Function, spec: Planar, width: int, get: dict[str, Value], counts: tuple[Value, Value, Value]) -> None:
        self.f, self.spec, self.width, self.get, self.counts = f, spec, width, get, counts

    def there(self, y: Value, memory: Value, channels: Value) -> tuple[Value, list[Value], Value, Value]:
        """The first row, the bytes from a channel, row and image to the next, the columns of a row, and pairs of rows."""
        f, get, (images, rows, columns) = self.f, self.get, self.counts
        packs, paired = get["packs"].ne(0), get["pairs"].ne(0)
        whole = (columns + f.select(paired, 0, f.value("i64", self.width - 1))) // self.width * self.width
        pairs = f.select(paired, (rows + 1) // 2, 0)
        row = whole * self.spec.bytes
        image = rows * row + pairs * (self.width * self.spec.bytes)
        own = (get["y_channel"], get["y_row"], get["images"])
        packed = (images * image, row, image)
        with f.when(packs):
            self._pack(y, memory, channels, packed, own)
        steps = [f.select(packs, a, b) for a, b in zip(packed, own, strict=True)]
        return f.select(packs, memory, y), steps, f.select(packs, whole, columns), pairs

    def _pack(
        self, y: Value, memory: Value, channels: Value, packed: tuple[Value, Value, Value], own: tuple[Value, Value, Value]
    ) -> None:
        f, (images, rows, columns), width = self.f, self.counts, self.width
        kind, size = vector(width, self.spec.kind), self.spec.bytes
        with f.loop(0, channels) as channel, f.loop(0, images) as image:
            source, place = (f.at(s, channel * by[0] + image * by[2]) for s, by in ((y, own), (memory, packed)))
            with f.loop(0, rows) as row:
                here, there = f.at(source, row * own[1]), f.at(place, row * packed[1])
                with f.loop(0, packed[1] // size, width) as k:
                    values = f.load(kind, f.at(here, k * size), mask=mask_below(f, width, columns - k))
                    f.store(values, f.at(there, k * size))
            if width >= HALVED:
                with f.when(self.get["pairs"].ne(0)), f.loop(0, rows, 2) as row:
                    self._pair(f.at(source, packed[1]), f.at(place, rows * packed[1]), row, own[1], columns - packed[1] // size)

    def _pair(self, y: Value, memory: Value, row: Value, y_row: Value, columns: Value) -> None:
        """What two rows have behind their last whole vector, into one."""
        f, half = self.f, self.width // 2
        bytes_ = half * self.spec.bytes
        for k in range(2):
            rest = f.select((row + k) < self.counts[1], columns, 0)
            values = f.load(vector(half, self.spec.kind), f.at(y, (row + k) * y_row), mask=mask_below(f, half, rest))
            f.store(values, f.at(memory, (row + k) * bytes_))


def _tile(name: str, spec: Planar, width: int, channels: int, taps: int) -> Function:
    """Add a slab's products of the next `left` output channels, as many as a tile has, with so many taps. x is the packed slab, y
    the first channel's first row of dy; then the bytes from a channel, row and image to the next."""
    words = ("y_channel", "y_row", "y_image", "left", "images", "rows", "columns", "pairs")
    counts = dict.fromkeys(words, "i64")
    f = Function(name, private=True, x="ptr", offsets="ptr", sums="ptr", y="ptr", **counts, geometry="ptr")
    x_image, stride, p_row = (f.field(f.geometry, FIELDS.index(word)) for word in ("x_images", "r_stride", "p_row"))
    kind, x_row = vector(width, spec.kind), stride * p_row
    xs = [f.at(f.x, f.load("i64", f.at(f.offsets, 8 * t))) for t in range(taps)]
    ys = [f.at(f.y, f.smaller(f.value("i64", m), f.left - 1) * f.y_channel) for m in range(channels)]
    sums = [f.variable(kind, 0) for _ in range(taps * channels)]
    whole = f.columns // width * width
    mask = mask_below(f, width, f.columns - whole)

    def products(x_at: Value, y_at: Value, only: Value | None = None, other: Value | None = None) -> None:
        values = [f.load(kind, f.at(y, y_at), mask=only) for y in ys]
        for t, x in enumerate(xs):
            pixels = f.load(kind, f.at(x, x_at)) if other is None else _halves(f, kind, f.at(x, x_at), f.at(x, other))
            for value, total in zip(values, sums[t * channels : (t + 1) * channels], strict=True):
                total.set(fused(f, value, pixels, total.get()))

    with f.loop(0, f.images) as image, f.loop(0, f.rows) as row:
        x_at, y_at = image * x_image + row * x_row, image * f.y_image + row * f.y_row
        with f.loop(0, whole * spec.bytes, width * spec.bytes) as at:
            products(x_at + at, y_at + at)
        with f.when(whole < f.columns):
            products(x_at + whole * spec.bytes, y_at + whole * spec.bytes, mask)
    if width >= HALVED:
        with f.loop(0, f.images) as image, f.loop(0, f.pairs) as pair:
            second = f.smaller(pair * 2 + 1, f.rows - 1)
            first, other = (image * x_image + row * x_row + f.columns * spec.bytes for row in (pair * 2, second))
            products(first, image * f.y_image + f.rows * f.y_row + pair * (width * spec.bytes), None, other)
    _add(f, spec, width, sums)
    return f


def _halves(f: Function, kind: str, first: Value, second: Value) -> Value:
    """Half a vector from one place and half from another."""
    half = vector(lanes(kind) // 2, element(kind))
    return f.joined([f.load(half, first), f.load(half, second)])


def _add(f: Function, spec: Planar, width: int, sums: list[Variable]) -> None:
    """Add the lanes of every sum to the number it belongs to, one number behind the other."""
    values = [total.get() for total in sums]
    step = 1
    while step < width:
        values = [_halved(f, a, b, step) for a, b in zip(values[::2], [*values[1::2], values[-1]], strict=False)]
        step *= 2
    for first, value in zip(range(0, len(sums), width), values, strict=True):
        count = min(width, len(sums) - first)
        part = f.shuffle(value, value, range(count)) if count < width else value
        place = f.at(f.sums, first * spec.bytes)
        f.store(f.load(vector(count, spec.kind), place) + part, place)


def _halved(f: Function, a: Value, b: Value, step: int) -> Value:
    """Lanes that lie `step` apart added up, those of a and of b by turns."""
    n = lanes(a.type)
    low = [at if not at & step else n + at - step for at in range(n)]
    return f.shuffle(a, b, low) + f.shuffle(a, b, [place + step for place in low])
