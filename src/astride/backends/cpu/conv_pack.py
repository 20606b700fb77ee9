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
from .ir import module
from .machine import Machine, machine
from .tables import Geometry
from .window import kernel_function
from .workers import address_of, run

BLOCKS, OUTPUTS, INPUTS, TAPS, GROUP, OUTPUT, INPUT, TAP, FIRST = range(9)
"""Fields: blocks of a group; output and input channels of a group; taps; bytes from one of a group, output channel, input
channel and tap to the next; and the first tap's byte."""

TAKEN = 1 << 14
"""Numbers that a thread packs at once, at least."""


def packed(relation: Relation, w: Array) -> Array:
    """The weights (groups, blocks, taps, inputs, lanes), zeros behind the last channel. w is contiguous."""
    out = np.empty(relation.packed_shape, w.dtype)
    if out.size and w.size:
        address, geometry = _schedule(relation)
        units = out.shape[0] * out.shape[1] * out.shape[3]
        each = out.shape[2] * out.shape[4]
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
    taps, bytes_ = relation.taps, spec.bytes
    of_output, of_input = inputs * taps, taps
    if relation.swapped and not relation.depthwise:
        of_output, of_input = taps, outputs * taps
    first, step = (taps - 1, -1) if relation.flip else (0, 1)
    numbers = [inputs * outputs * taps, of_output, of_input, step, first]
    return address, Geometry([relation.blocks, outputs, inputs, taps, *(n * bytes_ for n in numbers)], [])


def pack(spec: Contraction, machine: Machine) -> str:
    """The module of `pack`: a is w, b the packed weights; units are (group, block, input channel)."""
    f, block = kernel_function("pack"), spec.block(machine)
    blocks, outputs, inputs, taps, group_, output_, input_, tap_, first = (f.field(f.geometry, k) for k in range(9))
    with f.loop(f.begin, f.end) as unit:
        channel, panel = unit % inputs, unit // inputs
        group, number = panel // blocks, panel % blocks
        source = f.at(f.a, group * group_ + number * block * output_ + channel * input_ + first)
        lanes = f.smaller(outputs - number * block, f.value("i64", block))
        with f.loop(0, taps) as tap:
            here = f.at(source, tap * tap_)
            there = f.at(f.b, ((panel * taps + tap) * inputs + channel) * (block * spec.bytes))
            with f.loop(0, lanes) as lane:
                f.store(f.load(spec.kind, f.at(here, lane * output_)), f.at(there, lane * spec.bytes))
            with f.loop(lanes, block) as lane:
                f.store(f.value(spec.kind, 0), f.at(there, lane * spec.bytes))
    return module(f)
