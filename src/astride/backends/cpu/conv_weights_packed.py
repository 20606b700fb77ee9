"""The gradient of the weights from packed chunks: for arrays with channels first, which are never moved as a whole, and for those
with channels last whose pixels lie so far apart that they share few places of the cache.

A unit is some chunks times some blocks of one group's output channels. It packs a chunk's dy block by block and x some channels
at a time, both with channels last and no gaps, and goes on as conv_weights.py does. What is packed stays in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ...plan import Shape
from .. import memory
from ..protocol import Array
from . import slots
from .cache import functions
from .contraction import Contraction, Tiles
from .conv_move import band_copier, mover
from .conv_relation import Relation, strides
from .conv_unpack import unpack
from .conv_weights import CHUNK, ENTRY, SUMS_BYTES, UNITS, Numbers, add_entry, box_ranges, clear, entries_of, few_inputs
from .cuts import at_most, bounds_of
from .ir import Function, Value, module
from .machine import Machine, machine
from .slots import MOST
from .tables import Geometry
from .window import kernel_function
from .workers import address_of, run

FIELDS = (
    *("parts", "part", "blocks", "groups", "inputs", "outputs", "entries", "together", "merged", "panel", "sums", "channel"),
    *("a0", "a1", "a2", "a3", "b0", "b1", "b2", "b3", "x_channel", "x_row", "x_image", "x_outer", "x_inner", "x_step", "x_pixel"),
    *("y_channel", "y_row", "y_image", "y_outer", "y_inner", "y_step", "y_pixel", "y_block", "x_at", "slot"),
)
"""Fields: parts that a group's blocks are taken in, blocks of one, blocks of a group, groups, channels of a group, entries, input
channels that are packed together, whether an entry has all of these and all taps; bytes of a block's sums, of one set, and of an
input channel of them; bytes from one window to the next in packed x and dy. Then of x and of dy: bytes from one channel to the
next, from one row of what is packed, image and outermost step to the next; pixels of such a step, and bytes of it and of a pixel
when packed. Then the bytes of a packed block of dy, where packed x begins, the bytes of a thread's scratch; and four tables."""

SLAB = CHUNK + 4
"""Numbers of a chunk: as in conv_weights.py, then its first pixel of x along the outermost axis and how many it has there, and
the same of dy."""

PIXELS, FEW_PIXELS, PACKED_BYTES = 512, 256, 1 << 17
"""Pixels of dy that a chunk has at least where there are as many; fewer where scratch would leave the second cache; and bytes
of a packed block that it has at most: sums are read and written once a chunk, and what chunks share of x is packed again."""

NEAR = 1 << 20
"""Bytes of scratch that stay in the second cache."""

BLOCKS_BYTES, MOST_BLOCKS, FEWEST_BLOCKS = 1 << 19, 8, 4
"""Bytes of sums that a unit works on at once; blocks it has at most, and at least where windows are single pixels."""

ZEROS = slots.FIRST_FREE
"""The word of a call's block with the address of zeros."""

ALIAS = 1024
"""Bytes from pixel to pixel of which multiples leave few places of the cache."""


class Cut(NamedTuple):
    """How arrays are cut: the outermost axis that has more than one step, chunks, the steps of x and y a chunk has at most, and
    the input channels packed together."""

    axis: int
    chunks: Numbers
    x_most: int
    y_most: int
    together: int
    merged: bool


@dataclass(frozen=True, slots=True)
class Schedule:
    """A kernel's address, its geometry, how many sets of sums there are, units, and the scratch of a thread."""

    address: int
    geometry: Geometry
    sums: int
    units: int
    slot: int


def takes(relation: Relation, images: int) -> bool:
    """Whether chunks fit into scratch memory."""
    return not relation.depthwise and images > 0 and _slot(relation, _cut(relation, images)) <= MOST


def weights_gradient(relation: Relation, a: Array, b: Array, shape: Shape, first: bool) -> Array:
    """As conv_weights.weights_gradient, from contiguous arrays whose channels are `first`, or last."""
    if not (a.size and b.size and math.prod(shape)):
        return np.zeros(shape, a.dtype)
    dw = memory.empty(shape, a.dtype)
    found = schedule(relation, len(a), first)
    sums = memory.empty((found.sums, *relation.packed_shape), a.dtype)
    zeros = np.zeros(relation.packed_shape[-1], a.dtype)
    block, scratch = slots.block(found.slot, found.units, address_of(zeros))
    places = (address_of(a), address_of(b), address_of(block), address_of(sums))
    run(found.address, found.geometry.address, *places, found.units, 1)
    unpack(relation, sums, dw)
    del scratch
    return dw


def _outermost(relation: Relation) -> tuple[int, int, int]:
    """The first axis that is more than one step long, and the pixels of x and y in one of its steps."""
    axes = relation.volume
    axis = next((k for k, one in enumerate(axes) if one.size > 1 or one.out > 1), 2)
    inner = axes[axis + 1 :]
    return axis, math.prod(one.size for one in inner), math.prod(one.out for one in inner)


@lru_cache(maxsize=512)
def _cut(relation: Relation, images: int) -> Cut:
    """Chunks as large as leave enough of them for all units."""
    sets = -(-UNITS // (relation.parts[0] * -(-relation.blocks // _part(relation))))
    pixels = images * relation.pixels[1] // sets
    cut = _cut_into(relation, images, max(pixels, PIXELS))
    return cut if _slot(relation, cut) <= NEAR else _cut_into(relation, images, FEW_PIXELS)


def _cut_into(relation: Relation, images: int, pixels: int) -> Cut:
    """Chunks of about so many pixels."""
    axis, _, y_inner = _outermost(relation)
    of, rows = relation.volume[axis], relation.spec.rows(machine())[0]
    block = relation.spec.block(machine()) * relation.spec.bytes
    wanted = max(min(pixels, PACKED_BYTES // block) // max(y_inner, 1), 1)
    together_images = max(min(wanted // max(of.out, 1), images), 1)
    parts = -(-of.out // min(wanted, of.out))
    step = -(-of.out // parts)
    rows_of = []
    for image in range(0, images, together_images):
        for start in range(0, of.out, step):
            end = min(start + step, of.out)
            low = min(max(start * of.stride - of.pad_lo, 0), of.size)
            high = max(min((end - 1) * of.stride - of.pad_lo + (of.kernel - 1) * of.dilation + 1, of.size), low)
            box = [0, 1] * axis + [start, end] + [n for one in relation.volume[axis + 1 :] for n in (0, one.out)]
            rows_of.append([image, min(image + together_images, images), *box, low, high - low, start, end - start])
    chunks = np.array(rows_of, np.int64)
    merged = few_inputs(relation)
    together = relation.parts[1] if merged else min(4 * rows, relation.parts[1])
    return Cut(axis, chunks, int(chunks[:, CHUNK + 1].max()), step, together, merged)


def _sizes(relation: Relation, cut: Cut) -> tuple[int, int, int, int]:
    """Bytes of a packed pixel of x, of a chunk's packed x, of a packed block of dy, and the images of a chunk."""
    _, x_inner, y_inner = _outermost(relation)
    images = int((cut.chunks[:, 1] - cut.chunks[:, 0]).max())
    pixel = cut.together * relation.spec.bytes
    x = images * cut.x_most * x_inner * pixel
    y = images * cut.y_most * y_inner * relation.spec.block(machine()) * relation.spec.bytes
    return pixel, x + 64, -(-y // 64) * 64, images


def _part(relation: Relation) -> int:
    """Blocks of one unit."""
    panel = relation.taps * relation.parts[1] * relation.spec.block(machine()) * relation.spec.bytes
    most = max(min(BLOCKS_BYTES // panel, MOST_BLOCKS), FEWEST_BLOCKS if relation.taps == 1 else 1)
    return at_most(relation.blocks, 1, most)[0]


def _slot(relation: Relation, cut: Cut) -> int:
    """Bytes of scratch."""
    _, x, y, _ = _sizes(relation, cut)
    return y * _part(relation) + x + 64


@lru_cache(maxsize=512)
def schedule(relation: Relation, images: int, first: bool) -> Schedule:
    """How the gradient is computed over so many images."""
    spec, block, cut = relation.spec, relation.spec.block(machine()), _cut(relation, images)
    (address,) = functions("conv_weights_packed", (spec, first), lambda: correlate(spec, machine(), first), ("correlate",))
    groups, inputs, outputs = relation.parts
    axes, (_, x_inner, y_inner) = relation.volume, _outermost(relation)
    pixel, _, y_block, _ = _sizes(relation, cut)
    a_steps, b_steps = strides([axis.size for axis in axes], pixel), strides([axis.out for axis in axes], block * spec.bytes)
    a_steps[0], b_steps[0] = cut.x_most * x_inner * pixel, cut.y_most * y_inner * block * spec.bytes
    entries, places = entries_of(relation, axes, a_steps, min(cut.together, inputs), cut.merged)
    part = _part(relation)
    parts, sums_bytes = -(-relation.blocks // part), math.prod(relation.packed_shape) * spec.bytes
    sums = max(min(-(-UNITS // (groups * parts)), SUMS_BYTES // sums_bytes, len(cut.chunks)), 1)
    bounds = bounds_of(len(cut.chunks), sums)
    fields = [parts, part, relation.blocks, groups, inputs, outputs, len(entries), cut.together, int(cut.merged)]
    fields += [relation.taps * inputs * block * spec.bytes, sums_bytes, block * spec.bytes]
    fields += [a_steps[0], *[step * axis.stride for step, axis in zip(a_steps[1:], axes, strict=False)], *b_steps[:4]]
    fields += _side(relation.inputs, [axis.size for axis in axes], x_inner, spec.bytes, pixel, first)
    fields += _side(relation.outputs, [axis.out for axis in axes], y_inner, spec.bytes, block * spec.bytes, first)
    slot = _slot(relation, cut)
    fields += [y_block, y_block * part, slot]
    return Schedule(address, Geometry(fields, [bounds, cut.chunks, entries, places]), sums, sums * groups * parts, slot)


def _side(channels: int, sizes: Sequence[int], inner: int, bytes_: int, pixel: int, first: bool) -> list[int]:
    """The fields of one array that is packed into pixels of so many bytes."""
    pixels = math.prod(sizes)
    of_channel, row, of_pixel = (pixels * bytes_,) * 2 + (bytes_,) if first else (bytes_, channels * bytes_, channels * bytes_)
    return [of_channel, row, channels * pixels * bytes_, inner * of_pixel, inner, inner * pixel, pixel]


def correlate(spec: Contraction, machine: Machine, first: bool) -> str:
    """The module of `correlate`: a and b are the arrays, c the scratch block, d the sums."""
    f, tiles = kernel_function("correlate"), Tiles(spec, machine)
    get = {name: f.field(f.geometry, k) for k, name in enumerate(FIELDS)}
    bounds, chunks, entries, places = (f.at(f.geometry, f.field(f.geometry, len(FIELDS) + k)) for k in range(4))
    block, packer = tiles.block, mover(spec.kind, machine) if first else band_copier(spec.kind, machine, "move")
    number, scratch = slots.slot(f, f.c, get["slot"])
    zeros, x_at = f.load("ptr", f.at(f.c, ZEROS * 8)), f.at(scratch, get["x_at"])
    steps = [[get[f"{side}{k}"] for k in range(4)] for side in "ab"]
    with f.loop(f.begin, f.end) as unit:
        rest, start = unit // get["parts"], unit % get["parts"] * get["part"]
        group, sums = rest % get["groups"], rest // get["groups"]
        end = f.smaller(start + get["part"], get["blocks"])
        c = f.at(f.d, sums * get["sums"] + group * get["blocks"] * get["panel"])
        clear(f, spec, tiles.lanes, f.at(c, start * get["panel"]), (end - start) * get["panel"])
        place = f.at(bounds, sums * 8)
        with f.loop(f.load("i64", place), f.load("i64", f.at(place, 8))) as index:
            chunk = f.at(chunks, index * (8 * SLAB))
            x, y = _Side(f, f.a, "x", get, chunk, CHUNK, steps[0][0]), _Side(f, f.b, "y", get, chunk, CHUNK + 2, steps[1][0])

            def packed_block(one: Value) -> tuple[Value, Value]:
                left = f.smaller(get["outputs"] - one * block, f.value("i64", block))
                return f.at(scratch, (one - start) * get["y_block"]), left

            with f.loop(start, end) as one:
                there, lanes = packed_block(one)
                y.pack(group * get["outputs"] + one * block, lanes, there)
            with f.loop(0, get["inputs"], get["together"]) as channel:
                channels = f.smaller(get["inputs"] - channel, get["together"])
                x.pack(group * get["inputs"] + channel, channels, x_at)
                with f.loop(start, end) as one, f.loop(0, get["entries"]) as entry:
                    there, lanes = packed_block(one)
                    sum_ = f.at(c, one * get["panel"] + channel * get["channel"])
                    row = f.at(entries, entry * (8 * ENTRY))
                    count = f.select(get["merged"].ne(0), f.load("i64", f.at(row, 8 * (ENTRY - 1))), channels)
                    arrays = (x.origin(x_at), y.origin(there), sum_)
                    add_entry(f, tiles, steps, box_ranges(f, chunk, row), row, places, arrays, lanes, zeros, count)
    slots.give_back(f, f.c, number)
    return module(f, slots.taker(), packer, *tiles.functions)


class _Side:
    """One of the two arrays, and the part of it that a chunk packs: images, and steps of the outermost axis."""

    def __init__(self, f: Function, array: Value, name: str, get: dict[str, Value], chunk: Value, at: int, image: Value) -> None:
        self.f, self.array, self.get, self.name, self.image_step = f, array, get, name, image
        self.image, self.last = (f.load("i64", f.at(chunk, 8 * k)) for k in range(2))
        self.low, self.steps = (f.load("i64", f.at(chunk, 8 * (at + k))) for k in range(2))

    def _of(self, word: str) -> Value:
        return self.get[f"{self.name}_{word}"]

    def pack(self, channel: Value, channels: Value, there: Value) -> None:
        """Pack some channels of all the chunk's pixels."""
        f = self.f
        start = f.at(self.array, channel * self._of("channel") + self.low * self._of("outer"))
        pixels, room = self.steps * self._of("inner"), f.value("i64", int(self.name == "x"))  # behind x there is room
        with f.loop(self.image, self.last) as image:
            source = f.at(start, image * self._of("image"))
            place = f.at(there, (image - self.image) * self.image_step)
            f.call("void", "move", source, place, channels, pixels, self._of("row"), self._of("pixel"), room)

    def origin(self, there: Value) -> Value:
        """Where packed numbers would begin, were all of the array packed."""
        return self.f.at(there, -(self.image * self.image_step + self.low * self._of("step")))
