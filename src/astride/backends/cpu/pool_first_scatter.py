"""The gradient of pooling where the channels come first, plane by plane: dx is cleared and every window adds what it gives.

A unit is one plane of dx, which stays in the cache meanwhile, so the order of additions depends on the plane alone.
Extremes add to one tap each; averages and norms of wide windows add to rows of taps, whose lanes lie side by side.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .gradients import Gather, Gradient
from .ir import Function, Value, module
from .ir_types import size, vector
from .machine import Machine
from .window import DILATION, FIRST_FREE, KERNEL, OUT, SIZE, Window, blocks, bring, fields, first_number, kernel_function, rows

TABLES, PLACES, STARTS = FIRST_FREE + 1, FIRST_FREE + 4, FIRST_FREE + 5
"""Fields: three tables of windows, or for extremes only where they start, in pixels of the plane; for each number of a tap
how many pixels it lies from its window's start; the table of `starts_table`."""

STEPS, NUMBERS = (16, 4, 1), 7
"""How many windows' places are computed at once, the most first; numbers before the starts in `starts_table`."""

Numbers = NDArray[np.int64]

LARGEST_PLANE, LARGEST_IN_ORDER = 1 << 20, 1 << 30
"""Bytes of a plane up to which it is taken as one unit; as much where all its windows are taken in the order of memory."""

TOGETHER, FEW_TOGETHER, SMALL_PLANE = 8, 4, 1 << 13
"""Planes taken together where each window gives to one tap: neighbours often give to the same, and must wait for each other.
Fewer where planes have more bytes than this: each is a stream of its own for the memory to follow."""

MOST_TAPS = 1 << 12
FEWEST_PLANES = 16
"""Planes from which there are enough units; with fewer, rows are."""


def backward(spec: Gradient, group: int, machine: Machine) -> str:
    """The module of `backward`: a is dx, b is dy, c the offsets or y, d is x; units are planes of dx, taken `group` at a time."""
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
        if in_order(spec):
            if count == TOGETHER:  # so small that the memory does not see where they go on
                bring(f, f.at(f.c, (first + count) * windows), windows * count)
                bring(f, f.at(f.b, (first + count) * windows * bytes_), windows * (count * bytes_))
                bring(f, f.at(f.a, (first + count) * pixels * bytes_), pixels * (count * bytes_), write=True)
            InOrder(f, spec, numbers, pixels, windows).every_window()
            return
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

    grouped = f.begin + (f.end - f.begin) // group * group
    with f.loop(f.begin, grouped, group) as first:
        planes(first, group)
    if group > 1:
        with f.loop(grouped, f.end) as first:
            planes(first, 1)
    return module(f)


def together(spec: Gradient, plane_bytes: int) -> int:
    """Planes taken together."""
    if spec.kind != "offsets":
        return 1
    return TOGETHER if plane_bytes <= SMALL_PLANE else FEW_TOGETHER


def in_order(spec: Gradient) -> bool:
    """Whether all windows of a plane are taken in the order of memory: numbers of taps are bytes, and x is not asked."""
    return spec.kind == "offsets" and spec.offsets == 1 and not spec.reads_x


class InOrder:
    """The code that gives dy to one tap of each window, a step of windows of some planes at a time.

    Where they go is computed in lanes, and kept in a buffer from which the additions take it one by one.
    """

    def __init__(self, f: Function, spec: Gradient, planes: list[Value], pixels: Value, windows: Value) -> None:
        self.f, self.spec, self.bytes, self.windows = f, spec, spec.number.bytes, windows
        self.dx = [f.at(f.a, plane * pixels * self.bytes) for plane in planes]
        self.dy = [f.at(f.b, plane * windows * self.bytes) for plane in planes]
        self.offsets = [f.at(f.c, plane * windows) for plane in planes]
        self.places = [f.scratch("i32", STEPS[0], 64) for _ in planes]
        table = f.at(f.geometry, f.field(f.geometry, STARTS))
        self.numbers = [f.field(table, k).to("i32") for k in range(NUMBERS)]
        self.starts = f.at(table, NUMBERS * 8)

    def every_window(self) -> None:
        """Add what all windows give."""
        f, done = self.f, self.f.value("i64", 0)
        for step in STEPS:
            end = self.windows // step * step
            with f.loop(done, end, step) as window:
                self._step(window, step)
            done = end

    def _step(self, window: Value, count: int) -> None:
        f, missing = self.f, None
        start = f.load(vector(count, "i32"), f.at(self.starts, window * 4))
        for offsets, places in zip(self.offsets, self.places, strict=True):
            number = f.load(vector(count, "i8"), f.at(offsets, window))
            none = number.eq(-1)
            missing = none if missing is None else missing | none
            f.store(start + self._place(number.widened("i32"), count), places)
        assert missing is not None
        with f.when(f.any(missing), likely=False) as complete:
            with f.loop(0, count) as j:
                for k, offsets in enumerate(self.offsets):
                    with f.when(f.load("i8", f.at(offsets, window + j)).ne(-1)):
                        self._add(k, window + j, f.at(self.places[k], j * 4))
            with complete.otherwise():
                for nth in sorted(range(count), key=lambda n: n % 4):  # neighbours often give to the same tap, and would wait
                    for k in range(len(self.dx)):
                        self._add(k, window + nth, f.at(self.places[k], nth * 4))

    def _place(self, number: Value, count: int) -> Value:
        """Pixels from a window's start to the tap of a number. Divisions are multiplications: exact for bytes."""
        layer_taps, by_layer, row_taps, by_row, layer, row, step = [self.f.splat(n, count) for n in self.numbers]
        d = self._shifted(number * by_layer)
        rest = number - d * layer_taps
        r = self._shifted(rest * by_row)
        return d * layer + r * row + (rest - r * row_taps) * step

    def _shifted(self, value: Value) -> Value:
        return self.f.emit(value.type, f"lshr {value.type} {value.text}, {self.f.value(value.type, 16).text}")

    def _add(self, k: int, window: Value, place: Value) -> None:
        f, kind = self.f, self.spec.accumulate
        here = f.at(self.dx[k], f.load("i32", place).widened("i64") * self.bytes)
        f.store(f.load(kind, here) + f.load(kind, f.at(self.dy[k], window * self.bytes)), here)


def starts_table(kernels: Sequence[int], sizes: Sequence[int], dilations: Sequence[int], starts: Sequence[Numbers]) -> Numbers:
    """What `InOrder` reads: the numbers that turn a tap's number into pixels, then where each window of a plane starts.

    `starts` are those along each axis, in pixels of the plane.
    """
    layer, row = kernels[1] * kernels[2], kernels[2]
    inverses = [-(-(1 << 16) // max(n, 1)) for n in (layer, row)]
    steps = [dilations[0] * sizes[1] * sizes[2], dilations[1] * sizes[2], dilations[2]]
    numbers = np.array([layer, inverses[0], row, inverses[1], *steps], np.int64)
    first = (starts[0][:, None, None] + starts[1][:, None] + starts[2]).ravel().astype(np.int32)
    return np.concatenate([numbers, np.pad(first, (0, len(first) % 2)).view(np.int64)])


def _clear(f: Function, dx: Value, count: Value, kind: str, lanes: int) -> None:
    bytes_ = size(vector(lanes, kind)) // lanes
    blocks(f, lanes, f.value("i64", 0), count, lambda i, n: f.store(f.value(vector(n, kind), 0), f.at(dx, i * bytes_)))


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
