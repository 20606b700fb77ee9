"""Windows of one pixel where the channels come first: planes of pixels are rows of a matrix already, and nothing is moved.

The roles are swapped: a tile's m are output channels, whose weights are read where they lie, its n neighbouring pixels, and
its r input channels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..epilogue import Epilogue
from ..protocol import Array
from .cache import functions
from .contraction import NEST, Contraction, Tiles, prefetch
from .conv_gather import LINE, TAKEN, UNITS, Relation
from .ending import ADD, bits, given, opened
from .ir import module
from .machine import Machine, machine
from .tables import Geometry
from .window import kernel_function
from .workers import address_of, run

GROUPS, PIXELS, PARTS, PART, CHANNELS, PARTS_OF_CHANNELS, PART_OF_CHANNELS, INPUTS, W_GROUP, W_OUTPUT, W_INPUT, HOW = range(12)
"""Fields: groups; pixels of a plane, the parts they are taken in and how many one has; the same of a group's output channels;
input channels of a group; bytes in w from a group, an output and an input channel to the next; what tiles do with their sums: y
may have the bias already."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A kernel's address, its geometry, the units of one image and how many a thread takes, and what sums begin with."""

    address: int
    geometry: Geometry
    units: int
    taken: int
    zeros: Array


@lru_cache(maxsize=512)
def takes(relation: Relation, images: int) -> bool:
    """Whether every window is one pixel."""
    return not relation.depthwise and all(
        axis.kernel == axis.input_dilation == 1 and axis.pad_lo == 0 and (axis.out - 1) * axis.stride < axis.size
        for axis in relation.axes
    )


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
    read = tuple(slice(0, axis.out * axis.stride, axis.stride) for axis in relation.axes)
    if x.shape[2:] != y.shape[2:]:
        x = np.ascontiguousarray(x[:, :, *read])
    if b is not None:
        y[...] = b.reshape(-1, *[1] * len(relation.axes))
    how = ADD * (b is not None) | bits(epilogue, residual)
    found = schedule(relation, len(x), how)
    begin, memory = given(how, found.zeros, epilogue, residual, y)
    run(
        found.address,
        found.geometry.address,
        address_of(w),
        address_of(x),
        begin,
        address_of(y),
        found.units * len(x),
        found.taken,
    )
    del memory


@lru_cache(maxsize=512)
def schedule(relation: Relation, images: int, how: int) -> Schedule:
    """How a relation is computed over so many images; `how` is for the tiles."""
    spec, block, rows = relation.spec, relation.spec.block(machine()), relation.spec.rows(machine())[0]
    (address,) = functions("conv_planes", spec, lambda: planes(spec, machine()), ("planes",))
    groups, inputs, outputs = relation.parts
    pixels = math.prod(axis.out for axis in relation.axes)
    part, parts = _split(pixels, block, UNITS // max(images * groups, 1))
    channels, parts_of_channels = _split(outputs, rows, UNITS // max(images * groups * parts, 1))
    w_output, w_input = (1, outputs) if relation.swapped else (inputs, 1)
    fields = [groups, pixels, parts, part, outputs, parts_of_channels, channels, inputs]
    fields += [n * spec.bytes for n in (inputs * outputs, w_output, w_input)]
    taken = max(TAKEN // max(part * channels * inputs, 1), 1)
    zeros = np.zeros(block, relation.dtype)
    return Schedule(address, Geometry([*fields, how], []), groups * parts * parts_of_channels, taken, zeros)


def _split(count: int, step: int, wanted: int) -> tuple[int, int]:
    """The size of parts, a multiple of `step`, of which there are about as many as wanted; and how many there are."""
    steps = -(-count // step)
    part = -(-steps // max(min(wanted, steps), 1)) * step
    return part, -(-count // part)


def planes(spec: Contraction, machine: Machine) -> str:
    """The module of `planes`: a is w, b is x, c zeros as `given`, d is y; units are (image, group, part of pixels, part of
    channels)."""
    f, tiles = kernel_function("planes"), Tiles(spec, machine)
    get = [f.field(f.geometry, k) for k in range(12)]
    rows, pixel = tiles.rows[0], spec.bytes
    plane = get[PIXELS] * pixel
    a_places, c_places, nest = f.scratch("ptr", rows), f.scratch("ptr", rows), f.scratch("i64", NEST)
    begin, numbers = opened(f, get[HOW], f.c)
    one = f.value("i64", 1)
    for k, number in enumerate([one, one, one, get[INPUTS], one, one, one, get[W_INPUT], one, one, one, plane]):
        f.store(number, f.at(nest, 8 * k))
    with f.loop(f.begin, f.end) as unit:
        rest, first_channel = unit // get[PARTS_OF_CHANNELS], unit % get[PARTS_OF_CHANNELS] * get[PART_OF_CHANNELS]
        whole, first = rest // get[PARTS], rest % get[PARTS] * get[PART]
        last, last_channel = (
            f.smaller(start + part, all_)
            for start, part, all_ in ((first, get[PART], get[PIXELS]), (first_channel, get[PART_OF_CHANNELS], get[CHANNELS]))
        )
        x, y = f.at(f.b, whole * get[INPUTS] * plane), f.at(f.d, whole * get[CHANNELS] * plane)
        w = f.at(f.a, whole % get[GROUPS] * get[W_GROUP])
        with f.loop(first, last, tiles.block) as at, f.loop(first_channel, last_channel, rows) as channel:
            left = f.smaller(last_channel - channel, f.value("i64", rows))
            with f.loop(0, rows) as m:
                here = channel + f.smaller(m, left - 1)
                f.store(f.at(w, here * get[W_OUTPUT]), f.at(a_places, m * 8))
                f.store(f.at(y, here * plane + at * pixel), f.at(c_places, m * 8))
                for line in range(0, tiles.block * pixel, LINE):
                    prefetch(f, f.at(y, here * plane + (at * pixel + line)), write=True)
            lanes = f.smaller(last - at, f.value("i64", tiles.block))
            tiles.call(f, left, lanes, a_places, c_places, f.at(x, at * pixel), begin, nest, get[HOW], numbers)
    return module(f, *tiles.functions)
