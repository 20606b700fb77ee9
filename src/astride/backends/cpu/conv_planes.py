"""Windows of one pixel where the channels come first: planes of pixels are rows of a matrix already.

The roles are swapped: a tile's m are output channels, whose weights are rows of their own, its n neighbouring pixels, and its r
input channels. Where many tiles read them, a unit's pixels are copied, a block of them after the other, so that tiles read them
in order; planes are not transposed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ..epilogue import Epilogue
from ..protocol import Array
from . import slots
from .cache import functions
from .contraction import NEST, Contraction, Tiles
from .conv_gather import TAKEN, UNITS
from .conv_layout import channels_last
from .conv_relation import Relation
from .conv_spread import ALIAS, pitch, spread
from .conv_weights_matrix import packer
from .cuts import evenly
from .ending import ADD, NUMBERS, bits, given, opened, words
from .ir import module
from .kept import kept
from .machine import Machine, machine
from .tables import Geometry
from .window import kernel_function
from .workers import address_of, run

FIELDS = (
    *("groups", "pixels", "parts", "part", "channels", "parts_of_channels", "part_of_channels", "inputs"),
    *("w_group", "w_output", "block", "slot", "how"),
)
"""Fields: groups; pixels of a plane, the parts they are taken in and how many one has; the same of a group's output channels;
input channels of a group; bytes in w from a group and an output channel to the next; of a block of pixels that are copied, and of
a thread's scratch, 0 where none are; what tiles do with their sums: y may have the bias already."""

ZEROS = slots.FIRST_FREE
"""The word of a call's block with the address of what sums begin with; those behind it are the numbers of ending.py."""

PANEL = 3 << 17
"""Bytes of the pixels that a unit reads, about: they stay in the second cache."""

MANY, LARGE = 96, 1 << 23
"""Output channels from which pixels are copied, or fewer where planes share places of the cache or x has so many bytes: a copy
reads planes one after the other."""

FRESH = 1 << 20
"""Bytes of y from which its lines are asked for before they are written: they are no longer in the cache."""

FEWER = 8
"""Units that a call has at least where output channels are taken in parts, each of which copies the same pixels."""

MOST = 1 << 20
"""Bytes of a block that is copied, at most."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A kernel's address, its geometry, the units of one image and how many a thread takes, the bytes of a thread's scratch, and
    what sums begin with."""

    address: int
    geometry: Geometry
    units: int
    taken: int
    slot: int
    zeros: Array


@lru_cache(maxsize=512)
def takes(relation: Relation, images: int) -> bool:
    """Whether every window is one pixel."""
    return relation.single


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
    """y (N, outputs, *size) from x (N, inputs, *size), all contiguous and of the relation's dtype."""
    if not y.size:
        return
    if x.shape[2:] != y.shape[2:]:
        read = tuple(slice(0, axis.out * axis.stride, axis.stride) for axis in relation.axes)
        x = np.ascontiguousarray(x[:, :, *read])
    if b is not None:
        y[...] = b.reshape(-1, *[1] * len(relation.axes))
    how = ADD * (b is not None) | bits(epilogue, residual)
    found = schedule(relation, len(x), how)
    units = found.units * len(x)
    if found.slot:
        numbers = (address_of(found.zeros), *words(epilogue, residual, y))
        block, memory = slots.block(found.slot, -(-units // found.taken), *numbers)
        begin = address_of(block)
    else:
        begin, memory = given(how, found.zeros, epilogue, residual, y)
    rows = kept(w, ("planes", relation.parts, relation.swapped), lambda: _rows(relation, w))
    run(found.address, found.geometry.address, address_of(rows), address_of(x), begin, address_of(y), units, found.taken)
    del memory


def _rows(relation: Relation, w: Array) -> Array:
    """The weights as (groups, outputs, inputs), rows of input channels `pitch` apart."""
    groups, inputs, outputs = relation.parts
    rows = channels_last(w.reshape(groups, inputs, outputs)) if relation.swapped else w.reshape(groups, outputs, inputs)
    return spread(rows) if pitch(inputs * rows.itemsize) > inputs * rows.itemsize else rows


@lru_cache(maxsize=512)
def schedule(relation: Relation, images: int, how: int) -> Schedule:
    """How a relation is computed over so many images; `how` is for the tiles."""
    block, rows = relation.spec.block(machine()), relation.spec.rows(machine())[0]
    pixels = relation.pixels[1]
    announce = images * relation.outputs * pixels * relation.spec.bytes >= FRESH
    spec = replace(relation.spec, announce=announce, tail=relation.spec.ending(pixels, machine()))
    (address,) = functions("conv_planes", spec, lambda: planes(spec, machine()), ("planes",))
    groups, inputs, outputs = relation.parts
    column = inputs * block * spec.bytes
    far = pixels * spec.bytes % ALIAS == 0 or images * relation.inputs * pixels * spec.bytes >= LARGE
    packs = column <= MOST and outputs >= (2 * rows if far else MANY)
    blocks = -(-pixels // block)
    wanted = max(UNITS // max(images * groups, 1), -(-blocks // max(PANEL // column, 1)))
    part, parts = evenly(pixels, block, wanted)
    wanted = (FEWER if packs else UNITS) // max(images * groups * parts, 1)
    channels, parts_of_channels = evenly(outputs, rows, wanted)
    w_output = pitch(inputs * spec.bytes)
    fields = [groups, pixels, parts, part, outputs, parts_of_channels, channels, inputs]
    slot = part // block * column + 64 if packs else 0
    fields += [w_output * outputs, w_output, column, slot, how]
    taken = max(TAKEN // max(part * channels * inputs, 1), 1)
    zeros = np.zeros(block, relation.dtype)
    return Schedule(address, Geometry(fields, []), groups * parts * parts_of_channels, taken, slot, zeros)


def planes(spec: Contraction, machine: Machine) -> str:
    """The module of `planes`: a is w, b is x, c the call's block, or zeros as `given` where no pixels are copied, d is y; units
    are (image, group, part of pixels, part of channels)."""
    f, tiles = kernel_function("planes"), Tiles(spec, machine)
    get = {name: f.field(f.geometry, k) for k, name in enumerate(FIELDS)}
    rows, block, pixel = tiles.rows[0], f.value("i64", tiles.block), spec.bytes
    plane, packs = get["pixels"] * pixel, get["slot"].ne(0)
    a_places, c_places, nest = f.scratch("ptr", rows), f.scratch("ptr", rows), f.scratch("i64", NEST)
    number, memory, place = f.variable("i64", 0), f.variable("ptr", f.c), f.variable("ptr", f.c)
    with f.when(packs):
        taken, there = slots.slot(f, f.c, get["slot"])
        number.set(taken)
        memory.set(there)
        place.set(f.at(f.c, 8 * ZEROS))
    scratch, (begin, numbers) = memory.get(), opened(f, f.select(packs, NUMBERS, get["how"]), place.get())
    one, width = f.value("i64", 1), f.value("i64", tiles.block * pixel)
    row = f.select(packs, width, plane)
    for k, value in enumerate([one, one, one, get["inputs"], one, one, one, f.value("i64", pixel), one, one, one, row]):
        f.store(value, f.at(nest, 8 * k))
    with f.loop(f.begin, f.end) as unit:
        rest, first_channel = unit // get["parts_of_channels"], unit % get["parts_of_channels"] * get["part_of_channels"]
        whole, first = rest // get["parts"], rest % get["parts"] * get["part"]
        last = f.smaller(first + get["part"], get["pixels"])
        last_channel = f.smaller(first_channel + get["part_of_channels"], get["channels"])
        x, y = f.at(f.b, whole * get["inputs"] * plane), f.at(f.d, whole * get["channels"] * plane)
        w = f.at(f.a, whole % get["groups"] * get["w_group"])
        with f.when(packs):
            f.call("void", "pack", f.at(x, first * pixel), scratch, last - first, get["inputs"], plane, get["block"])
        with f.loop(first_channel, last_channel, rows) as channel:
            left = f.smaller(last_channel - channel, f.value("i64", rows))
            with f.loop(0, rows) as m:
                f.store(f.at(w, (channel + f.smaller(m, left - 1)) * get["w_output"]), f.at(a_places, m * 8))
            with f.loop(first, last, tiles.block) as at:
                with f.loop(0, rows) as m:
                    f.store(f.at(y, (channel + f.smaller(m, left - 1)) * plane + at * pixel), f.at(c_places, m * 8))
                packed = f.at(scratch, (at - first) // tiles.block * get["block"])
                b = f.select(packs, packed, f.at(x, at * pixel))
                lanes = f.smaller(last - at, block)
                tiles.call(f, left, lanes, a_places, c_places, b, begin, nest, get["how"], numbers)
    with f.when(packs):
        slots.give_back(f, f.c, number.get())
    return module(f, slots.taker(), packer(tiles), *tiles.functions)
