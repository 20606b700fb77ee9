"""Pooling where the channels come last: lanes are channels, so every rule is one step an instruction.

A unit is one row of output pixels. For each pixel its windows' places come from the tables once; then blocks of channels
walk the taps. Backward gathers: each input pixel asks the windows that have it as a tap.
"""

from __future__ import annotations

from collections.abc import Callable

from .contraction import prefetch
from .extremes import Extreme, Matching
from .gradients import Gather, Gradient
from .ir import Function, Value, module
from .machine import Machine
from .sums import Sum
from .window import (
    CHANNELS,
    DILATION,
    FIRST_FREE,
    KERNEL,
    OUT,
    SIZE,
    Cover,
    Place,
    Spec,
    Window,
    begin,
    fields,
    finish,
    finish_empty,
    first_number,
    kernel_function,
    new_state,
    saved_part,
    walk,
)

TABLES = COVERS = FIRST_FREE + 1
"""Offsets of the three tables of windows, or of the covers' first entries and entries; before them the divisor's constant
factor."""


def forward(spec: Spec, machine: Machine) -> str:
    """The module of `forward`: a is x, b is y, c the offsets; units are rows (image, depth, height) of y."""
    return module(forward_rows("forward", spec, machine))


def forward_rows(name: str, spec: Spec, machine: Machine, *, private: bool = False) -> Function:
    """The function of `forward`, under a name of its own."""
    f = kernel_function(name, private=private)
    channels, lanes, count = f.field(f.geometry, CHANNELS), width(spec, machine), blocks(machine)
    size, out, kernel, dilation = (fields(f, start) for start in (SIZE, OUT, KERNEL, DILATION))
    tables = [f.at(f.geometry, f.field(f.geometry, TABLES + axis)) for axis in range(3)]
    pixel = channels * spec.number.bytes
    steps = [dilation[0] * size[1] * size[2] * pixel, dilation[1] * size[2] * pixel, dilation[2] * pixel]
    with f.loop(f.begin, f.end) as unit:
        image, row = unit // (out[0] * out[1]), unit % (out[0] * out[1])
        depth = Window.read(f, tables[0], row // out[1])
        height = Window.read(f, tables[1], row % out[1])
        line = ((image * size[0] + depth.pixel) * size[1] + height.pixel) * size[2]
        with f.loop(0, out[2]) as column:
            axes = (depth, height, Window.read(f, tables[2], column))
            x = f.at(f.a, (line + axes[2].pixel) * pixel)
            place = (unit * out[2] + column) * channels
            results = Place(f.b, f.c).moved(f, spec, place)
            some = (axes[0].count * axes[1].count * axes[2].count) > 0
            with f.when(some, likely=True) as none:
                over_channels(f, channels, lanes, count, over_taps(f, spec, axes, kernel, steps, x, place, results))
                with none.otherwise():
                    over_channels(f, channels, lanes, count, without_taps(f, spec, axes, results))
    return f


Body = Callable[[Value, int, int], None]
"""Compute `blocks` vectors of `lanes` channels from channel number `c` on."""


def over_taps(
    f: Function,
    spec: Spec,
    axes: tuple[Window, Window, Window],
    kernel: list[Value],
    steps: list[Value],
    x: Value,
    place: Value,
    results: Place,
    ahead: Value | None = None,
) -> Body:
    """One window, tap by tap. The cache is told of what lies `ahead` bytes further, if anything."""
    number = spec.number
    first = first_number(f, axes, kernel)

    def body(c: Value, lanes: int, blocks: int) -> None:
        base = f.at(x, c * number.bytes)
        states = [new_state(f, spec, lanes) for _ in range(blocks)]
        for k, state in enumerate(states):
            tap = number.load(f, f.at(base, k * lanes * number.bytes), lanes)
            begin(f, state, tap, first, place + c + k * lanes)

        def visit(pointer: Value, tap: Value) -> None:
            for k, state in enumerate(states):
                here = f.at(pointer, k * lanes * number.bytes)
                if ahead is not None:
                    prefetch(f, f.at(here, ahead))
                state.take(number.load(f, here, lanes), tap)

        walk(f, axes, kernel, steps, base, visit)
        for k, state in enumerate(states):
            finish(f, spec, state, axes, kernel, results.moved(f, spec, c + k * lanes))

    return body


def without_taps(f: Function, spec: Spec, axes: tuple[Window, Window, Window], results: Place) -> Body:
    """One window without a tap inside the input."""

    def body(c: Value, lanes: int, blocks: int) -> None:
        state = new_state(f, spec, lanes)
        for k in range(blocks):
            finish_empty(f, spec, state, axes, results.moved(f, spec, c + k * lanes))

    return body


def backward(spec: Gradient, machine: Machine) -> str:
    """The module of `backward`: a is dx, b is dy, c the offsets or y, d is x; units are rows (image, depth, height) of dx."""
    return module(backward_rows("backward", spec, machine))


def backward_rows(name: str, spec: Gradient, machine: Machine, *, private: bool = False) -> Function:
    """The function of `backward`, under a name of its own."""
    f = kernel_function(name, private=private)
    number, channels = spec.number, f.field(f.geometry, CHANNELS)
    lanes, count = width(spec, machine), blocks(machine)
    size, out, kernel = (fields(f, start) for start in (SIZE, OUT, KERNEL))
    firsts = [f.at(f.geometry, f.field(f.geometry, COVERS + axis)) for axis in range(3)]
    entries = [f.at(f.geometry, f.field(f.geometry, COVERS + 3 + axis)) for axis in range(3)]
    with f.loop(f.begin, f.end) as unit:
        image, row = unit // (size[0] * size[1]), unit % (size[0] * size[1])
        depths = Cover.range(f, firsts[0], row // size[1])
        heights = Cover.range(f, firsts[1], row % size[1])
        with f.loop(0, size[2]) as column:
            widths = Cover.range(f, firsts[2], column)
            place = (unit * size[2] + column) * channels
            dx, x = f.at(f.a, place * number.bytes), f.at(f.d, place * number.bytes)

            def body(c: Value, lanes: int, blocks: int) -> None:
                states = [Gather(f, spec, lanes, kernel[0] * kernel[1] * kernel[2]) for _ in range(blocks)]
                at = [c + k * lanes for k in range(blocks)]
                for state, k in zip(states, at, strict=True):
                    state.start(spec.wide(f, number.load(f, f.at(x, k * number.bytes), lanes)) if spec.reads_x else None)
                with f.loop(*depths) as i, f.loop(*heights) as j:
                    depth, height = Cover.read(f, entries[0], i), Cover.read(f, entries[1], j)
                    line = ((image * out[0] + depth.window) * out[1] + height.window) * out[2]
                    layer = (depth.number * kernel[1] + height.number) * kernel[2]
                    with f.loop(*widths) as w:
                        width = Cover.read(f, entries[2], w)
                        share = (depth.share * height.share * width.share * f.field(f.geometry, FIRST_FREE)).to(spec.share)
                        window = (line + width.window) * channels
                        for state, k in zip(states, at, strict=True):
                            dy = spec.wide(f, number.load(f, f.at(f.b, (window + k) * number.bytes), lanes))
                            state.take(state.scaled(dy, share), layer + width.number, saved_part(f, spec, window + k, lanes))
                for state, k in zip(states, at, strict=True):
                    f.store(spec.narrow(f, state.result()), f.at(dx, k * number.bytes))

            over_channels(f, channels, lanes, count, body)
    return f


def width(spec: Spec | Gradient, machine: Machine) -> int:
    """Lanes of one vector of channels: as many as of the widest numbers fit."""
    if isinstance(spec, Sum):
        return machine.lanes(spec.accumulate)
    if isinstance(spec, Matching):
        return machine.lanes(spec.number.computed)
    return machine.lanes(spec.index if spec.offsets else spec.number.computed if isinstance(spec, Extreme) else spec.accumulate)


def blocks(machine: Machine) -> int:
    """Vectors taken at once: what of them is kept fits the registers."""
    return 2 if machine.registers < 32 else 4


def over_channels(f: Function, channels: Value, lanes: int, blocks: int, body: Body) -> None:
    """All channels: in blocks of several vectors, then single vectors, then what is left. A channel may be computed twice."""
    done = f.variable("i64", 0)
    for count in dict.fromkeys((blocks, 2 if blocks == 4 else 1, 1)):
        start = done.get()
        end = start + (channels - start) // (count * lanes) * (count * lanes)
        with f.loop(start, end, count * lanes) as c:
            body(c, lanes, count)
        done.set(end)
    if lanes == 1:
        return
    # What is left: a last vector that overlaps the one before, or single channels where there is no vector.
    with f.when(done.get() < channels), f.when(channels >= lanes) as few:
        body(channels - lanes, lanes, 1)
        with few.otherwise(), f.loop(0, channels) as c:
            body(c, 1, 1)
