"""Convolution whose sums have few terms, channels last: a network's first layers.

Where a sum ends after some dozen terms, what surrounds it takes as long as its products, and what is written is most of what is
moved. So a tile of neighbouring pixels computes all their output channels, block by block, and y is written line by line; weights
stay in the nearest cache. What a class of windows reads is a list of terms: the byte in x, from a window's first, and in a block
of the packed weights. Tiles end with their row, so all that they need to know of their places are two distances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..epilogue import Epilogue
from ..protocol import Array
from .cache import functions
from .contraction import LINE, PIECE, Contraction, fused, mask_below, prefetch
from .conv_gather import B_FIRST, CLASS, NEST_AT, TAKEN, WINDOWS, Walk, classes_table, join
from .conv_relation import Relation
from .ending import bits, finisher, given, opened, stored
from .ir import Function, Value, module
from .ir_types import vector
from .machine import Machine, machine
from .tables import Geometry
from .window import kernel_function
from .workers import address_of, run

Numbers = NDArray[np.int64]

OUTPUTS, PANEL, HOW, CHUNKS, CLASSES, TERMS = range(6)
"""Fields: output channels; bytes of a block's weights; what is done with sums; three tables."""

COUNT, FIRST = NEST_AT, NEST_AT + 1
"""Numbers of a class, in place of its nest: how many terms it has, and the byte of the first one in their table."""

BY = 3
"""Pixels of a tile that share an address: those behind the first are once or twice the distance away."""

TERM = 16
"""Bytes of a term: two numbers."""

LONGEST, WEIGHTS = 3 * PIECE, 1 << 18
"""Terms of a sum and bytes of packed weights, at most: more had better be read less often."""

WRITTEN = 1 << 16
"""About as many bytes of y as a unit has."""

UNITS = 32
"""Units that a call has at least, if it has pixels enough."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A kernel's address, its geometry, how many units there are and how many a thread takes."""

    address: int
    geometry: Geometry
    units: int
    taken: int


def takes(relation: Relation) -> bool:
    """Whether there is one group of few terms, whose weights all tiles can read, and pixels are not stretched."""
    if relation.groups > 1 or any(axis.input_dilation > 1 for axis in relation.axes):
        return False
    weights = math.prod(relation.packed_shape) * relation.spec.bytes
    return relation.taps * relation.inputs <= LONGEST and weights <= WEIGHTS


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
    """y (N, *out, outputs) from x (N, *size, inputs), contiguous and of the relation's dtype; weights and bias are packed."""
    if not y.size:
        return
    how = bits(epilogue, residual)
    found, (begin, memory) = schedule(relation, len(x), how), given(how, bias, epilogue, residual, y)
    places = (address_of(x), address_of(packed), begin, address_of(y))
    run(found.address, found.geometry.address, *places, found.units, found.taken)
    del memory


@lru_cache(maxsize=512)
def schedule(relation: Relation, images: int, how: int = 0) -> Schedule:
    """How a relation is computed over so many images; `how` is for the tiles."""
    spec, block = relation.spec, relation.spec.block(machine())
    (address,) = functions("conv_short", spec, lambda: short(spec, machine()), ("short",))
    y_pixel = relation.outputs * spec.bytes
    table = classes_table(relation, relation.inputs * spec.bytes, y_pixel)
    pixels = images * table[:, WINDOWS : WINDOWS + 3].prod(1)
    join(table, images)
    _turned(table)
    terms = [_terms(row[NEST_AT : NEST_AT + 12].reshape(3, 4)) for row in table]
    table[:, COUNT] = [len(found) for found in terms]
    table[:, FIRST] = TERM * (np.cumsum(table[:, COUNT]) - table[:, COUNT])
    most = max(min(WRITTEN // y_pixel, int(pixels.sum()) // UNITS), 1)
    chunks = _chunks(pixels, table[:, WINDOWS + 2], most, spec.rows(machine())[0])
    panel = relation.taps * relation.inputs * block * spec.bytes
    products = int(pixels.sum()) * relation.outputs * relation.taps * relation.inputs // len(chunks)
    geometry = Geometry([relation.outputs, panel, how], [chunks, table, np.concatenate(terms)])
    return Schedule(address, geometry, len(chunks), max(TAKEN // max(products, 1), 1))


def _turned(table: Numbers) -> None:
    """Make what is one column wide one row: columns at the edges."""
    narrow = table[:, WINDOWS + 2] == 1
    for level in (WINDOWS + 1, A_ROW, C_ROW):
        table[narrow, level : level + 2] = table[narrow, level : level + 2][:, ::-1]


A_ROW, C_ROW = 6, 11
"""Where a class has its steps from row to row, and behind them those from column to column."""


def _terms(nest: Numbers) -> Numbers:
    """The bytes in x and in weights of every term, in the order of a nest of loops."""
    counts, *steps = nest
    k = np.indices(tuple(counts)).reshape(4, -1)
    return np.stack([(k * step[:, None]).sum(0) for step in steps], 1).astype(np.int64)


def _chunks(pixels: Numbers, wide: Numbers, most: int, rows: int) -> Numbers:
    """(class, first pixel, end) of every unit: some rows of a class, or of a wide one a part, in whole tiles but for the last."""
    found = []
    for kind, (count, width) in enumerate(zip(pixels.tolist(), wide.tolist(), strict=True)):
        if width <= most:
            step = most // max(width, 1) * width
            found += [(kind, at, min(at + step, count)) for at in range(0, count, max(step, 1))]
            continue
        step = -(-width // -(-width // most) // rows) * rows
        for row in range(0, count, width):
            found += [(kind, at, min(at + step, row + width)) for at in range(row, row + width, step)]
    return np.array(found, np.int64).reshape(-1, 3)


def short(spec: Contraction, machine: Machine) -> str:
    """The module of `short`: a is x, b the packed weights, c the packed bias as `given`, d is y."""
    f, sizes = kernel_function("short"), spec.rows(machine)
    get = [f.field(f.geometry, k) for k in range(6)]
    chunks, classes, all_terms = (f.at(f.geometry, get[k]) for k in (CHUNKS, CLASSES, TERMS))
    begin, numbers = opened(f, get[HOW], f.c)
    with f.loop(f.begin, f.end) as unit:
        chunk = f.at(chunks, unit * 24)
        kind, first, last = (f.load("i64", f.at(chunk, 8 * k)) for k in range(3))
        row = f.at(classes, kind * (8 * CLASS))
        count, at = (f.load("i64", f.at(row, 8 * k)) for k in (COUNT, FIRST))
        b, walk = f.at(f.b, f.load("i64", f.at(row, 8 * B_FIRST))), Walk(f, row, first, f.a, f.d)
        sums, ending = (b, begin, f.at(all_terms, at), count), (get[OUTPUTS], get[PANEL], get[HOW], numbers)
        _rows(f, sizes, walk, last - first, sums, ending)
    kernels = [_pixels(spec, machine, rows) for rows in sizes]
    return module(f, finisher(vector(spec.lanes(machine), spec.kind)), *kernels)


def _rows(
    f: Function, sizes: tuple[int, ...], walk: Walk, count: Value, sums: tuple[Value, ...], ending: tuple[Value, ...]
) -> None:
    """So many pixels of a class, row by row, a tile of them at a time."""
    width, steps = walk.sizes[0], walk.steps[0]
    left = f.variable("i64", count)
    with f.loop(0, (walk.counters[0].get() + count + (width - 1)) // width):
        here = f.smaller(left.get(), width - walk.counters[0].get())
        a, c = (f.variable("ptr", place.get()) for place in (walk.a, walk.c))

        def tile(rows: int) -> None:
            f.call("void", f"pixels_{rows}", a.get(), c.get(), *sums, *steps, *ending)
            for place, step in zip((a, c), steps, strict=True):
                place.set(f.at(place.get(), step * rows))

        with f.loop(0, here - (sizes[0] - 1), sizes[0]):
            tile(sizes[0])
        rest = f.variable("i64", here % sizes[0])
        for rows in sizes[1:]:
            with f.when(rest.get() >= rows):
                tile(rows)
                rest.set(rest.get() - rows)
        walk.advance(count=here)
        left.set(left.get() - here)


def _pixels(spec: Contraction, machine: Machine, rows: int) -> Function:
    """The function `pixels_<rows>`: all output channels of so many pixels, whose places are a_step and c_step bytes apart."""
    places = dict.fromkeys(("a", "c", "b", "begin", "terms"), "ptr")
    numbers = dict.fromkeys(("count", "a_step", "c_step", "outputs", "panel", "how"), "i64")
    f = Function(f"pixels_{rows}", private=True, **places, **numbers, numbers="ptr")
    vectors, lanes = spec.vectors(machine), spec.lanes(machine)
    block = vectors * lanes
    b, begin, c = (f.variable("ptr", place) for place in (f.b, f.begin, f.c))
    with f.loop(0, f.outputs, block) as first:
        left, here = f.outputs - first, (b.get(), begin.get(), c.get())
        with f.when(left >= block, likely=True) as ragged:
            _tile(f, spec, (rows, vectors, lanes), here, None)
            with ragged.otherwise():
                _ragged(f, spec, (rows, vectors, lanes), here, left)
        for place, step in ((b, f.panel), (begin, block * spec.bytes), (c, block * spec.bytes)):
            place.set(f.at(place.get(), step))
    return f


def _ragged(f: Function, spec: Contraction, size: tuple[int, int, int], here: tuple[Value, Value, Value], left: Value) -> None:
    rows, vectors, lanes = size
    if vectors == 1:
        _tile(f, spec, size, here, left)
        return
    with f.when(left <= lanes) as more:
        _tile(f, spec, (rows, 1, lanes), here, left)
        with more.otherwise():
            _tile(f, spec, size, here, left)


def _tile(
    f: Function, spec: Contraction, size: tuple[int, int, int], here: tuple[Value, Value, Value], left: Value | None
) -> None:
    """Some vectors of channels of every pixel, from what sums begin with to y; of the last ones only those that are left.
    Long sums are cut every PIECE terms, and the parts added in y."""
    (rows, vectors, width), (b, begin, c) = size, here
    kind, step = vector(width, spec.kind), width * spec.bytes
    masks = [None if left is None else mask_below(f, width, left - k * width) for k in range(vectors)]
    start = [f.load(kind, f.at(begin, k * step), mask=masks[k]) for k in range(vectors)]
    sums = [[f.variable(kind, value) for value in start] for _ in range(rows)]
    places = [c]
    for _ in range(rows - 1):
        places.append(f.at(places[-1], f.c_step))
    for place in places if left is None else ():
        for line in range(0, vectors * step, LINE):
            prefetch(f, f.at(place, line), write=True)
    term, thrice = f.variable("ptr", f.terms), f.a_step * BY

    def add() -> None:
        for row, place in zip(sums, places, strict=True):
            for k, total in enumerate(row):
                total.set(f.load(kind, f.at(place, k * step), mask=masks[k]) + total.get())

    def put() -> None:
        for row, place in zip(sums, places, strict=True):
            for k, total in enumerate(row):
                f.store(total.get(), f.at(place, k * step), mask=masks[k])

    def begin_again(parts: Value) -> None:
        with f.when(parts):
            add()
        put()
        for row in sums:
            for total in row:
                total.set(0)

    with f.loop(0, f.count, PIECE) as at:
        with f.when(at > 0, likely=False):
            begin_again(at > PIECE)
        with f.loop(at, f.smaller(at + PIECE, f.count)):
            offset, there = (f.load("i64", f.at(term.get(), 8 * k)) for k in range(2))
            there = f.at(b, there)
            values = [f.load(kind, f.at(there, k * step), mask=masks[k]) for k in range(vectors)]
            first = f.at(f.a, offset)
            for nth, row in enumerate(sums):
                if nth and nth % BY == 0:
                    first = f.at(first, thrice)
                one = f.splat(f.load(spec.kind, f.at(first, f.a_step * (nth % BY)) if nth % BY else first), width)
                for total, value in zip(row, values, strict=True):
                    total.set(fused(f, one, value, total.get()))
            term.set(f.at(term.get(), TERM))
    with f.when(f.count > PIECE, likely=False):
        add()

    def table() -> Value:
        made = f.scratch("ptr", rows)
        for nth, place in enumerate(places):
            f.store(place, f.at(made, 8 * nth))
        return made

    lanes = f.value("i64", vectors * width) if left is None else left
    with stored(f, f.how, f.numbers, [total for row in sums for total in row], table, vectors, lanes):
        put()
