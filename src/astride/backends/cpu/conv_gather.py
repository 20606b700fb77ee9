"""y from x and the weights, channels last: convolution, and on turned axes the transposed one and the gradient of x.

A unit is some pixels of one class of windows times one block of output channels, cut into tiles (contraction.py). Weights
are packed so that a tile reads them in order: groups, blocks, taps, input channels, and the block's output channels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..epilogue import Epilogue
from ..protocol import Array
from .cache import functions
from .contraction import AT_ONCE, NEST, Contraction, Tiles
from .conv_relation import Relation, strides
from .conv_spread import pitch, spread
from .conv_windows import classes_of
from .ending import bits, given, opened
from .ir import Function, Value, module
from .machine import Machine, machine
from .tables import Geometry
from .window import kernel_function
from .workers import address_of, run

Numbers = NDArray[np.int64]

BLOCKS, ALL_BLOCKS, OUTPUTS, A_GROUP, A_BLOCK, C_GROUP, PANEL, INNER, BY_BLOCK, HOW, CHUNKS, CLASSES = range(12)
"""Fields: blocks of one group and of all; output channels of a group; bytes from a group to the next in x, from a block
to the next in x (0 but for depthwise windows), from a group to the next in y, and of a block's weights. Units are all blocks
of one chunk of pixels after the other, or by block all chunks, INNER at a time. What tiles do with their sums; two tables."""

WINDOWS, A_FIRST, A_STEPS, C_FIRST, C_STEPS, B_FIRST, NEST_AT = 0, 3, 4, 8, 9, 13, 14
CLASS = NEST_AT + NEST
"""Numbers of a class: windows along depth, height, width; the byte of the first one in x, and from there to the next image,
depth, row and column; the same in y; the byte of its first tap in a block's weights; and its nest."""

UNIT_BYTES = 1 << 17
"""About as much of x as the pixels of one unit read."""

WRITTEN = 3 << 14
"""About as much of y as a unit's pixels have, all their channels together, where sums are short."""

CACHE = 1 << 18
"""Bytes that are surely still in the cache when they are read again."""

UNITS = 32
"""Units that a call has at least, if it has pixels enough."""

TAKEN = 1 << 18
"""Products that a thread takes at once, at least."""

WHOLE_CHUNKS = 16
"""Chunks from which a thread takes all blocks of one: else two threads write neighbouring lines of the same pixels."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A kernel's address, its geometry, how many units there are and how many a thread takes."""

    address: int
    geometry: Geometry
    units: int
    taken: int


@lru_cache(maxsize=512)
def schedule(relation: Relation, images: int, how: int = 0) -> Schedule:
    """How a relation is computed over so many images; `how` is for the tiles."""
    block, tail = relation.spec.block(machine()), relation.spec.ending(relation.parts[2], machine())
    spec = replace(relation.spec, announce=not relation.depthwise, tail=tail)
    (address,) = functions("conv_gather", spec, lambda: gather(spec, machine()), ("gather",))
    groups, inputs, outputs = relation.parts
    x_pixel = relation.inputs * spec.bytes
    table = classes_table(relation, pitch(x_pixel) if relation.spreads else x_pixel, relation.outputs * spec.bytes)
    pixels = images * table[:, WINDOWS : WINDOWS + 3].prod(1)
    join(table, images)
    blocks = relation.blocks * groups
    chunks = _chunks(pixels, _unit_pixels(relation, int(pixels.sum()) * blocks), spec.rows(machine())[0])
    panel = relation.taps * inputs * block * spec.bytes
    a_block = block * spec.bytes if relation.depthwise else 0
    if any(axis.input_dilation > 1 for axis in relation.axes):
        # Phases read the same pixels, and their results share lines: they come together, a part of each after the other.
        chunks = chunks[np.argsort(chunks[:, 1] / pixels[chunks[:, 0]], kind="stable")]
    by_block = _by_block(relation, images, len(chunks), blocks, panel)
    fields = [relation.blocks, blocks, outputs, inputs * spec.bytes, a_block, outputs * spec.bytes, panel]
    fields += [max(len(chunks) if by_block else blocks, 1), int(by_block), how]
    products = int(pixels.sum()) * block * relation.taps * inputs // max(len(chunks), 1)
    taken = max(TAKEN // max(products, 1), 1)
    if by_block and blocks >= UNITS:
        taken = len(chunks)
    elif not by_block and len(chunks) >= WHOLE_CHUNKS:
        taken = max(taken, blocks)
    return Schedule(address, Geometry(fields, [chunks, table]), len(chunks) * blocks, taken)


def _by_block(relation: Relation, images: int, chunks: int, blocks: int, panel: int) -> bool:
    """Whether the weights are what had better be read only once: x fits the cache, or is less to be read again."""
    weights = blocks * panel
    x = images * relation.inputs * relation.spec.bytes * relation.pixels[0]
    return weights > CACHE and (x <= CACHE or x * blocks < weights * chunks)


def _unit_pixels(relation: Relation, work: int) -> int:
    """Pixels of one unit, by what they read and by how many there are."""
    read = relation.inputs * relation.spec.bytes * max(relation.axes[-1].stride // relation.axes[-1].input_dilation, 1)
    most = UNIT_BYTES // max(read, 1)
    if relation.taps * relation.parts[1] < AT_ONCE:
        # Most of what is touched is y, whose pixels had better be written as a whole, not a block of channels after the other.
        most = min(most, WRITTEN // (relation.outputs * relation.spec.bytes))
    return max(min(most, work // UNITS), 1)


def _chunks(pixels: Numbers, most: int, rows: int) -> Numbers:
    """(class, first pixel, end) of every unit's pixels: whole tiles but for the last of a class."""
    step = -(-most // rows) * rows
    counts = -(-pixels // step)
    kind = np.repeat(np.arange(len(pixels)), counts)
    nth = np.arange(len(kind)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.stack([kind, nth * step, np.minimum((nth + 1) * step, pixels[kind])], 1).astype(np.int64)


def classes_table(relation: Relation, x_pixel: int, y_pixel: int) -> Numbers:
    """The table of classes, for pixels of so many bytes in x and in y."""
    spec, block = relation.spec, relation.spec.block(machine())
    _, inputs, _ = relation.parts
    axes = relation.volume
    found = [classes_of(axis) for axis in axes]
    x_steps, y_steps = strides([axis.size for axis in axes], x_pixel), strides([axis.out for axis in axes], y_pixel)
    w_steps = strides([axis.kernel for axis in axes], inputs * block * spec.bytes)
    grid = np.meshgrid(*[np.arange(len(c.taps)) for c in found], indexing="ij")
    at = [(c, g.ravel()) for c, g in zip(found, grid, strict=True)]
    table = np.zeros((len(at[0][1]), CLASS), np.int64)
    table[:, A_STEPS], table[:, C_STEPS] = x_steps[0], y_steps[0]
    for a, (c, i) in enumerate(at):
        table[:, WINDOWS + a] = c.windows[i]
        table[:, A_FIRST] += c.pixel[i] * x_steps[a + 1]
        table[:, A_STEPS + 1 + a] = c.pixel_step[i] * x_steps[a + 1]
        table[:, C_FIRST] += c.window[i] * y_steps[a + 1]
        table[:, C_STEPS + 1 + a] = c.window_step[i] * y_steps[a + 1]
        table[:, B_FIRST] += c.tap[i] * w_steps[a + 1]
    counts = [c.taps[i] for c, i in at]
    loops = [(n, c.step * x, c.skip * w) for n, c, x, w in zip(counts, found, x_steps[1:], w_steps[1:], strict=True)]
    nest = _merged([*loops, (np.full(len(table), inputs), spec.bytes, block * spec.bytes)])
    for k, (count, a_step, b_step) in enumerate(nest):
        table[:, NEST_AT + k], table[:, NEST_AT + 4 + k], table[:, NEST_AT + 8 + k] = count, a_step, b_step
    table[np.prod(counts, 0) == 0, NEST_AT : NEST_AT + 4] = 0
    return table


def join(table: Numbers, images: int) -> None:
    """Make rows, depths and images that follow each other in x and in y one row."""
    a, c, width = table[:, A_STEPS:], table[:, C_STEPS:], table[:, WINDOWS + 2]
    joined = np.ones(len(table), bool)
    for level, number in ((2, table[:, WINDOWS + 1].copy()), (1, table[:, WINDOWS].copy()), (0, np.full(len(table), images))):
        follow = (a[:, level] == width * a[:, 3]) & (c[:, level] == width * c[:, 3])
        joined &= follow | (number == 1)
        width[joined] *= number[joined]
        if level:
            table[joined, WINDOWS + level - 1] = 1


Loops = list[tuple[Numbers, int, int]]


def _merged(loops: Loops) -> Loops:
    """The same four loops with the inner ones made one where together they are one run of numbers, or the last is one step."""
    (outer, a_outer, b_outer), (inner, a_inner, b_inner) = loops[-2:]
    once = (np.ones_like(outer), 0, 0)
    if not len(inner):
        return loops
    steps = int(inner[0])
    if steps == 1:
        return [once, *loops[:-1]]
    if a_outer == steps * a_inner and b_outer == steps * b_inner:
        return [once, *loops[:-2], (outer * inner, a_inner, b_inner)]
    return loops


def gather(spec: Contraction, machine: Machine) -> str:
    """The module of `gather`: a is x, b the packed weights, c the packed bias as `given`, d is y."""
    f, tiles = kernel_function("gather"), Tiles(spec, machine)
    chunks, classes = (f.at(f.geometry, f.field(f.geometry, k)) for k in (CHUNKS, CLASSES))
    blocks, outputs, a_group, a_block, c_group, panel = (
        f.field(f.geometry, k) for k in (BLOCKS, OUTPUTS, A_GROUP, A_BLOCK, C_GROUP, PANEL)
    )
    pixels, how = Pixels(f, tiles), f.field(f.geometry, HOW)
    begin, numbers = opened(f, how, f.c)
    with f.loop(f.begin, f.end) as unit:
        outer, inner = unit // f.field(f.geometry, INNER), unit % f.field(f.geometry, INNER)
        by_block = f.field(f.geometry, BY_BLOCK).ne(0)
        chunk, block = f.at(chunks, f.select(by_block, inner, outer) * 24), f.select(by_block, outer, inner)
        group, number = block // blocks, block % blocks
        kind, first, last = (f.load("i64", f.at(chunk, 8 * k)) for k in range(3))
        row = f.at(classes, kind * (8 * CLASS))
        a = f.at(f.a, group * a_group + number * a_block)
        c = f.at(f.d, group * c_group + number * (tiles.block * spec.bytes))
        b = f.at(f.b, block * panel + f.load("i64", f.at(row, 8 * B_FIRST)))
        bias = f.at(begin, block * (tiles.block * spec.bytes))
        lanes = f.smaller(outputs - number * tiles.block, f.value("i64", tiles.block))
        pixels.compute(row, (first, last), (a, b, bias, c), lanes, (how, numbers))
    return module(f, *tiles.functions)


class Pixels:
    """Writes the loop over pixels of a class, a tile of them at a time."""

    def __init__(self, f: Function, tiles: Tiles) -> None:
        self.f, self.tiles = f, tiles
        self.a, self.c = f.scratch("ptr", tiles.rows[0]), f.scratch("ptr", tiles.rows[0])

    def compute(
        self,
        row: Value,
        pixels: tuple[Value, Value],
        places: tuple[Value, Value, Value, Value],
        lanes: Value,
        ending: tuple[Value, Value],
    ) -> None:
        """Pixels from, to of the class in this row of the table, `lanes` channels of a block: x, weights, bias and y at it.
        `ending` is for the tiles."""
        f, tiles, (first, last), (a, b, bias, c) = self.f, self.tiles, pixels, places
        walk, nest, most = Walk(f, row, first, a, c), f.at(row, 8 * NEST_AT), f.value("i64", tiles.rows[0])
        with f.loop(first, last, tiles.rows[0]) as pixel:
            with f.when(walk.straight(tiles.rows[0]) & ((pixel + tiles.rows[0]) <= last)) as bent:
                for table, places_ in zip((self.a, self.c), walk.skip(tiles.rows[0]), strict=True):
                    for nth, place in enumerate(places_):
                        f.store(place, f.at(table, nth * 8))
                with bent.otherwise(), f.loop(0, tiles.rows[0]) as k:
                    f.store(walk.a.get(), f.at(self.a, k * 8))
                    f.store(walk.c.get(), f.at(self.c, k * 8))
                    with f.when((pixel + k + 1) < last):
                        walk.advance()
            tiles.call(f, f.smaller(last - pixel, most), lanes, self.a, self.c, b, bias, nest, *ending)


class Walk:
    """From pixel to pixel of a class: columns first, then rows, depths, images. `a` and `c` are the places in x and y."""

    def __init__(self, f: Function, row: Value, first: Value, a: Value, c: Value) -> None:
        def read(start: int, count: int) -> list[Value]:
            return [f.load("i64", f.at(row, 8 * (start + k))) for k in range(count)]

        self.f = f
        self.sizes = read(WINDOWS, 3)[::-1]
        self.steps = list(zip(read(A_STEPS, 4)[::-1], read(C_STEPS, 4)[::-1], strict=True))
        (a_at,), (c_at,), rest = read(A_FIRST, 1), read(C_FIRST, 1), first
        self.counters = []
        for level, (a_step, c_step) in enumerate(self.steps):
            here = rest
            if level < 3:
                here, rest = rest % self.sizes[level], rest // self.sizes[level]
                self.counters.append(f.variable("i64", here))
            a_at, c_at = a_at + here * a_step, c_at + here * c_step
        self.a, self.c = f.variable("ptr", f.at(a, a_at)), f.variable("ptr", f.at(c, c_at))

    def straight(self, count: int) -> Value:
        """Whether the next so many pixels are of one row."""
        return (self.counters[0].get() + count) <= self.sizes[0]

    def skip(self, count: int) -> tuple[list[Value], list[Value]]:
        """The places in x and in y of the next pixels, of one row; go behind them."""
        a, c = [self.a.get()], [self.c.get()]
        for _ in range(count - 1):
            a.append(self.f.at(a[-1], self.steps[0][0]))
            c.append(self.f.at(c[-1], self.steps[0][1]))
        self.advance(count=count)
        return a, c

    def advance(self, level: int = 0, count: Value | int = 1) -> None:
        """To the next pixel, or one further of the same row; at the end of a row, or of more, to the next of those."""
        f, (a_step, c_step) = self.f, self.steps[level]
        self._move(a_step * count, c_step * count)
        if level == 3:
            return
        counter, size = self.counters[level], self.sizes[level]
        counter.set(counter.get() + count)
        with f.when(counter.get().eq(size), likely=False):
            counter.set(0)
            self._move(-(a_step * size), -(c_step * size))
            self.advance(level + 1)

    def _move(self, a: Value, c: Value) -> None:
        self.a.set(self.f.at(self.a.get(), a))
        self.c.set(self.f.at(self.c.get(), c))


def compute(
    relation: Relation,
    x: Array,
    packed: Array,
    bias: Array,
    y: Array,
    *,
    epilogue: Epilogue | None = None,
    residual: Array | None = None,
) -> None:
    """y (N, *out, outputs) from x (N, *size, inputs), contiguous and of the relation's dtype."""
    if y.size:
        how = bits(epilogue, residual)
        x = spread(x) if relation.spreads else x
        found, (begin, memory) = schedule(relation, len(x), how), given(how, bias, epilogue, residual, y)
        run(
            found.address,
            found.geometry.address,
            address_of(x),
            address_of(packed),
            begin,
            address_of(y),
            found.units,
            found.taken,
        )
        del memory
