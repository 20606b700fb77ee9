"""The gradient of 3x3 weights by Winograd's form: a tile's pixels and its outputs' gradients are transformed, multiplied point
by point, summed over tiles, and the sums transformed into the gradient.

A unit is a set of tiles times a range of input and one of output channels; it goes through its tiles a chunk at a time, whose
transforms stay in the cache. Sets have sums of their own, as many as the plan says, added up in their order at the end: so
neither threads nor their number show. Where something is not finite the direct form computes all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...plan import Shape
from .. import memory
from ..protocol import Array
from . import conv_weights, slots
from .cache import functions
from .contraction import prefetch
from .conv_layout import channels_last
from .conv_move import mover
from .conv_relation import Relation
from .conv_unpack import unpack
from .ir import Function, Value, module
from .ir_types import vector
from .machine import Machine, machine
from .tables import Geometry
from .window import kernel_function
from .winograd_first import Window, parts, room
from .winograd_forms import FORMS, transformed, turned
from .winograd_parts import LINE, PIECES, Fielded, Products, addresses, apart, spread, steps_of
from .winograd_units import Form
from .workers import address_of, run

RANGE, WHOLE = 96, 128
"""Channels of a range, about: their sums stay in a nearby cache; and up to how many are one range."""

CACHE = 1 << 18
"""Bytes of a chunk's transforms, about."""

CHUNK, CHUNKS = 32, 3
"""Tiles of a chunk and chunks of a set, at least: sums are read and written once a chunk, and added up once a set."""

TAKEN = 32
"""Channels of the sums that a thread takes at once."""

UNITS, SUMS_BYTES = 8, 1 << 24
"""Units that a call has at least, if it has chunks enough and their sums take no more than so many bytes."""

FIELDS = (
    "groups", "ranges", "range", "out_ranges", "out_range", "inputs", "outputs", "blocks", "rows",
    "set", "sets", "chunks", "chunk", "tiles", "in_image", "in_row", "slot", "point", "out_point", "pitch",
    "height", "width", "pad_y", "pad_x", "out_height", "out_width",
    "x_image", "x_row", "x_pixel", "x_group", "x_channel", "y_image", "y_row", "y_pixel", "y_group", "y_channel",
)  # fmt: skip
"""Fields of the geometry, then the offset of a table of zeros. `ranges` of `range` input channels, `out_ranges` of `out_range`
blocks of output channels; `rows` input channels that the sums have room for, `set` bytes of one set of sums; `chunks` of
`chunk` tiles. In bytes: a slot of scratch memory, from one point of the transforms to the next, and from a tile to the next."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The addresses of the two kernels, the geometry both read, the units of the first, and the sets of sums."""

    address: int
    sum_address: int
    geometry: Geometry
    units: int
    sets: int
    slot: int
    rows: int


def weights_gradient(relation: Relation, a: Array, b: Array, shape: Shape, tile: int, first: bool = False) -> Array:
    """w[j] = sum_i a[i - p + j] b[i], of this shape, from contiguous a (N, *size, inputs) and b (N, *out, outputs).

    With `first` they are (N, inputs, *size) and (N, outputs, *out).
    """
    if not (a.size and b.size and math.prod(shape)):
        return np.zeros(shape, a.dtype)
    if first and max(relation.parts[1:]) > WHOLE:  # each range would move what it reads once more
        a, b, first = channels_last(a), channels_last(b), False
    dw = np.empty(shape, a.dtype)
    found = schedule(relation, len(a), tile, first)
    groups, inputs, _ = relation.parts
    blocks, lanes = groups * relation.blocks, relation.packed_shape[-1]
    sums = memory.empty((found.sets, blocks, FORMS[tile].points ** 2, found.rows, lanes), a.dtype)
    block, scratch = slots.block(found.slot, found.units)
    run(
        found.address,
        found.geometry.address,
        address_of(a),
        address_of(b),
        address_of(block),
        address_of(sums),
        found.units,
        1,
    )
    del scratch
    total = np.empty((1, *relation.packed_shape), a.dtype)
    run(found.sum_address, found.geometry.address, address_of(sums), 0, 0, address_of(total), blocks * inputs, TAKEN)
    unpack(relation, total, dw)
    if np.isfinite(dw).all():
        return dw
    return conv_weights.weights_gradient(relation, *((channels_last(a), channels_last(b)) if first else (a, b)), shape)


@lru_cache(maxsize=512)
def schedule(relation: Relation, images: int, tile: int, first: bool) -> Schedule:
    """How the gradient is computed over so many images."""
    spec, form = relation.spec, Form(relation.spec, tile, first)
    (address,) = functions("winograd_weights", form, lambda: correlate(form, machine()), ("correlate",))
    (sum_address,) = functions("winograd_sums", Form(spec, tile), lambda: summed(form, machine()), ("summed",))
    groups, inputs, outputs = relation.parts
    (high, wide), lanes, block = relation.axes, spec.lanes(machine()), spec.block(machine())
    points, rows = FORMS[tile].points ** 2, -(-inputs // lanes) * lanes
    ranges, range_ = _ranges(inputs, spec.rows(machine())[0])
    out_ranges, out_range = _ranges(relation.blocks * block, block)
    out_range //= block
    pitch = -(-range_ // lanes) * lanes * spec.bytes
    in_row, in_column = -(-wide.out // tile), -(-high.out // tile)
    tiles = images * in_row * in_column
    chunks = -(-tiles // max(CACHE // (points * (pitch + out_range * block * spec.bytes)), CHUNK))
    set_ = groups * relation.blocks * points * rows * block * spec.bytes
    sets = max(min(-(-UNITS // (groups * ranges * out_ranges)), chunks // CHUNKS, SUMS_BYTES // set_), 1)
    chunk = -(-tiles // chunks)
    point, out_point = apart(chunk * pitch), apart(chunk * out_range * block * spec.bytes)
    slot = points * (point + out_point) + (room(spec, tile, machine()) if first else 0)
    values = dict(
        groups=groups, ranges=ranges, range=range_, out_ranges=out_ranges, out_range=out_range, inputs=inputs, outputs=outputs,
        blocks=relation.blocks, rows=rows, set=set_, sets=sets, chunks=-(-tiles // chunk), chunk=chunk, tiles=tiles,
        in_image=in_row * in_column, in_row=in_row, slot=slot, point=point, out_point=out_point,
        pitch=pitch, height=high.size, width=wide.size, pad_y=high.pad_lo, pad_x=wide.pad_lo, out_height=high.out,
        out_width=wide.out,
        **steps_of("x", (high.size, wide.size), relation.inputs, inputs, spec.bytes, first),
        **steps_of("y", (high.out, wide.out), relation.outputs, outputs, spec.bytes, first),
    )  # fmt: skip
    values["sets"] = min(sets, values["chunks"])
    zeros = np.zeros(-(-max(pitch, out_range * block * spec.bytes) // 8), np.int64)
    geometry = Geometry([values[name] for name in FIELDS], [zeros])
    units = values["sets"] * groups * ranges * out_ranges
    return Schedule(address, sum_address, geometry, units, values["sets"], slot, rows)


def _ranges(count: int, step: int) -> tuple[int, int]:
    """How many ranges of channels there are, about equally large, and the channels of one, a multiple of `step`."""
    wanted = 1 if count <= WHOLE else -(-count // RANGE)
    size = -(-count // (wanted * step)) * step
    return -(-count // size), size


def correlate(form: Form, machine: Machine) -> str:
    """The module of `correlate`: a and b are the arrays, c the call's block, d the sums, laid out like transformed weights."""
    f = kernel_function("correlate")
    writer = (_WriterFirst if form.first else _Writer)(f, form, machine)
    number, scratch = slots.slot(f, f.c, writer.slot)
    with f.loop(f.begin, f.end) as unit:
        writer.unit(unit, scratch)
    slots.give_back(f, f.c, number)
    return module(f, slots.taker(), *writer.functions)


class _Writer(Fielded):
    """Writes what is done for one unit. The geometry's fields are attributes."""

    def __init__(self, f: Function, form: Form, machine: Machine) -> None:
        spec, matrices = form.spec, FORMS[form.tile]
        self.f, self.spec, self.tile, self.size = f, spec, form.tile, matrices.points
        self.step, self.lanes, self.block = spec.rows(machine)[0], spec.lanes(machine), spec.block(machine)
        self.products = Products(spec, machine, spec.bytes, 1, PIECES[form.tile])
        pixels = spread("spread_pixels", spec, machine, matrices.inputs)
        gradients = spread("spread_gradients", spec, machine, turned(matrices.outputs))
        self.functions = [*self.products.functions, pixels, gradients]
        self.fields = {name: f.field(f.geometry, k) for k, name in enumerate(FIELDS)}
        self.zeros = f.at(f.geometry, f.field(f.geometry, len(FIELDS)))
        self.places = f.scratch("ptr", self.size**2)

    def unit(self, unit: Value, scratch: Value) -> None:
        """A set of tiles, a group, a range of input and one of output channels."""
        f, bytes_ = self.f, self.spec.bytes
        rest, out_range = unit // self.out_ranges, unit % self.out_ranges
        rest, in_range = rest // self.ranges, rest % self.ranges
        set_, group = rest // self.groups, rest % self.groups
        channel, block = in_range * self.range, out_range * self.out_range
        channels = f.smaller(self.range, self.inputs - channel)
        blocks = f.smaller(self.out_range, self.blocks - block)
        a = f.at(f.a, group * self.x_group + channel * self.x_channel)
        b = f.at(f.b, group * self.y_group + block * self.block * self.y_channel)
        panel = self.rows * (self.block * bytes_)
        sums = f.at(f.d, set_ * self.set + (group * self.blocks + block) * panel * self.size**2)
        sums = f.at(sums, channel * (self.block * bytes_))
        outputs = f.smaller(blocks * self.block, self.outputs - block * self.block)
        begin, end = set_ * self.chunks // self.sets, (set_ + 1) * self.chunks // self.sets
        with f.loop(begin, end) as chunk:
            first = chunk * self.chunk
            last = f.smaller(first + self.chunk, self.tiles)
            self.transform(first, last, (a, b), (channels, outputs), scratch)
            add = f.select(chunk.eq(begin), f.value("i64", 0), 1)
            ahead = self.ahead((first, last), (a, b), (channels, outputs), blocks)
            self._multiply(last - first, (channels, blocks), scratch, sums, add, ahead)

    def transform(
        self, first: Value, last: Value, arrays: tuple[Value, Value], channels: tuple[Value, Value], scratch: Value
    ) -> None:
        """Transform the pixels of tiles `first` to `last` and the gradients of their outputs."""
        f, tile = self.f, self.tile
        with f.loop(first, last) as t:
            n, row, column = self._place(t)
            x, y = f.at(arrays[0], n * self.x_image), f.at(arrays[1], n * self.y_image)
            at, sizes = (row * tile - self.pad_y, column * tile - self.pad_x), (self.height, self.width)
            addresses(f, self.places, self.size, at, sizes, x, (self.x_row, self.x_pixel), self.zeros)
            self.spread_pixels(t - first, f.value("i64", 0), channels[0], scratch)
            at, sizes = (row * tile, column * tile), (self.out_height, self.out_width)
            addresses(f, self.places, tile, at, sizes, y, (self.y_row, self.y_pixel), self.zeros)
            with f.loop(0, channels[1], self.block) as channel:
                count = f.smaller(channels[1] - channel, f.value("i64", self.block))
                self.spread_gradients(t - first, channel, channel * self.spec.bytes, count, scratch)

    def spread_pixels(self, nth: Value, channel: Value, count: Value, scratch: Value) -> None:
        """Transform the pixels in the table, which begin with a channel of the range."""
        f, step = self.f, self.f.value("i64", self.lanes * self.spec.bytes)
        to = f.at(scratch, nth * self.pitch + channel * self.spec.bytes)
        f.call("void", "spread_pixels", self.places, f.value("i64", 0), to, self.point, step, count)

    def spread_gradients(self, nth: Value, channel: Value, skip: Value, count: Value, scratch: Value) -> None:
        """Transform gradients of one block, from a channel of the range on, `skip` bytes behind the places in the table."""
        f, row, step = self.f, self.block * self.spec.bytes, self.f.value("i64", self.lanes * self.spec.bytes)
        to = f.at(scratch, self.point * self.size**2 + nth * row)
        to = f.at(to, channel // self.block * self.chunk * row + channel % self.block * self.spec.bytes)
        f.call("void", "spread_gradients", self.places, skip, to, self.out_point, step, count)

    def _place(self, t: Value) -> tuple[Value, Value, Value]:
        """The image, row and column of a tile."""
        rest = t % self.in_image
        return t // self.in_image, rest // self.in_row, rest % self.in_row

    def ahead(
        self, chunk: tuple[Value, Value], arrays: tuple[Value, Value], channels: tuple[Value, Value], blocks: Value
    ) -> Callable[[], None]:
        """What brings on the next chunk's pixels and gradients, in as many steps as there are points and blocks."""
        f, (first, last), pixels, bytes_ = self.f, chunk, self.tile**2, self.spec.bytes
        share = (last - first) * pixels // (blocks * self.size**2) + 1
        steps = self.x_pixel, self.y_pixel
        skips = self.x_row * (self.size - 1), f.value("i64", 0)
        places = [f.at(a, last * pixels * step + skip) for a, step, skip in zip(arrays, steps, skips, strict=True)]
        at = [f.variable("ptr", place) for place in places]

        def one() -> None:
            with f.loop(0, share):
                for place, step, count in zip(at, steps, channels, strict=True):
                    with f.loop(0, count * bytes_, LINE) as line:
                        prefetch(f, f.at(place.get(), line))
                    place.set(f.at(place.get(), step))

        return one

    def _multiply(
        self,
        tiles: Value,
        counts: tuple[Value, Value],
        scratch: Value,
        sums: Value,
        add: Value,
        ahead: Callable[[], None],
    ) -> None:
        """Add the chunk's products to the sums, or begin with them."""
        f, bytes_ = self.f, self.spec.bytes
        row, points = self.block * bytes_, self.size**2
        gradients = f.at(scratch, self.point * points)
        with f.loop(0, points) as point, f.loop(0, counts[1]) as block:
            ahead()
            b = f.at(gradients, point * self.out_point + block * self.chunk * row)
            c = f.at(sums, (block * points + point) * self.rows * row)
            with f.loop(0, counts[0], self.step) as channel:
                a = f.at(scratch, point * self.point + channel * bytes_)
                self.products.call(f, counts[0] - channel, a, b, f.at(c, channel * row), tiles, self.pitch, add)


class _WriterFirst(_Writer):
    """Writes the same where the channels come first."""

    def __init__(self, f: Function, form: Form, machine: Machine) -> None:
        super().__init__(f, form, machine)
        self.functions.append(mover(form.spec.kind, machine))
        self.windows = [Window(f, form.spec, self.lanes, self.tile, size) for size in (self.size, self.tile)]

    def transform(
        self, first: Value, last: Value, arrays: tuple[Value, Value], channels: tuple[Value, Value], scratch: Value
    ) -> None:
        """Transform the pixels of tiles `first` to `last` and the gradients of their outputs."""
        f, tile, (pixels, gradients) = self.f, self.tile, self.windows
        moved, lanes = f.at(scratch, (self.point + self.out_point) * self.size**2), f.value("i64", self.lanes)
        with parts(f, self.in_row, first, last) as (begin, end):
            n, row, column = self._place(begin)
            x, y = f.at(arrays[0], n * self.x_image), f.at(arrays[1], n * self.y_image)
            with f.loop(0, channels[0], self.lanes) as channel:
                at, sizes = (row * tile - self.pad_y, column * tile - self.pad_x), (self.height, self.width)
                count, steps = f.smaller(channels[0] - channel, lanes), (self.x_row, self.x_channel)
                pixels.bring(moved, f.at(x, channel * self.x_channel), at, sizes, steps, end - begin, count)
                with f.loop(begin, end) as t:
                    pixels.fill(self.places, moved, t - begin)
                    self.spread_pixels(t - first, channel, count, scratch)
            with f.loop(0, channels[1], self.lanes) as channel:
                at, sizes = (row * tile, column * tile), (self.out_height, self.out_width)
                count, steps = f.smaller(channels[1] - channel, lanes), (self.y_row, self.y_channel)
                gradients.bring(moved, f.at(y, channel * self.y_channel), at, sizes, steps, end - begin, count)
                with f.loop(begin, end) as t:
                    gradients.fill(self.places, moved, t - begin)
                    self.spread_gradients(t - first, channel, f.value("i64", 0), count, scratch)

    def ahead(
        self, chunk: tuple[Value, Value], arrays: tuple[Value, Value], channels: tuple[Value, Value], blocks: Value
    ) -> Callable[[], None]:
        """Nothing: rows of planes are read in order."""
        return lambda: None


def summed(form: Form, machine: Machine) -> str:
    """The module of `summed`: a are the sums, d the gradient, laid out like packed weights; units are (block, input
    channel)."""
    f, spec, matrix = kernel_function("summed"), form.spec, turned(FORMS[form.tile].weights)
    get = {name: f.field(f.geometry, k) for k, name in enumerate(FIELDS)}
    width, points = spec.lanes(machine) * spec.bytes, FORMS[form.tile].points
    row, kind = width * spec.vectors(machine), vector(spec.lanes(machine), spec.kind)
    totals = [f.variable(kind, 0) for _ in range(points**2)]
    with f.loop(f.begin, f.end) as unit, f.loop(0, row, width) as part:
        block, channel = unit // get["inputs"], unit % get["inputs"]
        first = f.at(f.a, (block * get["rows"] * points**2 + channel) * row + part)
        for k, total in enumerate(totals):
            total.set(f.load(kind, f.at(first, get["rows"] * (k * row))))
        with f.loop(1, get["sets"]) as set_:
            for k, total in enumerate(totals):
                total.set(total.get() + f.load(kind, f.at(first, set_ * get["set"] + get["rows"] * (k * row))))
        to = f.at(f.d, (block * get["inputs"] * 9 + channel) * row + part)
        rows = transformed(f, matrix, lambda i, j: totals[i * points + j].get())
        for k, value in enumerate(value for row_ in rows for value in row_):
            f.store(value, f.at(to, get["inputs"] * (k * row)))
    return module(f)
