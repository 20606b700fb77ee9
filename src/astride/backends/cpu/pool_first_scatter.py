"""The gradient of pooling where the channels come first, plane by plane: dx is cleared and every window adds what it gives.

A unit is one plane of dx, which stays in the cache meanwhile, so the order of additions is that of the windows. Extremes
add to one tap each; averages and norms of wide windows add to rows of taps, whose lanes lie side by side.
"""

from __future__ import annotations

from .gradients import Gather, Gradient
from .ir import Function, Value, module
from .ir_types import size, vector
from .machine import Machine
from .window import DILATION, FIRST_FREE, KERNEL, OUT, SIZE, Window, fields, first_number, kernel_function, rows

TABLES, PLACES = FIRST_FREE + 1, FIRST_FREE + 4
"""Fields: three tables of windows, or for extremes only where they start, in pixels of the plane; for each number of a tap
how many pixels it lies from its window's start."""

LARGEST_PLANE = 1 << 20
"""Bytes of a plane up to which it is taken as one unit."""

TOGETHER = 4
"""Planes taken together where each window gives to one tap: neighbours often give to the same, and must wait for each other."""

MOST_TAPS = 1 << 12
FEWEST_PLANES = 16
"""Planes from which there are enough units; with fewer, rows are."""


def backward(spec: Gradient, machine: Machine) -> str:
    """The module of `backward`: a is dx, b is dy, c the offsets or y, d is x; units are planes of dx."""
    f = kernel_function("backward")
    size_, out, kernel, dilation = (fields(f, start) for start in (SIZE, OUT, KERNEL, DILATION))
    tables = [f.at(f.geometry, f.field(f.geometry, TABLES + axis)) for axis in range(3)]
    bytes_, lanes = spec.number.bytes, machine.lanes(spec.accumulate)
    pixels, windows = size_[0] * size_[1] * size_[2], out[0] * out[1] * out[2]
    places = f.at(f.geometry, f.field(f.geometry, PLACES))

    def planes(first: Value, count: int) -> None:
        numbers = [first + k for k in range(count)]
        for plane in numbers:
            _clear(f, f.at(f.a, plane * pixels * bytes_), pixels, spec.accumulate, lanes)
        with f.loop(0, out[0]) as i, f.loop(0, out[1]) as j:
            line = (i * out[1] + j) * out[2]
            if spec.kind == "offsets":
                start = f.load("i64", f.at(tables[0], i * 8)) + f.load("i64", f.at(tables[1], j * 8))
                with f.loop(0, out[2]) as k:
                    place = start + f.load("i64", f.at(tables[2], k * 8))
                    for plane in numbers:
                        _to_one(f, spec, place, plane * windows + line + k, places, plane * pixels)
                return
            depth, height = Window.read(f, tables[0], i), Window.read(f, tables[1], j)
            with f.loop(0, out[2]) as k:
                axes = (depth, height, Window.read(f, tables[2], k))
                for plane in numbers:
                    dx, x = f.at(f.a, plane * pixels * bytes_), f.at(f.d, plane * pixels * bytes_)
                    _to_rows(f, spec, lanes, axes, size_, kernel, dilation, plane * windows + line + k, dx, x)

    together = TOGETHER if spec.kind == "offsets" else 1
    grouped = f.begin + (f.end - f.begin) // together * together
    with f.loop(f.begin, grouped, together) as first:
        planes(first, together)
    with f.loop(grouped, f.end) as first:
        planes(first, 1)
    return module(f)


def _clear(f: Function, dx: Value, count: Value, kind: str, lanes: int) -> None:
    step = size(vector(lanes, kind))
    whole = count // lanes * lanes
    with f.loop(0, whole, lanes) as i:
        f.store(f.value(vector(lanes, kind), 0), f.at(dx, i * (step // lanes)))
    with f.loop(whole, count) as i:
        f.store(f.value(kind, 0), f.at(dx, i * (step // lanes)))


def _to_one(f: Function, spec: Gradient, start: Value, window: Value, places: Value, plane: Value) -> None:
    """dy to the tap whose number was saved; the window starts at pixel `start` of its plane, which padding may put outside."""
    bytes_ = spec.number.bytes
    number = f.load(f"i{8 * spec.offsets}", f.at(f.c, window * spec.offsets))
    with f.when(number.ne(-1), likely=True):
        place = (plane + start + f.load("i64", f.at(places, number.widened("i64") * 8))) * bytes_
        state = Gather(f, spec, 1, f.value("i64", 0))
        state.start(f.load(spec.accumulate, f.at(f.d, place)) if spec.reads_x else None)
        dy, here = f.load(spec.accumulate, f.at(f.b, window * bytes_)), f.at(f.a, place)
        f.store(f.load(spec.accumulate, here) + state.given(dy), here)


def _to_rows(
    f: Function,
    spec: Gradient,
    lanes: int,
    axes: tuple[Window, Window, Window],
    size_: list[Value],
    kernel: list[Value],
    dilation: list[Value],
    window: Value,
    dx: Value,
    x: Value,
) -> None:
    """What the window gives to every tap, row after row."""
    bytes_ = spec.number.bytes
    inside = axes[0].count * axes[1].count * axes[2].count
    divisor = axes[0].divisor * axes[1].divisor * axes[2].divisor * f.field(f.geometry, FIRST_FREE)
    taps, share = kernel[0] * kernel[1] * kernel[2], (inside if spec.kind == "norm" else divisor).to(spec.share)
    dy = Gather(f, spec, 1, taps).scaled(f.load(spec.accumulate, f.at(f.b, window * bytes_)), share)
    y = f.load(spec.accumulate, f.at(f.c, window * bytes_)) if spec.kind == "norm" else None
    base = ((axes[0].pixel * size_[1] + axes[1].pixel) * size_[2] + axes[2].pixel) * bytes_
    steps = [dilation[0] * size_[1] * size_[2] * bytes_, dilation[1] * size_[2] * bytes_]

    def add(start: Value, count: int) -> None:
        state = Gather(f, spec, count, taps)
        here = f.at(dx, start)
        state.start(f.load(vector(count, spec.accumulate), f.at(x, start)) if spec.reads_x else None)
        state.total.set(f.load(vector(count, spec.accumulate), here))
        state.take(f.splat(dy, count), first_number(f, axes, kernel), None if y is None else f.splat(y, count))
        f.store(state.result(), here)

    def row(start: Value, _: Value) -> None:
        offset = f.emit("i64", f"ptrtoint ptr {start.text} to i64")
        whole = axes[2].count // lanes * lanes
        with f.loop(0, whole, lanes) as k:
            add(offset + k * bytes_, lanes)
        with f.loop(whole, axes[2].count) as k:
            add(offset + k * bytes_, 1)

    # Rows are walked by their offsets: dx and x have the same.
    rows(f, axes, kernel, steps, f.emit("ptr", f"inttoptr i64 {base.text} to ptr"), row)
