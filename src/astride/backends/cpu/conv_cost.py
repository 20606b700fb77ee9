"""How long each way of computing a convolution takes, predicted from counts: what the choice among them rests on.

A prediction is the cycles of the products, tile by tile as they are computed (a tile whose rows or lanes are not full takes as
long as one that is), plus some for every tile begun, for every byte moved and for the call. Counts are exact or nearly so; a way
has four constants (conv_rates.py), fitted to times that `benchmarks/choice.py` measures, which also says how often a choice is
right.

A prediction is for one thread of a machine of its kind, not for this one: so the same convolution is computed in the same way on
every machine with vectors of this width, in every run, on any number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...plan import StridedAxis
from . import (
    conv_planar,
    conv_planar_tile,
    conv_planar_weights,
    conv_planes,
    conv_slabs,
    conv_subpixel,
    conv_weights,
    conv_weights_packed,
    depthwise_whole,
    winograd,
)
from .conv_rates import KINDS, Kind
from .conv_relation import Relation
from .conv_windows import classes_of
from .machine import machine
from .winograd_forms import FORMS

Numbers = NDArray[np.int64]
Cycles = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Situation:
    """What is to be computed: a relation over so many images, channels first or last, with Winograd tiles up to a size."""

    relation: Relation
    images: int
    first: bool
    winograd: int


@dataclass(frozen=True, slots=True)
class Work:
    """What is counted: cycles of products were all tiles at the most the machine can do, tiles begun, bytes moved, and bytes of x
    and y that come from beyond the cache; and the name of the constants by which they are multiplied."""

    rate: str
    products: float
    tiles: float
    bytes: float
    far: float = 0.0


CACHE, NEAR = 1 << 20, 1 << 15
"""Bytes of the cache that a core has for itself, and of the nearest one."""

WHOLE = 3
"""How often arrays that are moved as a whole pass through memory: read, written and read again."""

ARRANGED = 4
"""How much longer it takes to bring weights of cells into order than others."""

SUMS = 3
"""How often sums of weights are moved: made, added to and brought into the order of weights."""

ALIASED = 1.12
"""How much longer products take of pixels that lie so far apart that they share places of the nearest cache."""


def seconds(work: Work) -> float:
    """How long this work takes."""
    here = kind()
    rate = here.rates[work.rate]
    cycles = work.products / rate.share + work.tiles * rate.tile + work.bytes * rate.byte + work.far * here.memory
    return cycles / here.clock + rate.call * 1e-6


def planes(s: Situation) -> Work:
    """Of conv_planes.py: a tile's rows are output channels and its lanes pixels; strided x is copied before."""
    r = s.relation
    groups, inputs, outputs = r.parts
    pixels = math.prod(axis.out for axis in r.axes)
    terms, tiles = _tiles(r, np.array([outputs]), pixels, halves=True)
    copied = _bytes(r)[0] if any(axis.stride > 1 for axis in r.axes) else 0
    panel = inputs * r.spec.block(machine()) * r.spec.bytes
    near = panel <= NEAR or outputs >= conv_planes.MANY  # many channels read a copy
    again = 0 if near else float(tiles[0]) * groups * panel
    count = s.images * groups
    moved, far = s.images * (copied + again), _far(s, 1 if outputs >= conv_planes.MANY else 2 if near else 3)
    return Work("planes", count * inputs * float(terms[0]), count * float(tiles[0]), moved, far)


def slabs(s: Situation) -> Work:
    """Of conv_slabs.py: tiles of one slab's pixels; x is moved in parts, and y where channels come first."""
    r, images = (s.relation, s.images) if s.first else conv_slabs.line(s.relation, s.images)
    cut = conv_slabs._cut(r, images, s.first)
    groups, inputs, outputs = r.parts
    windows, taps, along = _classes(r)
    jobs = np.minimum(along[:, max(cut.axis - 3 + len(r.axes), 0)], len(cut.slabs))
    terms, tiles = _tiles(r, -(-cut.together * windows // jobs), outputs, halves=True)
    count = groups * -(-images // cut.together)
    x, y = _bytes(r)
    products = count * inputs * float((terms * taps * jobs).sum())
    moved = images * (x + y * s.first) + _packed(r)
    return Work("slabs", products, count * float((tiles * jobs).sum()), moved, _far(s))


def tiles(s: Situation) -> Work:
    """Of conv_gather.py: tiles of neighbouring pixels; with channels first x and y are moved as a whole."""
    r = s.relation
    groups, inputs, outputs = r.parts
    windows, taps, _ = _classes(r)
    terms, begun = _tiles(r, s.images * windows, outputs, halves=True)
    moved = s.images * sum(_bytes(r)) if s.first else 0
    if conv_slabs.crowded(r):
        terms = terms * ALIASED
    name, far = "lanewise tiles" if r.depthwise else "tiles", _far(s, WHOLE if s.first else 1)
    products = groups * inputs * float((terms * taps).sum())
    return Work(name, products, groups * float(begun.sum()), moved + _packed(r), far)


def short(s: Situation) -> Work:
    """Of conv_short.py: tiles that end with their row, if pixels of the next do not follow in x as well. Each reads all weights,
    which shows where windows are single pixels."""
    r = s.relation
    windows, taps, along = _classes(r)
    row = s.images * windows if r.taps == 1 else np.where(along[:, -1] > 1, along[:, -1], windows)
    rows = s.images * windows / np.maximum(row, 1)
    terms, begun = (rows * found for found in _tiles(r, row, r.outputs))
    weights = math.prod(r.packed_shape) * r.spec.bytes
    again = 0.0 if weights <= NEAR or r.taps > 1 else float(begun.sum()) / r.blocks * weights
    return Work("short", r.inputs * float((terms * taps).sum()), float(begun.sum()), again + _packed(r), _far(s))


def columns(s: Situation) -> Work:
    """Of conv_planar.py: rows are output channels and lanes columns; padding is multiplied, x packed and y written in place.
    Every unit reads all weights."""
    r, cut = s.relation, conv_planar._cut(s.relation)
    groups, inputs, outputs = r.parts
    rows, vectors = conv_planar_tile.tiles_of(machine())[0]
    high = r.axes[-2].out if len(r.axes) > 1 else 1
    units = math.prod(axis.out for axis in r.axes[:-2]) * -(-high // cut.rows)
    across = -(-cut.rows * -(-r.axes[-1].out // r.spec.lanes(machine())) // vectors)
    begun = s.images * groups * units * -(-outputs // rows) * across
    products = r.taps * inputs * begun * rows * vectors / kind().fma
    again = s.images * units * math.prod(r.packed_shape) * r.spec.bytes
    slot = conv_planar._slot(r, cut)
    if 2 * slot > CACHE:  # each tile's channels read it from beyond
        again += s.images * groups * units * -(-outputs // rows) * slot
    return Work("columns", products, begun, s.images * _bytes(r)[0] + again, _far(s))


def subpixel(s: Situation) -> Work:
    """Of conv_subpixel.py: slabs or tiles of the folded relation, whose weights are brought into an order of their own."""
    r = s.relation
    folded = replace(s, relation=conv_subpixel.folded(r, s.first))
    work = slabs(folded) if s.first else tiles(folded)
    return replace(work, bytes=work.bytes + ARRANGED * _packed(r))


def few(s: Situation) -> Work:
    """Of conv_few.py: lanes are columns of one phase, all output channels at once."""
    r = s.relation
    windows, taps, along = _classes(r)
    vectors = windows // np.maximum(along[:, -1], 1) * -(-along[:, -1] // r.spec.lanes(machine()))
    products = s.images * r.inputs * r.outputs * float((vectors * taps).sum()) / kind().fma
    moved = 0 if s.first else s.images * sum(_bytes(r))
    return Work("few", products, s.images * float(vectors.sum()), moved, _far(s))


def weights_matrix(s: Situation) -> Work:
    """Of conv_weights_matrix.py: one side's channels are rows, the other's, which are packed, columns; terms are pixels."""
    r = s.relation
    groups, inputs, outputs = r.parts
    pixels = s.images * math.prod(axis.out for axis in r.axes)
    terms, begun = _tiles(r, np.array([max(inputs, outputs)]), min(inputs, outputs))
    chunks = -(-pixels // conv_weights_packed.PIXELS)
    moved = s.images * min(_bytes(r)) + SUMS * math.prod(r.packed_shape) * r.spec.bytes
    return Work("weights matrix", groups * pixels * float(terms[0]), groups * chunks * float(begun[0]), moved, _far(s))


def weights_columns(s: Situation) -> Work:
    """Of conv_planar_weights.py: rows are output channels, vectors taps and lanes columns, which are added up once a slab."""
    r, cut = s.relation, conv_planar_weights._cut(s.relation, s.images)
    groups, inputs, outputs = r.parts
    rows, sizes = conv_planar_weights.tiles_of(machine())
    pixels = s.images * math.prod(axis.out for axis in r.axes[:-1]) * -(-r.axes[-1].out // r.spec.lanes(machine()))
    begun = groups * -(-outputs // rows) * -(-r.taps * inputs // sizes[0])
    slabs = -(-s.images // cut.images) * -(-math.prod(axis.out for axis in r.axes[:-1]) // cut.rows)
    return Work("weights columns", begun * rows * sizes[0] * pixels / kind().fma, begun * slabs, s.images * _bytes(r)[0], _far(s))


def winograd_form(s: Situation) -> Work:
    """Of winograd.py: products of transformed numbers, and their transforms, which are what is moved."""
    r = s.relation
    tile, groups, inputs, outputs = winograd.tile_of(r, s.winograd), *r.parts
    points, count = FORMS[tile].points ** 2, s.images * _winograd_tiles(r, tile)
    terms, begun = _tiles(r, np.array([count]), outputs)
    numbers = groups * count * (_whole(r, inputs) + _whole(r, outputs))
    products = groups * points * inputs * float(terms[0])
    moved = points * numbers * r.spec.bytes + _packed(r) * points / r.taps
    return Work("winograd", products, groups * (points * float(begun[0]) + 2 * count), moved, _far(s))


def weights_tiles(s: Situation) -> Work:
    """Of conv_weights.py: rows are input channels, or taps and these; with channels first both arrays are moved."""
    r = s.relation
    moved = s.images * sum(_bytes(r)) if s.first else 0
    chunks, merged = len(conv_weights._chunks(r, s.images)), conv_weights.few_inputs(r)
    rate = "lanewise weights" if r.depthwise else "weights tiles"
    return _weights(rate, s, chunks, merged, moved, WHOLE if s.first else 1, 1 if r.depthwise else r.blocks)


def weights_packed(s: Situation) -> Work:
    """Of conv_weights_packed.py: both arrays are moved in parts, what is read as often as blocks are taken in parts."""
    r, cut = s.relation, conv_weights_packed._cut(s.relation, s.images)
    x, y = _bytes(r)
    parts = -(-r.blocks // conv_weights_packed._part(r))
    return _weights("weights packed", s, len(cut.chunks), cut.merged, s.images * (parts * x + y), 0, parts)


def weights_winograd(s: Situation) -> Work:
    """Of winograd_weights.py: as `winograd_form`, with what is read and what is given the other way round."""
    r = s.relation
    tile, groups, inputs, outputs = winograd.tile_of(r, s.winograd), *r.parts
    points, count = FORMS[tile].points ** 2, s.images * _winograd_tiles(r, tile)
    terms, begun = _tiles(r, np.array([inputs]), outputs)
    numbers = groups * count * (_whole(r, inputs) + _whole(r, outputs))
    chunks = max(count * points * (inputs + outputs) * r.spec.bytes >> 18, 1)
    products = groups * points * count * float(terms[0])
    moved = points * numbers * r.spec.bytes + SUMS * math.prod(r.packed_shape) * r.spec.bytes * points / r.taps
    return Work("weights winograd", products, groups * (points * chunks * float(begun[0]) + 2 * count), moved, _far(s))


def depthwise(name: str) -> Callable[[Situation], Work]:
    """Of the ways for small groups: vectors of columns, or of channels, times the taps; a row of windows is what is begun."""

    def predicted(s: Situation) -> Work:
        r = s.relation
        lanes, wide, of_group = r.spec.lanes(machine()), r.axes[-1].out, r.inputs // r.groups
        rows = s.images * math.prod(axis.out for axis in r.axes[:-1])
        if name.endswith("planes"):
            vectors, begun = rows * r.outputs * -(-wide // lanes), rows * r.outputs
        else:
            vectors, begun = rows * wide * -(-r.outputs // lanes), rows * -(-r.outputs // lanes)
        cycles = vectors * r.taps * of_group / kind().fma
        return Work(name, cycles, begun, s.images * sum(_bytes(r)), _far(s))

    return predicted


def depthwise_whole_planes(name: str) -> Callable[[Situation], Work]:
    """Of depthwise_whole.py and depthwise_whole_weights.py: a plane is what is begun, and it is what the nearest cache holds."""

    def predicted(s: Situation) -> Work:
        planes = s.images * s.relation.outputs
        return Work(name, planes * depthwise_whole.products(s.relation) / kind().fma, planes, 0, _far(s))

    return predicted


def _weights(rate: str, s: Situation, chunks: int, merged: bool, moved: float, times: int, reads: int) -> Work:
    """Of direct gradients of weights, whose sums are read and written once a chunk; arrays pass through memory so many times, 0
    of packed pixels, which lie close together; and what is read so many times while it is multiplied."""
    r = s.relation
    groups, inputs, outputs = r.parts
    windows, taps, _ = _classes(r)
    if merged:
        terms, begun = _tiles(r, taps * inputs, outputs)
        products, count = float((terms * windows).sum()), float(begun.max())
    else:
        terms, begun = _tiles(r, np.array([inputs]), outputs)
        products, count = float(terms[0]) * float((windows * taps).sum()), r.taps * float(begun[0])
    if times and any(n * r.spec.bytes % conv_weights_packed.ALIAS == 0 for n in (r.inputs, r.outputs)):
        products *= ALIASED
    sums = SUMS * math.prod(r.packed_shape) * r.spec.bytes
    far = _far(s, max(times, 1)) + (reads - 1) * max(s.images * _bytes(r)[0] - CACHE, 0)
    return Work(rate, groups * s.images * products, groups * chunks * count, moved + sums, far)


@lru_cache(None)
def kind() -> Kind:
    """The kind of this machine."""
    return KINDS.get(machine().vector_bytes, KINDS[32])


@lru_cache(maxsize=512)
def _along(axis: StridedAxis) -> tuple[Numbers, Numbers]:
    """Of every class of an axis its windows and taps; layers of a network share axes."""
    found = classes_of(axis)
    return found.windows, found.taps


@lru_cache(maxsize=512)
def _classes(relation: Relation) -> tuple[Numbers, Numbers, Numbers]:
    """Of every class of windows of one image: how many windows, the taps of each, and its windows along each axis."""
    found = [_along(axis) for axis in relation.axes or (StridedAxis(1, 1),)]
    along = np.stack([k.ravel() for k in np.meshgrid(*[windows for windows, _ in found], indexing="ij")], 1)
    taps = np.stack([k.ravel() for k in np.meshgrid(*[taps for _, taps in found], indexing="ij")], 1)
    return along.prod(1), taps.prod(1), along


def _tiles(relation: Relation, places: Numbers, numbers: int, *, halves: bool = False) -> tuple[Cycles, Numbers]:
    """Cycles that one term of all sums takes, for each count of places times so many numbers side by side; and the tiles. With
    `halves` the last vector may be half of one."""
    spec, sizes = relation.spec, relation.spec.rows(machine())
    most, vectors, lanes = sizes[0], spec.vectors(machine()), spec.lanes(machine())
    blocks, rest = divmod(numbers, vectors * lanes)
    last = (halves and spec.ending(numbers, machine()) / 2) or (0 if not rest else 1 if rest <= lanes else vectors)
    whole, left = places // most, places % most
    size = np.array(sorted(sizes))[np.searchsorted(sorted(sizes), left)] * (left > 0)
    cycles = np.zeros(len(places))
    for count, width in ((blocks, vectors), (int(last > 0), last)):
        if count:
            cycles += count * (whole * _term(relation, most, width) + np.where(left > 0, _term(relation, size, width), 0))
    return cycles, (whole + (left > 0)) * (blocks + (last > 0))


def _term(relation: Relation, rows: Numbers | int, vectors: float) -> Cycles:
    """Cycles of one term of a tile: by the products, by what is read, or by the wait for the last sum."""
    here = kind()
    read = rows * vectors + vectors if relation.depthwise else 0
    bound = np.maximum(np.multiply(rows, vectors) / here.fma, np.divide(read, here.reads))
    return np.asarray(np.maximum(bound, here.latency), np.float64)


def _bytes(relation: Relation) -> tuple[int, int]:
    """Bytes of one image of x and of y."""
    bytes_ = relation.spec.bytes
    x, y = (math.prod(n) for n in ([a.size for a in relation.axes], [a.out for a in relation.axes]))
    return x * relation.inputs * bytes_, y * relation.outputs * bytes_


def _winograd_tiles(relation: Relation, tile: int) -> int:
    return math.prod(-(-axis.out // tile) for axis in relation.axes)


def _whole(relation: Relation, channels: int) -> int:
    """Channels in whole vectors."""
    lanes = relation.spec.lanes(machine())
    return -(-channels // lanes) * lanes


def _far(s: Situation, times: int = 1) -> float:
    """Bytes of x and y that come from beyond the cache, so many times."""
    return times * max(s.images * sum(_bytes(s.relation)) - CACHE, 0)


def _packed(r: Relation) -> int:
    """Bytes of weights that a call brings into order: those of a gradient of x, while those of y may be frozen."""
    return 2 * math.prod(r.packed_shape) * r.spec.bytes if r.swapped else 0
