"""Sums in the order in which tiles add them up, as weights: the way back of conv_pack.py.

A unit is some input channels of a block, with all their taps, or some taps of one. All sets of what it has are added up, in
order, into a stage in scratch memory, tap after tap as they lie; from there the numbers of output channels are transposed into
rows of w. Read one by one where they lie, taps would share few places of the cache: they are often a power of two apart.
"""

from __future__ import annotations

import math
from functools import lru_cache

from ..protocol import Array
from . import slots
from .cache import functions
from .contraction import Contraction, mask_below
from .conv_layout import transposed
from .conv_relation import Relation
from .ir import Function, Value, module
from .ir_types import vector
from .machine import Machine, machine
from .tables import Geometry
from .window import kernel_function
from .workers import address_of, run

FIELDS = (
    *("blocks", "outputs", "inputs", "taps", "channels", "channel_parts", "some_taps", "tap_parts", "swapped"),
    *("group", "output", "channel", "panel", "first", "tap", "pitch", "sets", "set"),
)
"""Fields: blocks of a group; output and input channels of a group; taps; input channels of a unit and how many such parts there
are, taps and parts of these; whether w has input channels first. Bytes in w from a group, an output and an input channel to the
next. Bytes of a block's sums, of them the place of tap 0, and from a tap to the next; bytes from a tap to the next in the stage,
how many sets there are and the bytes of one."""

STAGE = 1 << 16
"""Bytes that a stage has, but for the gaps between taps, which have a line each."""

LINE = 64

TAKEN = 1 << 14
"""Numbers that a thread takes at once, at least."""


def unpack(relation: Relation, sums: Array, w: Array) -> None:
    """Into contiguous weights w the sum, in order, of sets of packed numbers (sets, groups, blocks, taps, inputs, lanes)."""
    address, geometry, units = _schedule(relation, len(sums))
    block, memory = slots.block(_stage(relation.spec, machine()), units)
    places = (address_of(w), address_of(sums), address_of(block), 0)
    run(address, geometry.address, *places, units, max(TAKEN * units // sums.size, 1))
    del memory


@lru_cache(maxsize=512)
def _schedule(relation: Relation, sets: int) -> tuple[int, Geometry, int]:
    spec, taps = relation.spec, relation.taps
    (address,) = functions("conv_unpack", spec, lambda: unpacker(spec, machine()), ("unpack",))
    groups, inputs, outputs = relation.parts
    row = spec.block(machine()) * spec.bytes
    some_taps = min(taps, _places(spec, machine()))
    channels, lanes = max(_places(spec, machine()) // taps, 1), spec.lanes(machine())
    channels = min(channels // lanes * lanes or channels, inputs)  # so that rows of w begin with a line
    parts, tap_parts = -(-inputs // channels), -(-taps // some_taps)
    swapped = relation.swapped and not relation.depthwise
    output, channel = (taps, outputs * taps) if swapped else (inputs * taps, taps)
    tap = inputs * row
    first, step = ((taps - 1) * tap, -tap) if relation.flip else (0, tap)
    fields = [relation.blocks, outputs, inputs, taps, channels, parts, some_taps, tap_parts, int(swapped)]
    fields += [n * spec.bytes for n in (inputs * outputs * taps, output, channel)]
    fields += [taps * tap, first, step, channels * row + LINE, sets, math.prod(relation.packed_shape) * spec.bytes]
    return address, Geometry(fields, []), groups * relation.blocks * parts * tap_parts


def _places(spec: Contraction, machine: Machine) -> int:
    """Rows of a block's output channels that a stage has, at least."""
    return max(STAGE // (spec.block(machine) * spec.bytes), 1)


def _stage(spec: Contraction, machine: Machine) -> int:
    """Bytes of a stage with its gaps."""
    return _places(spec, machine) * (spec.block(machine) * spec.bytes + LINE)


def unpacker(spec: Contraction, machine: Machine) -> str:
    """The module of `unpack`: a is w, b the first set of packed numbers; units are (group, block, input channels, taps)."""
    f, block, width = kernel_function("unpack"), spec.block(machine), spec.lanes(machine)
    get = {name: f.field(f.geometry, k) for k, name in enumerate(FIELDS)}
    number, stage = slots.slot(f, f.c, f.value("i64", _stage(spec, machine)))
    with f.loop(f.begin, f.end) as unit:
        rest, tap = unit // get["tap_parts"], unit % get["tap_parts"] * get["some_taps"]
        panel, channel = rest // get["channel_parts"], rest % get["channel_parts"] * get["channels"]
        taps = f.smaller(get["some_taps"], get["taps"] - tap)
        channels = f.smaller(get["channels"], get["inputs"] - channel)
        there = f.at(f.b, panel * get["panel"] + get["first"] + tap * get["tap"] + channel * (block * spec.bytes))
        _collect(f, spec, machine, get, (there, stage), (taps, channels))
        group, output = panel // get["blocks"], panel % get["blocks"] * block
        w = f.at(f.a, group * get["group"] + output * get["output"] + channel * get["channel"] + tap * spec.bytes)
        swapped = get["swapped"].ne(0)
        outer, length = f.select(swapped, channels, 1), f.select(swapped, taps, taps * channels)
        for part in range(spec.vectors(machine)):
            lanes = f.smaller(get["outputs"] - output - part * width, f.value("i64", width))
            with f.when(lanes > 0), f.loop(0, outer) as k:
                row = f.at(w, get["output"] * (part * width) + k * get["channel"])
                place = f.at(stage, k * (block * spec.bytes) + part * width * spec.bytes)
                f.call("void", "rows", place, row, length, taps, lanes, get["pitch"], get["output"])
    slots.give_back(f, f.c, number)
    return module(f, slots.taker(), _rows(spec, machine))


def _collect(
    f: Function,
    spec: Contraction,
    machine: Machine,
    get: dict[str, Value],
    places: tuple[Value, Value],
    counts: tuple[Value, Value],
) -> None:
    """Add up all sets of so many taps and channels, from one place to the other."""
    width, (source, stage), (taps, channels) = spec.lanes(machine), places, counts
    kind, row = vector(width, spec.kind), spec.block(machine) * spec.bytes
    with f.loop(0, taps) as tap, f.loop(0, channels * row, row) as at:
        here = f.at(source, tap * get["tap"] + at)
        parts = range(0, row, width * spec.bytes)
        totals = [f.variable(kind, f.load(kind, f.at(here, part))) for part in parts]
        with f.loop(1, get["sets"]) as k:
            other = f.at(here, k * get["set"])
            for total, part in zip(totals, parts, strict=True):
                total.set(total.get() + f.load(kind, f.at(other, part)))
        for total, part in zip(totals, parts, strict=True):
            f.store(total.get(), f.at(stage, tap * get["pitch"] + at + part))


def _rows(spec: Contraction, machine: Machine) -> Function:
    """The function `rows`: for each of `lanes` output channels, `y_row` bytes apart in y, a run of `length` numbers: all taps, a
    `pitch` apart, of one input channel after the other. Squares are transposed; the last overlaps the one before."""
    width, row = spec.lanes(machine), spec.block(machine) * spec.bytes
    words = dict.fromkeys(("length", "taps", "lanes", "pitch", "y_row"), "i64")
    f = Function("rows", private=True, x="ptr", y="ptr", **words)
    kind = vector(width, spec.kind)
    with f.loop(0, f.length, width) as at:
        first = f.larger(f.smaller(at, f.length - width), 0)
        tap, channel = first % f.taps, first // f.taps
        columns, place = [], f.variable("ptr", f.at(f.x, tap * f.pitch + channel * row))
        left = f.variable("i64", f.taps - tap)
        for k in range(width):
            columns.append(f.load(kind, place.get()))
            if k + 1 < width:
                more, rest = f.value("i64", k + 1) < (f.length - first), left.get() - 1
                ends = rest.eq(0)
                step = f.select(ends, -(f.taps - 1) * f.pitch + row, f.pitch)
                place.set(f.at(place.get(), f.select(more, step, 0)))
                left.set(f.select(ends, f.taps, rest))
        lines = transposed(f, columns)
        y = f.at(f.y, first * spec.bytes)
        with f.when((f.lanes >= width) & (f.length >= width), likely=True) as ragged:
            for k, values in enumerate(lines):
                f.store(values, f.at(y, f.y_row * k))
            with ragged.otherwise():
                mask = mask_below(f, width, f.length - first)
                for k, values in enumerate(lines):
                    with f.when(f.lanes > k):
                        f.store(values, f.at(y, f.y_row * k), mask=mask)
    return f
