"""Weights and bias in the order in which tiles read them. Packed weights are made anew for every call, since parameters change,
and through views that nobody here knows of; but for those that cannot (kept.py)."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Any

import numpy as np

from .. import memory
from ..protocol import Array
from .cache import functions
from .contraction import Contraction, mask_below
from .conv_layout import transposed
from .conv_relation import Relation
from .ir import Function, Value, module
from .ir_types import lanes, vector
from .kept import kept
from .machine import Machine, machine
from .tables import Geometry
from .window import kernel_function
from .workers import address_of, run

BLOCKS, OUTPUTS, INPUTS, TAPS, GROUP, OUTPUT, OUTER, OUTER_STEP, RUN, FIRST, TAP, ROWS, ALL = range(13)
"""Fields: blocks of a group; output and input channels of a group; taps; bytes in w from a group to the next and from an
output channel to the next. What lies in a row for one output channel is a run of so many numbers, OUTER times: all input
channels with their taps at once, or the taps of one (swapped weights). The packed byte of tap 0, and from a tap to the next. Of
swapped weights the input channels that are one unit, for all outputs, so that w is read as it lies; 0 of others, of which a unit
is a vector of outputs. How many vectors of outputs there are."""

TAKEN = 1 << 14
"""Numbers that a thread packs at once, at least."""

NEAR, FEW = 16, 4
"""Input channels of swapped weights that are packed together, and taps up to which that was measured faster."""


def packed(relation: Relation, w: Array) -> Array:
    """Contiguous weights as (groups, blocks, taps, inputs, lanes), zeros behind the last channel; made once if frozen."""
    return kept(w, ("packed", form_of(relation)), lambda: _packed(relation, w))


@lru_cache(maxsize=512)
def form_of(relation: Relation) -> Hashable:
    """All that packed weights depend on beside the weights. Relations over images of other sizes share them, and so do bands of
    one: else each would keep its own."""
    return (relation.dtype, *relation.packed_shape, *relation.parts, relation.swapped, relation.flip, relation.depthwise)


def _packed(relation: Relation, w: Array) -> Array:
    out = memory.empty(relation.packed_shape, w.dtype)
    if out.size and w.size:
        address, geometry = _schedule(relation)
        units = _units(relation)
        each = out.size // units
        run(address, geometry.address, address_of(w), address_of(out), 0, 0, units, max(TAKEN // each, 1))
    return out


def first_sums(relation: Relation, b: Array | None) -> Array:
    """What the sums of each channel begin with: the bias, or zeros."""
    return _zeros(relation) if b is None else np.ascontiguousarray(b, relation.dtype)


@lru_cache(maxsize=512)
def _zeros(relation: Relation) -> Array:
    return np.zeros(relation.outputs, relation.dtype)


def packed_bias(relation: Relation, b: Array | None, dtype: np.dtype[Any]) -> Array:
    """(groups, blocks, lanes): what sums begin with."""
    groups, _, outputs = relation.parts
    out = np.zeros((groups, relation.blocks * relation.packed_shape[-1]), dtype)
    if b is not None:
        out[:, :outputs] = b.reshape(groups, outputs)
    return out


@lru_cache(maxsize=512)
def _schedule(relation: Relation) -> tuple[int, Geometry]:
    spec = relation.spec
    (address,) = functions("conv_pack", spec, lambda: pack(spec, machine()), ("pack",))
    return address, Geometry(_fields(relation), [])


def _fields(relation: Relation) -> list[int]:
    spec = relation.spec
    _, inputs, outputs = relation.parts
    taps, bytes_, tap = relation.taps, spec.bytes, inputs * spec.block(machine()) * spec.bytes
    swapped = relation.swapped and not relation.depthwise
    of_output, outer, of_outer, run_ = (taps, inputs, outputs * taps, taps) if swapped else (inputs * taps, 1, 0, inputs * taps)
    fields = [relation.blocks, outputs, inputs, taps, inputs * outputs * taps * bytes_, of_output * bytes_]
    fields += [outer, of_outer * bytes_, run_, *(((taps - 1) * tap, -tap) if relation.flip else (0, tap))]
    return [*fields, NEAR * _by_rows(relation), _parts(relation)]


def _by_rows(relation: Relation) -> bool:
    """Whether weights are packed input channel by input channel, as they lie."""
    return relation.swapped and not relation.depthwise and relation.taps <= FEW


def _parts(relation: Relation) -> int:
    """Vectors of output channels of all groups."""
    return relation.packed_shape[0] * relation.blocks * relation.spec.vectors(machine())


def _units(relation: Relation) -> int:
    return -(-relation.parts[1] // NEAR) if _by_rows(relation) else _parts(relation)


def pack(spec: Contraction, machine: Machine) -> str:
    """The module of `pack`: a is w, b the packed weights; units are (group, block, vector of its output channels), or NEAR input
    channels of every group."""
    f, block, width = kernel_function("pack"), spec.block(machine), spec.lanes(machine)
    get = [f.field(f.geometry, k) for k in range(13)]
    vectors, kind = spec.vectors(machine), vector(width, spec.kind)
    by_rows = get[ROWS].ne(0)
    with f.loop(f.begin, f.end) as unit:
        start = f.select(by_rows, unit * get[ROWS], 0)
        stop = f.select(by_rows, f.smaller(start + get[ROWS], get[OUTER]), get[OUTER])
        with f.loop(f.select(by_rows, 0, unit), f.select(by_rows, get[ALL], unit + 1)) as nth:
            panel, part = nth // vectors, nth % vectors
            number = panel % get[BLOCKS] * block + part * width
            w = f.at(f.a, panel // get[BLOCKS] * get[GROUP] + number * get[OUTPUT])
            there = f.at(f.b, panel * (get[TAPS] * get[INPUTS] * (block * spec.bytes)) + part * (width * spec.bytes) + get[FIRST])
            rest = f.larger(f.smaller(get[OUTPUTS] - number, f.value("i64", width)), 0)
            whole = rest.eq(width) & (get[RUN] >= width)
            with f.loop(start, stop) as outer:
                row, place = f.at(w, outer * get[OUTER_STEP]), f.at(there, outer * (block * spec.bytes))
                with f.when(whole, likely=True) as ragged:
                    _blocks(f, spec, kind, get, row, place, block)
                    with ragged.otherwise(), f.when(rest.eq(width) & get[RUN].eq(get[TAPS])) as few:
                        _short(f, spec, kind, get, row, place)
                        with few.otherwise():
                            _one_by_one(f, spec, kind, get, row, place, block, rest)
    return module(f)


def _blocks(f: Function, spec: Contraction, kind: str, get: list[Value], w: Value, place: Value, block: int) -> None:
    """The runs of a vector's channels, transposed in square blocks; the last overlaps the one before."""
    count, row = lanes(kind), block * spec.bytes
    with f.loop(0, get[RUN], count) as at:
        first = f.smaller(at, get[RUN] - count)
        columns = transposed(f, [f.load(kind, f.at(w, get[OUTPUT] * i + first * spec.bytes)) for i in range(count)])
        tap, channel = first % get[TAPS], first // get[TAPS]
        for values in columns:
            f.store(values, f.at(place, tap * get[TAP] + channel * row))
            tap = tap + 1
            end = tap.eq(get[TAPS])
            tap, channel = f.select(end, 0, tap), f.select(end, channel + 1, channel)


def _short(f: Function, spec: Contraction, kind: str, get: list[Value], w: Value, place: Value) -> None:
    """The runs of a vector's channels where they are shorter than a vector: one number, or a part of a square block."""
    count = lanes(kind)
    with f.when(get[RUN].eq(1) & get[OUTPUT].eq(spec.bytes)) as longer:
        f.store(f.load(kind, w), place)
        with longer.otherwise():
            mask = mask_below(f, count, get[RUN])
            columns = transposed(f, [f.load(kind, f.at(w, get[OUTPUT] * i), mask=mask) for i in range(count)])
            for at, values in enumerate(columns[:-1]):
                with f.when(get[RUN] > at):
                    f.store(values, f.at(place, get[TAP] * at))


def _one_by_one(
    f: Function, spec: Contraction, kind: str, get: list[Value], w: Value, place: Value, block: int, rest: Value
) -> None:
    """The same for `rest` channels, zeros behind them."""
    with f.loop(0, get[RUN]) as at:
        here = f.at(place, at % get[TAPS] * get[TAP] + at // get[TAPS] * (block * spec.bytes))
        source = f.at(w, at * spec.bytes)
        with f.loop(0, rest) as lane:
            f.store(f.load(spec.kind, f.at(source, lane * get[OUTPUT])), f.at(here, lane * spec.bytes))
        with f.loop(rest, lanes(kind)) as lane:
            f.store(f.value(spec.kind, 0), f.at(here, lane * spec.bytes))
