"""Convolution with 3x3 windows of stride 1 by Winograd's form: y from x, and the gradient of x from that of y.

The output is cut into tiles of 2x2 (or 4x4) pixels. A tile's pixels and the weights are transformed, multiplied point by point
and summed over channels, and the sums transformed into outputs: 16 products (or 36) where windows have 36 (or 144). A unit is
a chunk of tiles of one group: its transformed pixels stay in the cache while the weights pass by.

A tile that holds an infinity or NaN is computed directly, so that they lie where windows have them and padding meets nothing.
What is computed for a tile depends on nothing but the tile: neither chunks nor threads show.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..protocol import Array
from . import conv_gather, slots
from .cache import functions
from .contraction import Contraction
from .conv_gather import Relation
from .ir import Function, Value, module
from .machine import Machine, machine
from .tables import Geometry
from .window import kernel_function
from .winograd_forms import FORMS
from .winograd_pack import transformed_weights
from .winograd_parts import LINE, Products, addresses, apart, gathered, prefetch, spread, steps_of
from .workers import address_of, run

CACHE = 3 << 17
"""Bytes of a chunk's transformed pixels, about: they stay in the cache with the products and a block's weights."""

LEAST, TILES, PRODUCTS = 32, 49, 49 * 48 * 48
"""Channels of a group, tiles of an image, and tiles times inputs times outputs of a group, from which Winograd's form was
measured faster than the direct one. The batch does not count: an image is computed alike in any company."""

LARGE = 20
"""Outputs along both axes from which tiles of 4x4 were measured faster than those of 2x2, for single images as well."""

UNITS = 8
"""Units that a call has at least, if it has tiles enough."""


@dataclass(frozen=True, slots=True)
class Form:
    """What a kernel depends on: what it computes with, and the outputs of a tile's row."""

    spec: Contraction
    tile: int


def declines(relation: Relation, most: int) -> str | None:
    """Why a relation is not computed with tiles of at most `most` outputs along a side; None if it is."""
    if most not in FORMS:
        return "Winograd's form is switched off"
    if len(relation.axes) != 2 or any((a.kernel, a.stride, a.dilation, a.input_dilation) != (3, 1, 1, 1) for a in relation.axes):
        return "windows are not 3x3 with stride 1"
    _, inputs, outputs = relation.parts
    if relation.depthwise or min(inputs, outputs) < LEAST:
        return f"groups have fewer than {LEAST} channels"
    tiles = math.prod(-(-axis.out // 2) for axis in relation.axes)
    if tiles < TILES or tiles * inputs * outputs < PRODUCTS:
        return "there are too few outputs"
    return None


def tile_of(relation: Relation, most: int) -> int:
    """The side of the tiles: `most`, or 2 where an image has little room for larger ones."""
    return most if min(axis.out for axis in relation.axes) >= LARGE else 2


FIELDS = (
    "units", "tiles", "in_image", "in_row", "chunks", "blocks_of_tiles", "slot",
    "height", "width", "pad_y", "pad_x", "out_height", "out_width",
    "x_image", "x_row", "x_pixel", "x_group", "y_image", "y_row", "y_pixel", "y_group",
    "inputs", "outputs", "vectors", "blocks", "point", "product",
)  # fmt: skip
"""Fields of the geometry, then the offset of a table of zeros, which pixels outside the image read. Sizes are in bytes where
they are steps through x, y or scratch memory: `slot` of one slot, `point` from one point of transformed pixels to the next, with
the products behind the last, `product` the same for those. `vectors` of inputs, `blocks` of outputs, each in a group."""

BIAS, FLAGS = slots.FIRST_FREE, slots.FIRST_FREE + 1
"""Words of a call: where the bias lies, and a byte for each tile, 1 where something is not finite."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A kernel's address and geometry, how many units and tiles there are, and the bytes of a slot."""

    address: int
    geometry: Geometry
    units: int
    tiles: int
    slot: int


@lru_cache(maxsize=512)
def schedule(relation: Relation, images: int, tile: int) -> Schedule:
    """How a relation is computed over so many images."""
    spec = relation.spec
    form = Form(spec, tile)
    (address,) = functions("winograd", form, lambda: winograd(form, machine()), ("winograd",))
    groups, inputs, outputs = relation.parts
    (high, wide), rows, lanes = relation.axes, spec.rows(machine())[0], spec.lanes(machine())
    points, vectors = FORMS[tile].points ** 2, -(-inputs // lanes)
    in_row, in_column = -(-wide.out // tile), -(-high.out // tile)
    tiles = images * in_row * in_column
    blocks = -(-tiles // rows)
    row = vectors * lanes * spec.bytes * points * rows
    chunks = min(max(-(-blocks // max(CACHE // row, 2)), -(-UNITS // groups)), blocks)
    most = -(-blocks // chunks)
    point, product = apart(row // points * most), apart(rows * most * spec.block(machine()) * spec.bytes)
    values = dict(
        units=groups * chunks, tiles=tiles, in_image=in_row * in_column, in_row=in_row, chunks=chunks, blocks_of_tiles=blocks,
        slot=points * (point + product), height=high.size, width=wide.size, pad_y=high.pad_lo, pad_x=wide.pad_lo,
        out_height=high.out, out_width=wide.out, inputs=inputs, outputs=outputs, vectors=vectors, blocks=relation.blocks,
        point=point, product=product,
        **steps_of("x", (high.size, wide.size), relation.inputs, inputs, spec.bytes),
        **steps_of("y", (high.out, wide.out), relation.outputs, outputs, spec.bytes),
    )  # fmt: skip
    zeros = np.zeros(-(-vectors * lanes * spec.bytes // 8), np.int64)
    return Schedule(address, Geometry([values[name] for name in FIELDS], [zeros]), groups * chunks, tiles, values["slot"])


def compute(relation: Relation, x: Array, packed: Array, bias: Array, y: Array, tile: int) -> None:
    """y (N, *out, outputs) from x (N, *size, inputs), contiguous and of the relation's dtype, and packed weights and bias.

    `tile` is 2 or 4. Any size will do: whether it is worth it, `declines` says.
    """
    if not y.size:
        return
    found, weights = schedule(relation, len(x), tile), transformed_weights(relation, packed, tile)
    flags = np.zeros(found.tiles, np.uint8)
    block, memory = slots.block(found.slot, found.units, bias.ctypes.data, flags.ctypes.data)
    run(
        found.address,
        found.geometry.address,
        address_of(x),
        address_of(weights),
        address_of(block),
        address_of(y),
        found.units,
        1,
    )
    del memory
    if flags.any():
        _directly(relation, x, packed, bias, y, tile, flags.reshape(len(x), -1))


def _directly(relation: Relation, x: Array, packed: Array, bias: Array, y: Array, tile: int, flags: Array) -> None:
    """Compute the flagged tiles again, by the direct form."""
    in_row = -(-relation.axes[1].out // tile)
    one = np.empty_like(y[:1])
    for n in np.flatnonzero(flags.any(1)):
        conv_gather.compute(relation, x[n : n + 1], packed, bias, one)
        for t in np.flatnonzero(flags[n]):
            rows, columns = (slice(at * tile, (at + 1) * tile) for at in divmod(int(t), in_row))
            y[n, rows, columns] = one[0, rows, columns]


def winograd(form: Form, machine: Machine) -> str:
    """The module of `winograd`: a is x, b the transformed weights, c the call's block, d is y."""
    f = kernel_function("winograd")
    writer = _Writer(f, form, machine)
    number, memory = slots.slot(f, f.c, writer.slot)
    with f.loop(f.begin, f.end) as unit:
        writer.unit(unit, memory)
    slots.give_back(f, f.c, number)
    return module(f, slots.taker(), *writer.functions)


class _Writer:
    """Writes what is done for one unit. The geometry's fields are attributes."""

    def __init__(self, f: Function, form: Form, machine: Machine) -> None:
        spec, matrices = form.spec, FORMS[form.tile]
        self.f, self.spec, self.tile, self.size = f, spec, form.tile, matrices.points
        self.rows, self.lanes, self.block = spec.rows(machine)[0], spec.lanes(machine), spec.block(machine)
        self.vector = self.lanes * spec.bytes
        self.products = Products(spec, machine, self.vector, self.lanes)
        spread_, gathered_ = spread("spread", spec, machine, matrices.inputs), gathered(spec, machine, matrices.outputs)
        self.functions = [*self.products.functions, spread_, gathered_]
        self.fields = {name: f.field(f.geometry, k) for k, name in enumerate(FIELDS)}
        self.zeros = f.at(f.geometry, f.field(f.geometry, len(FIELDS)))
        self.pixels = f.scratch("ptr", self.size**2)

    def __getattr__(self, name: str) -> Value:
        fields = self.__dict__.get("fields", {})
        if name not in fields:
            raise AttributeError(name)
        value: Value = fields[name]
        return value

    def unit(self, unit: Value, memory: Value) -> None:
        """A chunk of the tiles of one group."""
        f, group, chunk = self.f, unit // self.chunks, unit % self.chunks
        first = chunk * self.blocks_of_tiles // self.chunks * self.rows
        last = f.smaller((chunk + 1) * self.blocks_of_tiles // self.chunks * self.rows, self.tiles)
        products = f.at(memory, self.point * self.size**2)
        with f.loop(first, last) as t:
            self._spread(t, first, group, memory)
        with f.loop(0, self.blocks) as block:
            self._multiply((first, last), group, block, memory)
            with f.loop(first, last) as t:
                self._gather(t, first, group, block, products)

    def _spread(self, t: Value, first: Value, group: Value, memory: Value) -> None:
        """Transform the pixels of tile t."""
        f, (n, row, column) = self.f, self._place(t)
        x = f.at(f.a, n * self.x_image + group * self.x_group)
        at = row * self.tile - self.pad_y, column * self.tile - self.pad_x
        sizes, steps = (self.height, self.width), (self.x_row, self.x_pixel)
        addresses(f, self.pixels, self.size, at, sizes, x, steps, self.zeros)
        nth, step = t - first, self.rows * self.vector
        to = f.at(memory, nth // self.rows * self.vectors * step + nth % self.rows * self.vector)
        f.call("void", "spread", self.pixels, f.value("i64", 0), to, self.point, f.value("i64", step), self.inputs)

    def _multiply(self, chunk: tuple[Value, Value], group: Value, block: Value, memory: Value) -> None:
        """Multiply a chunk's tiles by one block's weights, point by point. Meanwhile bring on what comes next: the pixels of
        the next chunk, a share for each block, and the places of this block's outputs."""
        f, (first, last), step = self.f, chunk, self.rows * self.vector
        points, block_bytes = self.size**2, self.block * self.spec.bytes
        count, pixels, a_block = last - first, self.tile**2, self.vectors * step
        weights = f.at(f.b, (group * self.blocks + block) * (self.vectors * (points * self.block * self.vector)))
        tiles = (count + (self.rows - 1)) // self.rows * points
        share = (count * pixels * self.x_pixel // (tiles * self.blocks) + LINE) & -LINE
        x = f.at(f.a, last * pixels * self.x_pixel + self.x_row * (self.size - 1) + group * self.x_group)
        y = f.at(f.d, first * pixels * self.y_pixel + group * self.y_group + block * block_bytes)
        x_at, y_at = f.variable("ptr", f.at(x, block * tiles * share)), f.variable("ptr", y)
        with f.loop(0, points) as point, f.loop(0, count, self.rows) as at:
            with f.loop(0, share, LINE) as ahead:
                prefetch(f, f.at(x_at.get(), ahead))
            x_at.set(f.at(x_at.get(), share))
            for _ in range(-(-self.rows * pixels // points)):
                for line in range(0, block_bytes, LINE):
                    prefetch(f, f.at(y_at.get(), line), write=True)
                y_at.set(f.at(y_at.get(), self.y_pixel))
            a = f.at(memory, point * self.point + at // self.rows * a_block)
            b = f.at(weights, point * (self.vectors * (self.block * self.vector)))
            c = f.at(memory, self.point * points + point * self.product + at * block_bytes)
            self.products.call(f, count - at, a, b, c, self.vectors, f.value("i64", step), f.value("i64", 0))

    def _gather(self, t: Value, first: Value, group: Value, block: Value, products: Value) -> None:
        """Transform one block's products into outputs of tile t."""
        f, (n, row, column), bytes_ = self.f, self._place(t), self.spec.bytes
        rest = f.smaller(self.outputs - block * self.block, f.value("i64", self.block))
        top, left = row * self.tile, column * self.tile
        of = f.at(products, (t - first) * (self.block * bytes_))
        y = f.at(f.d, n * self.y_image + top * self.y_row + left * self.y_pixel + group * self.y_group)
        y = f.at(y, block * (self.block * bytes_))
        bias = f.at(f.load("ptr", f.at(f.c, BIAS * 8)), (group * self.blocks + block) * (self.block * bytes_))
        with f.loop(0, rest, self.lanes) as lane:
            here = lane * bytes_
            finite = f.call(
                "i1",
                "gathered",
                f.at(of, here),
                self.product,
                f.at(bias, here),
                f.at(y, here),
                self.y_row,
                self.y_pixel,
                self.out_height - top,
                self.out_width - left,
                rest - lane,
            )
            with f.when(~finite, likely=False):
                f.store(f.value("i8", 1), f.at(f.load("ptr", f.at(f.c, FLAGS * 8)), t))

    def _place(self, t: Value) -> tuple[Value, Value, Value]:
        """The image, row and column of a tile."""
        rest = t % self.in_image
        return t // self.in_image, rest // self.in_row, rest % self.in_row
