"""Convolution in many small groups where the channels come first and columns make poor lanes: planes too narrow, groups of
several channels, gradients of strided windows.

A unit is some channels of one image, which are moved to scratch memory channels last, computed there row by row
(depthwise_last.py), and moved back.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..epilogue import Epilogue
from ..protocol import Array
from . import slots
from .cache import functions
from .conv_move import mover
from .conv_pack import first_sums
from .conv_relation import Relation
from .cuts import at_most
from .depthwise_last import (
    HOW,
    VECTORS,
    Depthwise,
    all_rows,
    by_tap,
    geometry,
    specification,
    takes_rows,
    vector_starts,
)
from .ending import NUMBERS, bits, words
from .ir import module
from .machine import Machine, machine
from .slots import MOST
from .tables import Geometry
from .window import kernel_function
from .workers import address_of, run

CHANNELS, BLOCK, BLOCKS, X_PLANE, Y_PLANE, W_BLOCK, PAIRS, X_SLOT, SLOT = range(9)
TABLES = 9
"""Fields: channels of all and of a block; blocks; bytes of a plane of x and of y, and of a block's weights; pairs of rows of an
image; bytes of the scratch for x and of all. Then tables: where blocks begin, and the geometry of the rows."""

BIAS = slots.FIRST_FREE
"""The word of a call's block with the bias's address; those behind it are the numbers of ending.py."""

BYTES = 1 << 18
"""About as many bytes as a block has in scratch memory."""

TAKEN = 1 << 16
"""Products that a thread takes at once, at least."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A kernel's address, its geometry, where vectors of channels begin, units of an image, how many a thread takes, and its
    scratch."""

    address: int
    geometry: Geometry
    starts: tuple[int, ...]
    blocks: int
    taken: int
    slot: int


@lru_cache(maxsize=512)
def takes(relation: Relation, images: int) -> bool:
    """Whether rows take it, and what is moved at once fits into scratch memory."""
    return takes_rows(relation) and images > 0 and sum(_slot(relation)) <= MOST


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
    """y (N, channels, *out) from x (N, channels, *size) and the weights, all contiguous and of one dtype."""
    if not y.size:
        return
    if residual is not None:  # blocks overlap, and what they share is moved twice: nothing may be added there
        compute(relation, x, w, b, y)
        (epilogue or Epilogue()).apply(y, residual)
        return
    found = schedule(relation, bits(epilogue))
    weights, bias = by_tap(relation, w, found.starts), first_sums(relation, b)
    units = found.blocks * len(x)
    block, memory = slots.block(found.slot, -(-units // found.taken), address_of(bias), *words(epilogue))
    places = (address_of(x), address_of(weights), address_of(block), address_of(y))
    run(found.address, found.geometry.address, *places, units, found.taken)
    del memory


def _channels(relation: Relation) -> int:
    """Channels of a block."""
    lanes = relation.spec.lanes(machine())
    one = sum(relation.pixels) * relation.spec.bytes * lanes
    return min(relation.outputs, at_most(relation.outputs, lanes, lanes * min(VECTORS, BYTES // max(one, 1)))[0])


def _slot(relation: Relation) -> tuple[int, int]:
    """Bytes of scratch for x and for y; what weaves rows writes a little behind them."""
    x, y = (pixels * _channels(relation) * relation.spec.bytes for pixels in relation.pixels)
    return -(-(x + 64) // 64) * 64, -(-y // 64) * 64


@lru_cache(maxsize=512)
def schedule(relation: Relation, how: int = 0) -> Schedule:
    """How a relation is computed over any number of images; `how` is what is done with sums."""
    channels, bytes_, lanes = _channels(relation), relation.spec.bytes, relation.spec.lanes(machine())
    spec = specification(relation, channels)
    (address,) = functions("depthwise_moved", spec, lambda: moved(spec, machine()), ("moved",))
    inner, pairs = geometry(relation, channels, how)
    begins, vectors = vector_starts(relation.outputs, channels), vector_starts(channels, lanes)
    w_block = len(vectors) * spec.inputs * relation.taps * lanes * bytes_
    x_plane, y_plane = (pixels * bytes_ for pixels in relation.pixels)
    x_slot, y_slot = _slot(relation)
    fields = [relation.outputs, channels, len(begins), x_plane, y_plane, w_block, pairs, x_slot, x_slot + y_slot]
    starts = tuple(begin + start for begin in begins for start in vectors)
    taken = max(TAKEN // max(relation.pixels[1] * channels * relation.taps * spec.inputs, 1), 1)
    made = Geometry(fields, [np.array(begins, np.int64), inner.memory])
    return Schedule(address, made, starts, len(begins), taken, x_slot + y_slot)


def moved(spec: Depthwise, machine: Machine) -> str:
    """The module of `moved`: a is x, b the weights, c the call's block, d is y; units are (image, block of channels)."""
    f, bytes_ = kernel_function("moved"), spec.bytes
    get = [f.field(f.geometry, k) for k in range(TABLES)]
    begins, inner = (f.at(f.geometry, f.field(f.geometry, TABLES + k)) for k in range(2))
    number, memory = slots.slot(f, f.c, get[SLOT])
    sent, how = f.scratch("i64", 1 + len(words(None))), f.field(inner, HOW)
    for k in range(len(words(None))):
        f.store(f.load("i64", f.at(f.c, 8 * (BIAS + 1 + k))), f.at(sent, 8 * (1 + k)))
    bias, results = f.load("ptr", f.at(f.c, 8 * BIAS)), f.at(memory, get[X_SLOT])
    width, no, yes = get[BLOCK] * bytes_, f.value("i64", 0), f.value("i64", 1)
    with f.loop(f.begin, f.end) as unit:
        block = unit % get[BLOCKS]
        begin = f.load("i64", f.at(begins, block * 8))
        plane = unit // get[BLOCKS] * get[CHANNELS] + begin
        x, y = f.at(f.a, plane * get[X_PLANE]), f.at(f.d, plane * get[Y_PLANE])
        f.call("void", "move", x, memory, get[BLOCK], get[X_PLANE] // bytes_, get[X_PLANE], width, yes)
        w = f.at(f.b, block * get[W_BLOCK])
        here = f.at(bias, begin * bytes_)
        f.store(here, sent)
        here = f.select((how & NUMBERS).ne(0), sent, here)
        f.call("void", "depthwise", inner, memory, w, here, results, no, get[PAIRS])
        f.call("void", "move", results, y, get[Y_PLANE] // bytes_, get[BLOCK], width, get[Y_PLANE], no)
    slots.give_back(f, f.c, number)
    return module(f, slots.taker(), mover(spec.kind, machine), *all_rows(spec, machine, private=True))
