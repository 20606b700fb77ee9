"""Weights and bias in the order in which tiles read them, and sums in that order as weights. Packed weights are made anew for
every call, since parameters change, and through views that nobody here knows of; but for those that cannot (kept.py)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ..protocol import Array
from .cache import functions
from .contraction import Contraction
from .conv_gather import Relation
from .conv_layout import transposed
from .ir import Function, Value, module
from .ir_types import lanes, vector
from .kept import kept
from .machine import Machine, machine
from .tables import Geometry
from .window import kernel_function
from .workers import address_of, run

BLOCKS, OUTPUTS, INPUTS, TAPS, GROUP, OUTPUT, OUTER, OUTER_STEP, RUN, FIRST, TAP = range(11)
"""Fields: blocks of a group; output and input channels of a group; taps; bytes in w from a group to the next and from an
output channel to the next. What lies in a row for one output channel is a run of so many numbers, OUTER times: all input
channels with their taps at once, or the taps of one (swapped weights). The packed byte of tap 0, and from a tap to the next."""

SETS, SET = 11, 12
"""More fields of `unpack`: how many sets of packed numbers are added up, and the bytes of one."""

TAKEN = 1 << 14
"""Numbers that a thread packs at once, at least."""


def packed(relation: Relation, w: Array) -> Array:
    """Contiguous weights as (groups, blocks, taps, inputs, lanes), zeros behind the last channel; made once if frozen."""
    return kept(w, ("packed", relation), lambda: _packed(relation, w))


def _packed(relation: Relation, w: Array) -> Array:
    out = np.empty(relation.packed_shape, w.dtype)
    if out.size and w.size:
        address, geometry = _schedule(relation)
        units = out.shape[0] * out.shape[1] * relation.spec.vectors(machine())
        each = out.size // units
        run(address, geometry.address, address_of(w), address_of(out), 0, 0, units, max(TAKEN // each, 1))
    return out


def packed_bias(relation: Relation, b: Array | None, dtype: np.dtype[Any]) -> Array:
    """(groups, blocks, lanes): what sums begin with."""
    groups, _, outputs = relation.parts
    out = np.zeros((groups, relation.blocks * relation.packed_shape[-1]), dtype)
    if b is not None:
        out[:, :outputs] = b.reshape(groups, outputs)
    return out


def unpack(relation: Relation, sums: Array, w: Array) -> None:
    """Into contiguous weights w the sum, in order, of sets of packed numbers (sets, groups, blocks, taps, inputs, lanes)."""
    address, geometry = _unpacking(relation, len(sums))
    units = sums.shape[1] * sums.shape[2] * relation.spec.vectors(machine())
    each = sums.size // units
    run(address, geometry.address, address_of(w), address_of(sums), 0, 0, units, max(TAKEN // each, 1))


@lru_cache(maxsize=512)
def _schedule(relation: Relation) -> tuple[int, Geometry]:
    spec = relation.spec
    (address,) = functions("conv_pack", spec, lambda: pack(spec, machine()), ("pack",))
    return address, Geometry(_fields(relation), [])


@lru_cache(maxsize=512)
def _unpacking(relation: Relation, sets: int) -> tuple[int, Geometry]:
    spec = relation.spec
    (address,) = functions("conv_unpack", spec, lambda: unpacker(spec, machine()), ("unpack",))
    return address, Geometry([*_fields(relation), sets, math.prod(relation.packed_shape) * spec.bytes], [])


def _fields(relation: Relation) -> list[int]:
    spec = relation.spec
    _, inputs, outputs = relation.parts
    taps, bytes_, tap = relation.taps, spec.bytes, inputs * spec.block(machine()) * spec.bytes
    swapped = relation.swapped and not relation.depthwise
    of_output, outer, of_outer, run_ = (taps, inputs, outputs * taps, taps) if swapped else (inputs * taps, 1, 0, inputs * taps)
    fields = [relation.blocks, outputs, inputs, taps, inputs * outputs * taps * bytes_, of_output * bytes_]
    fields += [outer, of_outer * bytes_, run_, *(((taps - 1) * tap, -tap) if relation.flip else (0, tap))]
    return fields


def pack(spec: Contraction, machine: Machine) -> str:
    """The module of `pack`: a is w, b the packed weights; units are (group, block, vector of its output channels)."""
    return _mover("pack", spec, machine, _blocks, _one_by_one)


def unpacker(spec: Contraction, machine: Machine) -> str:
    """The module of `unpack`: a is w, b the first set of packed numbers; units as those of `pack`."""
    return _mover("unpack", spec, machine, _blocks_back, _one_by_one_back)


def _mover(name: str, spec: Contraction, machine: Machine, blocks: Callable[..., None], one_by_one: Callable[..., None]) -> str:
    """The walk that both directions share."""
    f, block, width = kernel_function(name), spec.block(machine), spec.lanes(machine)
    get = [f.field(f.geometry, k) for k in range(11 if name == "pack" else 13)]
    vectors, kind = spec.vectors(machine), vector(width, spec.kind)
    with f.loop(f.begin, f.end) as unit:
        panel, part = unit // vectors, unit % vectors
        number = panel % get[BLOCKS] * block + part * width
        w = f.at(f.a, panel // get[BLOCKS] * get[GROUP] + number * get[OUTPUT])
        there = f.at(f.b, panel * (get[TAPS] * get[INPUTS] * (block * spec.bytes)) + part * (width * spec.bytes) + get[FIRST])
        rest = f.larger(f.smaller(get[OUTPUTS] - number, f.value("i64", width)), 0)
        whole = rest.eq(width) & (get[RUN] >= width)
        with f.loop(0, get[OUTER]) as outer:
            row, place = f.at(w, outer * get[OUTER_STEP]), f.at(there, outer * (block * spec.bytes))
            with f.when(whole, likely=True) as ragged:
                blocks(f, spec, kind, get, row, place, block)
                with ragged.otherwise():
                    one_by_one(f, spec, kind, get, row, place, block, rest)
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


def _blocks_back(f: Function, spec: Contraction, kind: str, get: list[Value], w: Value, place: Value, block: int) -> None:
    """`_blocks`, the other way."""
    count, row = lanes(kind), block * spec.bytes
    with f.loop(0, get[RUN], count) as at:
        first = f.smaller(at, get[RUN] - count)
        tap, channel = first % get[TAPS], first // get[TAPS]
        columns = []
        for _ in range(count):
            columns.append(_summed(f, kind, get, f.at(place, tap * get[TAP] + channel * row)))
            tap = tap + 1
            end = tap.eq(get[TAPS])
            tap, channel = f.select(end, 0, tap), f.select(end, channel + 1, channel)
        for i, values in enumerate(transposed(f, columns)):
            f.store(values, f.at(w, get[OUTPUT] * i + first * spec.bytes))


def _one_by_one_back(
    f: Function, spec: Contraction, kind: str, get: list[Value], w: Value, place: Value, block: int, rest: Value
) -> None:
    """`_one_by_one`, the other way."""
    with f.loop(0, get[RUN]) as at:
        here = f.at(place, at % get[TAPS] * get[TAP] + at // get[TAPS] * (block * spec.bytes))
        with f.loop(0, rest) as lane:
            f.store(_summed(f, spec.kind, get, f.at(here, lane * spec.bytes)), f.at(w, lane * get[OUTPUT] + at * spec.bytes))


def _summed(f: Function, kind: str, get: list[Value], place: Value) -> Value:
    """What all sets have at a place, added up."""
    total = f.variable(kind, f.load(kind, place))
    with f.loop(1, get[SETS]) as k:
        total.set(total.get() + f.load(kind, f.at(place, k * get[SET])))
    return total.get()
