"""The gradient of the weights, channels last: for every tap the products of what it reads with the gradient of what it gives,
straight from both arrays.

A tile's m are input channels, its n output channels and its r the pixels of a chunk that have the tap inside the input. A
unit is some chunks times one block of output channels. Units of different chunks add into sums of their own, as many as
the plan says, which are added up at the end: so neither threads nor their number show in the result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...plan import Shape, StridedAxis
from ..protocol import Array
from .cache import functions
from .contraction import NEST, Contraction, Tiles
from .conv_gather import Relation, strides, three
from .ir import Function, Value, module
from .machine import Machine, machine
from .tables import Geometry
from .window import kernel_function
from .workers import address_of, run

Numbers = NDArray[np.int64]

BLOCKS, ALL_BLOCKS, INPUTS, OUTPUTS, TAPS, A_GROUP, A_BLOCK, B_GROUP, SUMS, A_STEPS, B_STEPS = (*range(9), 9, 13)
TABLES = 17
"""Fields: blocks of one group and of all; input and output channels of a group; taps; bytes from a group to the next in a,
from a block to the next in a (0 but for depthwise windows) and from a group to the next in b; bytes of one set of sums;
bytes from one window to the next along images, depth, height and width, in a and in b. Then three tables."""

TAP = 8
"""Numbers of a tap: the windows that have it inside the input (from, to) along each axis, its byte in a for window 0, and
its byte in the sums of a block."""

CHUNK = 8
"""Numbers of a chunk: images, depths, rows and columns of b, from and to."""

CHUNK_BYTES = 1 << 17
"""About as much as a chunk has of both arrays."""

UNITS, SUMS_BYTES = 16, 1 << 22
"""Units that a call has at least, if it has chunks enough and their sums take no more than so many bytes."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A kernel's address, its geometry, how many sets of sums there are, and units."""

    address: int
    geometry: Geometry
    sums: int
    units: int


def weights_gradient(relation: Relation, a: Array, b: Array, shape: Shape) -> Array:
    """w[j] = sum_i a[i*s - p + j*d] b[i], of this shape, from contiguous a (N, *size, inputs) and b (N, *out, outputs)."""
    dw = np.zeros(shape, a.dtype)
    if not (a.size and b.size and dw.size):
        return dw
    found = schedule(relation, len(a))
    sums = np.zeros((found.sums, *relation.packed_shape), a.dtype)
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
    total = sums[0]
    for part in sums[1:]:
        total += part
    groups, inputs, outputs = relation.parts
    by_channel = total.transpose(0, 1, 4, 3, 2).reshape(groups, -1, inputs, relation.taps)[:, :outputs]
    dw[...] = (by_channel[..., ::-1] if relation.flip else by_channel).reshape(shape)
    return dw


@lru_cache(maxsize=512)
def schedule(relation: Relation, images: int) -> Schedule:
    """How the gradient is computed over so many images."""
    spec, block = relation.spec, relation.spec.block(machine())
    (address,) = functions("conv_weights", spec, lambda: correlate(spec, machine()), ("correlate",))
    groups, inputs, outputs = relation.parts
    axes = (StridedAxis(1, 1),) * (3 - len(relation.axes)) + relation.axes
    a_steps = strides([axis.size for axis in axes], relation.inputs * spec.bytes)
    b_steps = strides([axis.out for axis in axes], relation.outputs * spec.bytes)
    chunks = _chunks(relation, images)
    blocks, sums_bytes = groups * relation.blocks, math.prod(relation.packed_shape) * spec.bytes
    sums = max(min(UNITS // blocks, SUMS_BYTES // sums_bytes, len(chunks)), 1)
    bounds = np.arange(sums + 1, dtype=np.int64) * len(chunks) // sums
    fields = [
        relation.blocks,
        blocks,
        inputs,
        outputs,
        relation.taps,
        inputs * spec.bytes,
        block * spec.bytes if relation.depthwise else 0,
        outputs * spec.bytes,
        sums_bytes,
        a_steps[0],
        *[step * axis.stride for step, axis in zip(a_steps[1:], axes, strict=True)],
        *b_steps[:4],
    ]
    return Schedule(address, Geometry(fields, [bounds, chunks, _taps(relation, axes, a_steps)]), sums, sums * blocks)


def _chunks(relation: Relation, images: int) -> Numbers:
    """The table of chunks: some images, or some of one image's depths, or rows, or columns."""
    depth, height, width = three([axis.out for axis in relation.axes], 1)
    stride = three([axis.stride for axis in relation.axes], 1)
    pixel = relation.inputs * min(stride[1] * stride[2], relation.taps) + relation.outputs
    pixels = max(CHUNK_BYTES // (pixel * relation.spec.bytes), 1)
    most = []
    for size in (width, height, depth, images):
        most.append(max(min(size, pixels), 1))
        pixels //= size
    return _boxes((images, depth, height, width), most[::-1])


def _boxes(sizes: Sequence[int], most: Sequence[int]) -> Numbers:
    """(from, to) along each axis of the parts of at most these sizes that a box is cut into."""
    starts = np.meshgrid(*[np.arange(0, n, step, dtype=np.int64) for n, step in zip(sizes, most, strict=True)], indexing="ij")
    ends = [np.minimum(start + step, n) for start, n, step in zip(starts, sizes, most, strict=True)]
    return np.stack([part.ravel() for pair in zip(starts, ends, strict=True) for part in pair], 1)


def _taps(relation: Relation, axes: tuple[StridedAxis, ...], a_steps: list[int]) -> Numbers:
    """The table of taps."""
    spec, block = relation.spec, relation.spec.block(machine())
    grid = np.meshgrid(*[np.arange(axis.kernel, dtype=np.int64) for axis in axes], indexing="ij")
    table = np.zeros((relation.taps, TAP), np.int64)
    for a, (axis, k) in enumerate(zip(axes, grid, strict=True)):
        start = k.ravel() * axis.dilation - axis.pad_lo
        table[:, 2 * a] = np.clip(-(start // axis.stride), 0, axis.out)
        table[:, 2 * a + 1] = np.clip((axis.size - 1 - start) // axis.stride + 1, 0, axis.out)
        table[:, 6] += start * a_steps[a + 1]
    table[:, 7] = np.arange(relation.taps) * relation.parts[1] * block * spec.bytes
    return table


def correlate(spec: Contraction, machine: Machine) -> str:
    """The module of `correlate`: a and b are the arrays, c zeros, d the sums, laid out like packed weights."""
    f, tiles = kernel_function("correlate"), Tiles(spec, machine)
    get = [f.field(f.geometry, k) for k in range(TABLES)]
    bounds, chunks, taps = (f.at(f.geometry, f.field(f.geometry, TABLES + k)) for k in range(3))
    width = tiles.block * spec.bytes
    with f.loop(f.begin, f.end) as unit:
        sums, block = unit // get[ALL_BLOCKS], unit % get[ALL_BLOCKS]
        group, number = block // get[BLOCKS], block % get[BLOCKS]
        a = f.at(f.a, group * get[A_GROUP] + number * get[A_BLOCK])
        b = f.at(f.b, group * get[B_GROUP] + number * width)
        c = f.at(f.d, sums * get[SUMS] + block * (get[TAPS] * get[INPUTS] * width))
        lanes = f.smaller(get[OUTPUTS] - number * tiles.block, f.value("i64", tiles.block))
        place = f.at(bounds, sums * 8)
        with f.loop(f.load("i64", place), f.load("i64", f.at(place, 8))) as chunk, f.loop(0, get[TAPS]) as tap:
            ranges = _ranges(f, f.at(chunks, chunk * (8 * CHUNK)), f.at(taps, tap * (8 * TAP)))
            _tap(f, spec, tiles, get, ranges, f.at(taps, tap * (8 * TAP)), (a, b, c), lanes)
    return module(f, *tiles.functions)


def _ranges(f: Function, chunk: Value, tap: Value) -> list[tuple[Value, Value]]:
    """The windows of a chunk that have a tap inside: the first and how many along images, depth, height and width."""
    of, inside = ([f.load("i64", f.at(row, 8 * k)) for k in range(count)] for row, count in ((chunk, CHUNK), (tap, 6)))
    ranges = [(of[0], of[1] - of[0])]
    for a in range(0, 6, 2):
        first = f.larger(of[a + 2], inside[a])
        ranges.append((first, f.smaller(of[a + 3], inside[a + 1]) - first))
    return ranges


def _tap(
    f: Function,
    spec: Contraction,
    tiles: Tiles,
    get: list[Value],
    ranges: list[tuple[Value, Value]],
    tap: Value,
    arrays: tuple[Value, Value, Value],
    lanes: Value,
) -> None:
    """Add what one tap has in one chunk, tiles of input channels one after the other."""
    rows, width = tiles.rows[0], tiles.block * spec.bytes
    a_places, c_places, nest = f.scratch("ptr", rows), f.scratch("ptr", rows), f.scratch("i64", NEST)
    some = (ranges[0][1] > 0) & (ranges[1][1] > 0) & (ranges[2][1] > 0) & (ranges[3][1] > 0)
    with f.when(some, likely=True):
        a, b = f.at(arrays[0], f.load("i64", f.at(tap, 48))), arrays[1]
        for k, (first, number) in enumerate(ranges):
            a, b = f.at(a, first * get[A_STEPS + k]), f.at(b, first * get[B_STEPS + k])
            for part, value in enumerate((number, get[A_STEPS + k], get[B_STEPS + k])):
                f.store(value, f.at(nest, 8 * (4 * part + k)))
        c = f.at(arrays[2], f.load("i64", f.at(tap, 56)))
        with f.loop(0, get[INPUTS], rows) as channel:
            rest = f.smaller(get[INPUTS] - channel, f.value("i64", rows))
            with f.loop(0, rows) as m:
                here = channel + f.smaller(m, rest - 1)
                f.store(f.at(a, here * spec.bytes), f.at(a_places, m * 8))
                f.store(f.at(c, here * width), f.at(c_places, m * 8))
            whole = f.value("i64", 1)
            tiles.call(f, rest, lanes, a_places, c_places, b, f.c, nest, whole)
