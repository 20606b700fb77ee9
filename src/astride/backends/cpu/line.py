"""One row of output where the channels come first: what every way of computing it shares, and the exact way."""

from __future__ import annotations

from dataclasses import dataclass

from .extremes import Extreme
from .ir import Function, Value
from .machine import Machine
from .sums import Sum
from .window import FIRST_FREE, Place, Spec, Window, begin, finish, finish_empty, first_number, new_state, walk

TABLES, STARTS, TILE, COUNTS = FIRST_FREE + 4, FIRST_FREE + 1, FIRST_FREE + 2, FIRST_FREE + 7
"""Fields: three tables of windows; the column where the first window starts (-pad); outputs of one tile; the columns'
divisors and counts as the type sums are formed in."""

BUFFER = 2048
"""Columns of the buffer: what one tile reads, identities included."""


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


def beats(spec: Extreme, a: Value, b: Value) -> Value:
    if spec.number.floating or spec.number.signed:
        return a > b if spec.up else a < b
    return a.compare("ugt" if spec.up else "ult", b)
