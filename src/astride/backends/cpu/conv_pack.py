"""Weights and bias in the order in which tiles read them, made anew for every call: parameters change, and through views that
nobody here knows of."""

from __future__ import annotations

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
from .machine import Machine, machine
from .tables import Geometry
from .window import kernel_function
from .workers import address_of, run

BLOCKS, OUTPUTS, INPUTS, TAPS, GROUP, OUTPUT, OUTER, OUTER_STEP, RUN, FIRST, TAP = range(11)
"""Fields: blocks of a group; output and input channels of a group; taps; bytes in w from a group to the next and from an
output channel to the next. What lies in a row for one output channel is a run of so many numbers, OUTER times: all input
channels with their taps at once, or the taps of one (swapped weights). The packed byte of tap 0, and from a tap to the next."""

TAKEN = 1 << 14
"""Numbers that a thread packs at once, at least."""


def packed(relation: Relation, w: Array) -> Array:
    """The weights (groups, blocks, taps, inputs, lanes), zeros behind the last channel. w is contiguous."""
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


@lru_cache(maxsize=512)
def _schedule(relation: Relation) -> tuple[int, Geometry]:
    spec = relation.spec
    (address,) = functions("conv_pack", spec, lambda: pack(spec, machine()), ("pack",))
    _, inputs, outputs = relation.parts
    taps, bytes_, tap = relation.taps, spec.bytes, inputs * spec.block(machine()) * spec.bytes
    swapped = relation.swapped and not relation.depthwise
    of_output, outer, of_outer, run_ = (taps, inputs, outputs * taps, taps) if swapped else (inputs * taps, 1, 0, inputs * taps)
    fields = [relation.blocks, outputs, inputs, taps, inputs * outputs * taps * bytes_, of_output * bytes_]
    fields += [outer, of_outer * bytes_, run_, *(((taps - 1) * tap, -tap) if relation.flip else (0, tap))]
    return address, Geometry(fields, [])


def pack(spec: Contraction, machine: Machine) -> str:
    """The module of `pack`: a is w, b the packed weights; units are (group, block, vector of its output channels)."""
    f, block, width = kernel_function("pack"), spec.block(machine), spec.lanes(machine)
    get = [f.field(f.geometry, k) for k in range(11)]
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
                _blocks(f, spec, kind, get, row, place, block)
                with ragged.otherwise():
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
