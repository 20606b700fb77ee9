"""The gradient of small strided windows where the channels come last, cell by cell.

A cell is the `stride` pixels from where a window starts on; windows and cells go by the same numbers, and which windows have
which pixel of a cell, and as which tap, is the same in every cell. So the code of one cell is written out, with every number
a constant. Inside, all of its windows and pixels are there; at the edges each is asked for.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .gradients import Gather, Gradient
from .ir import Function, Value, module
from .ir_types import vector
from .machine import Machine
from .pool_last import over_channels
from .sums import POWERS
from .window import CHANNELS, FIRST_FREE, KERNEL, OUT, SIZE, fields, kernel_function, saved_part

PAD, COUNT, LOW, HIGH = (FIRST_FREE + 1 + 3 * k for k in range(4))
SHARE = FIRST_FREE + 13
TABLES = FIRST_FREE + 14
"""Fields, three numbers each: the padding before the first pixel, how many cells there are, and the cells from LOW to HIGH
that are whole; then the share of every window there, and three tables of shares, one an axis."""

MOST_TAPS, MOST_PIXELS = 32, 9
"""Taps of a window and pixels of a cell up to which cells are written out."""

Triple = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Cells:
    """The windows that kernels are written for. `streaming`: dx is large, and goes past the caches."""

    kernel: Triple
    stride: Triple
    streaming: bool = False

    @property
    def back(self) -> Triple:
        """Windows along each axis that reach into a cell: its own, and those before."""
        a, b, c = (-(-k // s) for k, s in zip(self.kernel, self.stride, strict=True))
        return a, b, c

    def windows(self) -> list[Triple]:
        """How many windows back each window lies that has pixels of the cell, the farthest first."""
        a, b, c = (range(n - 1, -1, -1) for n in self.back)
        return list(itertools.product(a, b, c))

    def pixels(self) -> list[Triple]:
        a, b, c = (range(s) for s in self.stride)
        return list(itertools.product(a, b, c))

    def tap(self, pixel: Triple, window: Triple) -> int | None:
        """The number of the tap that a pixel of the cell is in a window; None if it is none."""
        place = [p + w * s for p, w, s in zip(pixel, window, self.stride, strict=True)]
        if any(n >= k for n, k in zip(place, self.kernel, strict=True)):
            return None
        return (place[0] * self.kernel[1] + place[1]) * self.kernel[2] + place[2]


def takes(spec: Gradient, kernel: Triple, stride: Triple) -> bool:
    """Whether cells are written for these windows."""
    if spec.kind == "norm" and spec.p not in POWERS:
        return False
    return math.prod(kernel) <= MOST_TAPS and math.prod(stride) <= MOST_PIXELS and spec.offsets <= 1


def backward(spec: Gradient, cells: Cells, machine: Machine) -> str:
    """The module of `backward`: a is dx, b is dy, c the offsets or y, d is x; units are rows (image, depth, height) of cells."""
    f = kernel_function("backward")
    code = Code(f, spec, cells, machine)
    count, low, high = (fields(f, start) for start in (COUNT, LOW, HIGH))
    with f.loop(f.begin, f.end) as unit:
        image, row = unit // (count[0] * count[1]), unit % (count[0] * count[1])
        places = [row // count[1], row % count[1]]
        whole = _within(places[0], low[0], high[0]) & _within(places[1], low[1], high[1])
        with f.loop(0, count[2]) as column:
            cell = Cell(code, image, [*places, column])
            with f.when(whole & _within(column, low[2], high[2]), likely=True) as edge:
                code.over_channels(cell.whole, code.blocks)
                with edge.otherwise():
                    cell.ask()
                    code.over_channels(cell.partly, 1)
    if cells.streaming:
        f.call("void", "llvm.x86.sse.sfence")
    return module(f)


def _within(place: Value, low: Value, high: Value) -> Value:
    return (place - low).below(high - low)


class Code:
    """What is the same for every cell of a kernel."""

    def __init__(self, f: Function, spec: Gradient, cells: Cells, machine: Machine) -> None:
        self.f, self.spec, self.cells = f, spec, cells
        self.channels = f.field(f.geometry, CHANNELS)
        self.pixel = self.channels * spec.number.bytes
        self.size, self.out, self.kernel, self.pad = (fields(f, start) for start in (SIZE, OUT, KERNEL, PAD))
        self.taps = self.kernel[0] * self.kernel[1] * self.kernel[2]
        self.tables = [f.at(f.geometry, f.field(f.geometry, TABLES + axis)) for axis in range(3)]
        self.factor, self.share = f.field(f.geometry, FIRST_FREE), f.field(f.geometry, SHARE).to(spec.share)
        # Masks of bytes select any lanes where there are mask registers; elsewhere both sides have one width.
        self.bytewise = machine.vector_bytes == 64
        self.lanes = machine.lanes(spec.accumulate if self.bytewise or not spec.offsets else spec.index)
        pixels = math.prod(cells.stride)
        self.blocks = max((n for n in (4, 2, 1) if n * pixels <= machine.registers // 2), default=1)

    def over_channels(self, body: Callable[[Value, int, int], None], blocks: int) -> None:
        over_channels(self.f, self.channels, self.lanes, blocks, body)

    def saved(self, window: Value, lanes: int) -> Value | None:
        """What forward saved for `lanes` windows."""
        if self.bytewise and self.spec.kind == "offsets":
            return self.f.load(vector(lanes, "i8"), self.f.at(self.f.c, window))
        return saved_part(self.f, self.spec, window, lanes)

    def dy(self, window: Value, lanes: int) -> Value:
        number = self.spec.number
        return self.spec.wide(self.f, number.load(self.f, self.f.at(self.f.b, window * number.bytes), lanes))

    @property
    def summed(self) -> bool:
        """Whether windows of one divisor are summed before they are divided."""
        fewer = math.prod(self.cells.stride) < math.prod(self.cells.back)
        return fewer and self.spec.kind == "share" and self.spec.share != "i64"


class Cell:
    """One cell: where it lies, and its two ways."""

    def __init__(self, code: Code, image: Value, places: Sequence[Value]) -> None:
        self.code, self.f, self.spec, self.cells = code, code.f, code.spec, code.cells
        self.places = places
        self.first = [p * s - pad for p, s, pad in zip(places, self.cells.stride, code.pad, strict=True)]
        size, out, channels = code.size, code.out, code.channels
        line = (image * size[0] + self.first[0]) * size[1] + self.first[1]
        self.pixel = (line * size[2] + self.first[2]) * channels
        window = ((image * out[0] + places[0]) * out[1] + places[1]) * out[2] + places[2]
        self.windows = {w: (window - ((out[1] * w[0] + w[1]) * out[2] + w[2])) * channels for w in self.cells.windows()}
        self.pixels = {p: self.pixel + ((size[1] * p[0] + p[1]) * size[2] + p[2]) * channels for p in self.cells.pixels()}

    def whole(self, c: Value, lanes: int, blocks: int) -> None:
        """`blocks` vectors of channels from c on, where every window and pixel is there."""
        for k in range(blocks):
            self._whole(c + k * lanes, lanes)

    def _whole(self, c: Value, lanes: int) -> None:
        states = {p: self._state(p, c, lanes) for p in self.pixels}
        if not self.code.summed:
            self._gather(states, c, lanes, divided=True)
            for p, state in states.items():
                self._store(state.result(), p, c)
            return
        self._gather(states, c, lanes, divided=False)
        for p, state in states.items():
            total = state.result()
            mean = state.scaled(total, self.code.share)
            state.total.set(mean)
            # Where the sum has left the type's range, what is summed after the division may not.
            bad = ~(self.f.unary("fabs", mean) < math.inf)
            with self.f.when(self.f.any(bad), likely=False):
                again = self._state(p, c, lanes)
                self._gather({p: again}, c, lanes, divided=True)
                state.total.set(again.result())
            self._store(state.result(), p, c)

    def _state(self, pixel: Triple, c: Value, lanes: int) -> Gather:
        state = Gather(self.f, self.spec, lanes, self.code.taps)
        number = self.spec.number
        x = None
        if self.spec.reads_x:
            here = self.f.at(self.f.d, (self.pixels[pixel] + c) * number.bytes)
            x = self.spec.wide(self.f, number.load(self.f, here, lanes))
        state.start(x)
        return state

    def _gather(self, states: dict[Triple, Gather], c: Value, lanes: int, *, divided: bool) -> None:
        """What every window gives to those pixels that it has."""
        share = self.code.share
        for w, window in self.windows.items():
            taken = [(state, tap) for p, state in states.items() if (tap := self.cells.tap(p, w)) is not None]
            if not taken:
                continue
            dy, other = self.code.dy(window + c, lanes), self.code.saved(window + c, lanes)
            if divided:
                dy = taken[0][0].scaled(dy, share)
            for state, tap in taken:
                state.take(dy, self.f.value("i64", tap), other)

    def _store(self, value: Value, pixel: Triple, c: Value, *, streaming: bool = True) -> None:
        here = self.f.at(self.f.a, (self.pixels[pixel] + c) * self.spec.number.bytes)
        self.f.store(self.spec.narrow(self.f, value), here, streaming=streaming and self.cells.streaming)

    # At the edges

    def ask(self) -> None:
        """Which windows and pixels are there, and the windows' shares."""
        code, cells = self.code, self.cells
        there = [[self._along(axis, w, code.out[axis]) for w in range(n)] for axis, n in enumerate(cells.back)]
        pixels = [
            [(self.first[axis] + p).below(code.size[axis]) for p in range(n)] for axis, n in enumerate(cells.stride)
        ]
        self._there = {w: there[0][w[0]] & there[1][w[1]] & there[2][w[2]] for w in self.windows}
        self._seen = {p: pixels[0][p[0]] & pixels[1][p[1]] & pixels[2][p[2]] for p in self.pixels}
        self._shares = dict.fromkeys(self.windows, code.share)
        if self.spec.kind in ("share", "norm"):
            parts = [[self._part(axis, w, there[axis][w]) for w in range(n)] for axis, n in enumerate(cells.back)]
            self._shares = {
                w: (parts[0][w[0]] * parts[1][w[1]] * parts[2][w[2]] * code.factor).to(self.spec.share) for w in self.windows
            }

    def _along(self, axis: int, back: int, out: Value) -> Value:
        return (self.places[axis] - back).below(out)

    def _part(self, axis: int, back: int, there: Value) -> Value:
        """The axis's part of a window's share; the first window's where there is none."""
        window = self.f.select(there, self.places[axis] - back, 0)
        return self.f.load("i64", self.f.at(self.code.tables[axis], window * 8))

    def partly(self, c: Value, lanes: int, _: int) -> None:
        """One vector of channels from c on: windows and pixels that are there."""
        for p in self.pixels:
            with self.f.when(self._seen[p]):
                state = self._state(p, c, lanes)
                for w, window in self.windows.items():
                    tap = self.cells.tap(p, w)
                    if tap is None:
                        continue
                    with self.f.when(self._there[w]):
                        dy = state.scaled(self.code.dy(window + c, lanes), self._shares[w])
                        state.take(dy, self.f.value("i64", tap), self.code.saved(window + c, lanes))
                self._store(state.result(), p, c, streaming=False)
