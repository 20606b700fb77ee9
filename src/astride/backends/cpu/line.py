"""One row of output where the channels come first: what every way of computing it shares, and the exact way."""

from __future__ import annotations

from dataclasses import dataclass

from .extremes import Extreme
from .ir import Function, Value
from .machine import Machine
from .sums import Sum
from .window import FIRST_FREE, Place, Spec, Window, begin, finish, finish_empty, first_number, new_state, walk

STARTS, TILE, BATCH, SEGMENT, TABLES = (FIRST_FREE + k for k in range(1, 6))
COUNTS = TABLES + 3
"""Fields: the column where the first window starts (-pad); outputs of one tile; rows taken together and the part of the
buffer that each has; three tables of windows; the columns' divisors and counts as the type sums are formed in."""

BUFFER = 2048
"""Columns of the buffer: what one tile reads, identities included."""

TOGETHER = 8
"""Rows taken together, if the buffer holds them: what is stored for one row has reached the cache before it is read."""


@dataclass(frozen=True, slots=True)
class Across:
    """The window along the width, which kernels are written for, and its rows where they are few enough to be written out."""

    kernel: int
    stride: int
    dilation: int
    rows: tuple[int, int] | None = None
    group: int = 1
    """Channels that lie side by side in each pixel: a few, channels last. Columns are then counted in numbers, not pixels."""

    @property
    def reach(self) -> int:
        return (self.kernel - 1) * self.dilation + 1

    def tile(self, lanes: int) -> int:
        """Outputs whose columns fit the buffer, vectors read past the last one included."""
        return (BUFFER // self.group - self.reach - 2 * lanes * self.stride) // self.stride

    def segment(self, outputs: int, lanes: int) -> int:
        """Numbers of the buffer that a row of this many outputs takes."""
        return -((((outputs - 1) + 2 * lanes) * self.stride + self.reach) * self.group // -16) * 16


@dataclass(frozen=True, slots=True)
class Wide:
    """Windows of many columns, one behind the other: lanes are taps of one window."""


@dataclass(frozen=True, slots=True)
class Line:
    """One row of output: its windows' parts along depth and height, its first input row, and where results go."""

    depth: Window
    height: Window
    x: Value
    place: Value
    results: Place

    @property
    def some(self) -> Value:
        """Whether there is a row inside the input."""
        return (self.depth.count * self.height.count) > 0


class Exactly:
    """The code of one row, window after window."""

    def __init__(
        self,
        f: Function,
        spec: Spec,
        kernel: list[Value],
        steps: list[Value],
        table: Value,
        width: Value,
        group: int,
        machine: Machine,
    ) -> None:
        self.f, self.spec, self.kernel, self.steps, self.table = f, spec, kernel, steps, table
        self.width, self.group = width * group, group
        self.held = spec.accumulate if isinstance(spec, Sum) else spec.number.computed
        wide = spec.index if isinstance(spec, Extreme) and spec.offsets else self.held
        self.lanes = machine.lanes(wide)
        self._reserve()

    def _reserve(self) -> None:
        """Room in the frame that this way of computing a row needs."""

    # One window after the other

    def exactly(self, line: Line, start: Value, count: Value) -> None:
        """Windows start to start + count, each scanned tap by tap."""
        f, spec, bytes_ = self.f, self.spec, self.spec.number.bytes
        with f.loop(start, start + count) as column:
            axes = (line.depth, line.height, Window.read(f, self.table, column // self.group))
            place = line.results.moved(f, spec, column)
            state = new_state(f, spec, 1)
            with f.when((axes[0].count * axes[1].count * axes[2].count) > 0, likely=True) as none:
                base = f.at(line.x, (axes[2].pixel * self.group + column % self.group) * bytes_)
                tap = spec.number.load(f, base, 1)
                begin(f, state, tap, first_number(f, axes, self.kernel), line.place + column)
                walk(f, axes, self.kernel, self.steps, base, lambda p, n: state.take(spec.number.load(f, p, 1), n))
                finish(f, spec, state, axes, self.kernel, place)
                with none.otherwise():
                    finish_empty(f, spec, state, axes, place)
