"""The gradient of the weights, channels last: for every tap the products of what it reads with the gradient of what it gives,
straight from both arrays.

A tile's m are input channels, or taps and input channels where there are few of these, its n output channels and its r the
pixels of a chunk that have the taps inside the input. A unit is some chunks times one block of output channels. Units of
different chunks add into sums of their own, as many as the plan says, which are added up at the end: so neither threads nor
their number show in the result.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...plan import Shape, StridedAxis
from .. import memory
from ..protocol import Array
from .cache import functions
from .contraction import NEST, Contraction, Tiles
from .conv_relation import Relation, strides, three
from .conv_unpack import unpack
from .conv_windows import classes_of
from .cuts import bounds_of
from .ir import Function, Value, module
from .ir_types import vector
from .machine import Machine, machine
from .tables import Geometry
from .window import kernel_function
from .workers import address_of, run

Numbers = NDArray[np.int64]

BLOCKS, ALL_BLOCKS, OUTPUTS, ENTRIES, A_GROUP, A_BLOCK, B_GROUP, PANEL, SUMS, A_STEPS, B_STEPS = (*range(9), 9, 13)
TABLES = 17
"""Fields: blocks of one group and of all; output channels of a group; entries; bytes from a group to the next in a, from a block
to the next in a (0 but for depthwise windows) and from a group to the next in b; bytes of a block's sums and of one set of sums;
bytes from one window to the next along images, depth, height and width, in a and in b. Then four tables."""

ENTRY = 10
"""Numbers of an entry: the windows it is about (from, to) along each axis, its byte in a for window 0 and in the sums of a
block, its first place and how many it has. A place is two numbers: bytes in a and in the sums."""

CHUNK = 8
"""Numbers of a chunk: images, depths, rows and columns of b, from and to."""

CHUNK_BYTES, CHUNK_PIXELS = 1 << 17, 512
"""About as much as a chunk has of both arrays, and pixels of b that it has at least: sums are read and written once a chunk."""

WHOLE_BYTES = 1 << 21
"""About as much as a chunk of whole images has at most, where windows at edges are products of their own: those are short."""

NARROW = 3
"""How many times as high as wide windows must be for their columns to be the inner loop."""

UNITS, SUMS_BYTES = 8, 1 << 22
"""Units that a call has at least, if it has chunks enough and their sums take no more than so many bytes: every set of sums is
made, added to and added up, which is worth a twentieth of a product of a few hundred pixels."""

MERGED_PLACES, MERGED_NUMBERS = 1 << 12, 1 << 16
"""Places of one entry, of all taps together, that are worth a table; and of all entries."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A kernel's address, its geometry, how many sets of sums there are, and units."""

    address: int
    geometry: Geometry
    sums: int
    units: int


def weights_gradient(relation: Relation, a: Array, b: Array, shape: Shape) -> Array:
    """w[j] = sum_i a[i*s - p + j*d] b[i], of this shape, from contiguous a (N, *size, inputs) and b (N, *out, outputs)."""
    if not (a.size and b.size and math.prod(shape)):
        return np.zeros(shape, a.dtype)
    dw = memory.empty(shape, a.dtype)
    found = schedule(relation, len(a))
    sums = memory.empty((found.sums, *relation.packed_shape), a.dtype)
    zeros = np.zeros(relation.packed_shape[-1], a.dtype)
    run(
        found.address,
        found.geometry.address,
        address_of(a),
        address_of(b),
        address_of(zeros),
        address_of(sums),
        found.units,
        1,
    )
    unpack(relation, sums, dw)
    return dw


@lru_cache(maxsize=512)
def schedule(relation: Relation, images: int) -> Schedule:
    """How the gradient is computed over so many images."""
    spec, block = relation.spec, relation.spec.block(machine())
    (address,) = functions("conv_weights", spec, lambda: correlate(spec, machine()), ("correlate",))
    groups, inputs, outputs = relation.parts
    axes = relation.volume
    a_steps = strides([axis.size for axis in axes], relation.inputs * spec.bytes)
    b_steps = strides([axis.out for axis in axes], relation.outputs * spec.bytes)
    chunks = _chunks(relation, images)
    blocks, sums_bytes = groups * relation.blocks, math.prod(relation.packed_shape) * spec.bytes
    sums = max(min(UNITS // blocks, SUMS_BYTES // sums_bytes, len(chunks)), 1)
    bounds = bounds_of(len(chunks), sums)
    entries, places = entries_of(relation, axes, a_steps, inputs, few_inputs(relation))
    fields = [
        relation.blocks,
        blocks,
        outputs,
        len(entries),
        inputs * spec.bytes,
        block * spec.bytes if relation.depthwise else 0,
        outputs * spec.bytes,
        relation.taps * inputs * block * spec.bytes,
        sums_bytes,
        a_steps[0],
        *[step * axis.stride for step, axis in zip(a_steps[1:], axes, strict=True)],
        *b_steps[:4],
    ]
    return Schedule(address, Geometry(fields, [bounds, chunks, entries, places]), sums, sums * blocks)


def _chunks(relation: Relation, images: int) -> Numbers:
    """The table of chunks: some images, or some of one image's depths, or rows, or columns."""
    depth, height, width = three([axis.out for axis in relation.axes], 1)
    stride = three([axis.stride for axis in relation.axes], 1)
    pixel = relation.inputs * min(stride[1] * stride[2], relation.taps) + relation.outputs
    pixels = max(CHUNK_BYTES // (pixel * relation.spec.bytes), CHUNK_PIXELS)
    together = WHOLE_BYTES // (pixel * relation.spec.bytes * depth * height * width)
    if together > 1 and few_inputs(relation):
        sets = max(UNITS // (relation.parts[0] * relation.blocks), 1)
        parts = -(-images // (together * sets)) * sets
        return _boxes((images, depth, height, width), (-(-images // parts), depth, height, width))
    most = []
    for size in (width, height, depth, images):
        parts = -(-size // max(min(size, pixels), 1))
        most.append(-(-size // parts))
        pixels //= size
    return _boxes((images, depth, height, width), most[::-1])


def _boxes(sizes: Sequence[int], most: Sequence[int]) -> Numbers:
    """(from, to) along each axis of the parts of at most these sizes that a box is cut into."""
    starts = np.meshgrid(*[np.arange(0, n, step, dtype=np.int64) for n, step in zip(sizes, most, strict=True)], indexing="ij")
    ends = [np.minimum(start + step, n) for start, n, step in zip(starts, sizes, most, strict=True)]
    return np.stack([part.ravel() for pair in zip(starts, ends, strict=True) for part in pair], 1)


@lru_cache(maxsize=512)
def few_inputs(relation: Relation) -> bool:
    """Whether input channels are too few for whole tiles, and taps not too many to lie in tables."""
    inputs = relation.parts[1]
    if inputs >= relation.spec.rows(machine())[0] or relation.taps * inputs > MERGED_PLACES:
        return False
    return math.prod(int(classes_of(axis).taps.sum()) for axis in relation.axes) * inputs <= MERGED_NUMBERS


def entries_of(
    relation: Relation, axes: Sequence[StridedAxis], a_steps: Sequence[int], channels: int, merged: bool
) -> tuple[Numbers, Numbers]:
    """The tables of entries and places. An entry is one tap with so many input channels, and all windows that have it inside; or,
    `merged`, all taps and channels of some windows that have the same taps inside."""
    taps, inputs = relation.taps, relation.parts[1]
    grid = np.stack([k.ravel() for k in np.meshgrid(*[np.arange(axis.kernel) for axis in axes], indexing="ij")])
    start = sum((k * axis.dilation - axis.pad_lo) * step for k, axis, step in zip(grid, axes, a_steps[1:], strict=False))
    c_step = inputs * relation.spec.block(machine()) * relation.spec.bytes
    of_channels = np.arange(channels)[:, None] * [relation.spec.bytes, c_step // inputs]
    if not merged:
        table = np.zeros((taps, ENTRY), np.int64)
        for a, (axis, k) in enumerate(zip(axes, grid, strict=True)):
            first = k * axis.dilation - axis.pad_lo
            table[:, 2 * a] = np.clip(-(first // axis.stride), 0, axis.out)
            table[:, 2 * a + 1] = np.clip((axis.size - 1 - first) // axis.stride + 1, 0, axis.out)
        table[:, 6], table[:, 7], table[:, 9] = start, np.arange(taps) * c_step, channels
        return table, of_channels.astype(np.int64)
    rows: list[list[int]] = []
    places: list[Numbers] = [np.zeros((0, 2), np.int64)]
    count = 0
    for windows, inside in _regions(axes):
        number = np.ravel_multi_index(tuple(grid[:, inside]), [axis.kernel for axis in axes])
        place = np.stack([start[inside], number * c_step], 1)[:, None] + of_channels
        rows.append([*windows, 0, 0, count, len(inside) * inputs])
        places.append(place.reshape(-1, 2).astype(np.int64))
        count += len(inside) * inputs
    return np.array(rows, np.int64).reshape(-1, ENTRY), np.concatenate(places).astype(np.int64)


def _regions(axes: Sequence[StridedAxis]) -> list[tuple[list[int], Numbers]]:
    """Boxes of windows that have the same taps inside: (from, to) along each axis, and the numbers of those taps."""
    found = [classes_of(axis) for axis in axes]
    regions = []
    for which in itertools.product(*[range(len(c.taps)) for c in found]):
        parts = [(int(c.window[k]), int(c.windows[k]), int(c.tap[k]), int(c.taps[k])) for c, k in zip(found, which, strict=True)]
        inside = np.indices([taps for *_, taps in parts]).reshape(3, -1) + np.array([tap for *_, tap, _ in parts])[:, None]
        if inside.size:
            numbers = np.ravel_multi_index(tuple(inside), [axis.kernel for axis in axes])
            regions.append(([n for first, count, *_ in parts for n in (first, first + count)], numbers))
    return regions


def correlate(spec: Contraction, machine: Machine) -> str:
    """The module of `correlate`: a and b are the arrays, c zeros, d the sums, laid out like packed weights."""
    f, tiles = kernel_function("correlate"), Tiles(spec, machine)
    get = [f.field(f.geometry, k) for k in range(TABLES)]
    bounds, chunks, entries, places = (f.at(f.geometry, f.field(f.geometry, TABLES + k)) for k in range(4))
    width = tiles.block * spec.bytes
    steps = [get[A_STEPS : A_STEPS + 4], get[B_STEPS : B_STEPS + 4]]
    with f.loop(f.begin, f.end) as unit:
        sums, block = unit // get[ALL_BLOCKS], unit % get[ALL_BLOCKS]
        group, number = block // get[BLOCKS], block % get[BLOCKS]
        a = f.at(f.a, group * get[A_GROUP] + number * get[A_BLOCK])
        b = f.at(f.b, group * get[B_GROUP] + number * width)
        c = f.at(f.d, sums * get[SUMS] + block * get[PANEL])
        lanes = f.smaller(get[OUTPUTS] - number * tiles.block, f.value("i64", tiles.block))
        clear(f, spec, tiles.lanes, c, get[PANEL])
        place = f.at(bounds, sums * 8)
        with f.loop(f.load("i64", place), f.load("i64", f.at(place, 8))) as chunk, f.loop(0, get[ENTRIES]) as entry:
            row = f.at(entries, entry * (8 * ENTRY))
            ranges = box_ranges(f, f.at(chunks, chunk * (8 * CHUNK)), row)
            count = f.load("i64", f.at(row, 8 * (ENTRY - 1)))
            add_entry(f, tiles, steps, ranges, row, places, (a, b, c), lanes, f.c, count)
    return module(f, *tiles.functions)


def clear(f: Function, spec: Contraction, width: int, sums: Value, size: Value) -> None:
    """Make so many bytes of sums, which are whole vectors, zero: here, where they stay in the cache."""
    with f.loop(0, size, width * spec.bytes) as at:
        f.store(f.value(vector(width, spec.kind), 0), f.at(sums, at))


def box_ranges(f: Function, chunk: Value, entry: Value) -> list[tuple[Value, Value]]:
    """The windows of a chunk that an entry is about: the first and how many along images, depth, height and width."""
    of, inside = ([f.load("i64", f.at(row, 8 * k)) for k in range(count)] for row, count in ((chunk, CHUNK), (entry, 6)))
    ranges = [(of[0], of[1] - of[0])]
    for a in range(0, 6, 2):
        first = f.larger(of[a + 2], inside[a])
        ranges.append((first, f.smaller(of[a + 3], inside[a + 1]) - first))
    return ranges


def add_entry(
    f: Function,
    tiles: Tiles,
    steps: list[list[Value]],
    ranges: list[tuple[Value, Value]],
    entry: Value,
    places: Value,
    arrays: tuple[Value, Value, Value],
    lanes: Value,
    zeros: Value,
    count: Value,
) -> None:
    """Add what one entry has in one chunk, tiles of its first `count` places one after the other."""
    rows = tiles.rows[0]
    a_places, c_places, nest = f.scratch("ptr", rows), f.scratch("ptr", rows), f.scratch("i64", NEST)
    some = (ranges[0][1] > 0) & (ranges[1][1] > 0) & (ranges[2][1] > 0) & (ranges[3][1] > 0)
    with f.when(some, likely=True):
        a_start, c_start, begin = (f.load("i64", f.at(entry, 8 * k)) for k in range(6, ENTRY - 1))
        a, b = f.at(arrays[0], a_start), arrays[1]
        for k, (first, _) in enumerate(ranges):
            a, b = f.at(a, first * steps[0][k]), f.at(b, first * steps[1][k])
        loops = [(number, steps[0][k], steps[1][k]) for k, (_, number) in enumerate(ranges)]
        narrow = (loops[3][0] * NARROW) < loops[2][0]  # the columns at an edge: better down them than along
        last = [[f.select(narrow, v, u) for u, v in zip(loops[k], loops[5 - k], strict=True)] for k in (2, 3)]
        for k, loop in enumerate([*loops[:2], *last]):
            for part, value in enumerate(loop):
                f.store(value, f.at(nest, 8 * (4 * part + k)))
        c = f.at(arrays[2], c_start)
        with f.loop(0, count, rows) as done:
            rest = f.smaller(count - done, f.value("i64", rows))
            with f.loop(0, rows) as m:
                place = f.at(places, (begin + done + f.smaller(m, rest - 1)) * 16)
                f.store(f.at(a, f.load("i64", place)), f.at(a_places, m * 8))
                f.store(f.at(c, f.load("i64", f.at(place, 8))), f.at(c_places, m * 8))
            whole = f.value("i64", 1)
            tiles.call(f, rest, lanes, a_places, c_places, b, zeros, nest, whole, zeros)
