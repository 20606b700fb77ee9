"""Small windows one or two columns apart where the channels come first: lanes are output columns, straight from the image.

What n outputs read of a row is (n - 1) stride + kernel columns: as many vectors as the stride, and one more that ends with
the last of them. These are reduced over the window's rows in registers; then the taps along the width are picked from them.
Only where a window reaches over the image's side are loads masked. A block with a NaN, or with zeros of both signs where
they matter, is scanned again window by window (see line_quick).
"""

from __future__ import annotations

from collections.abc import Callable

from .extremes import Extreme
from .ir import Value, Variable
from .ir_types import BITS, vector
from .line import STARTS, Across, Line
from .line_quick import Quickly
from .machine import Machine
from .sums import Sum, Total
from .window import Spec, rows

STRIDES, KERNELS = (1, 2), (2, 9)
"""Strides, and the least and the greatest number of columns of a window, that this is written for."""


class Directly(Quickly):
    """The code of one row, a block of outputs at a time."""

    def _reserve(self) -> None:
        """No buffer."""

    def directly(self, line: Line, across: Across, columns: Value) -> None:
        """All windows of the line."""
        f, n = self.f, self.lanes
        last, reach = f.larger(columns - n, 0), (n - 1) * across.stride + across.kernel

        def counted(i: Value, first: Value) -> None:
            self._block(line, across, i, first, columns, None, masked=True)

        def written_out(i: Value, first: Value) -> None:
            inside = (first >= 0) & ((first + reach) <= self.width) & (columns >= n)
            with f.when(inside, likely=True) as outside:
                self._block(line, across, i, first, columns, across.rows, masked=False)
                with outside.otherwise():
                    self._block(line, across, i, first, columns, across.rows, masked=True)

        def every(block: Callable[[Value, Value], None]) -> None:
            with f.loop(0, columns, n) as at:
                i = f.smaller(at, last)
                block(i, i * across.stride + f.field(f.geometry, STARTS))

        if across.rows is None:
            every(counted)
            return
        # Most lines have all their rows: those are written out; at the edges they are counted.
        with f.when(line.depth.count.eq(across.rows[0]) & line.height.count.eq(across.rows[1]), likely=True) as partly:
            every(written_out)
            with partly.otherwise():
                every(counted)

    def _block(
        self,
        line: Line,
        across: Across,
        i: Value,
        first: Value,
        columns: Value,
        whole: tuple[int, int] | None,
        *,
        masked: bool,
    ) -> None:
        """Outputs i to i + n, whose taps begin at column `first`; fewer where the row has fewer."""
        f, spec, n = self.f, self.spec, self.lanes
        starts = [n * k for k in range(across.stride)] + [_last(across, n)] * (across.kernel > across.stride)
        masks = [self._mask(first + start) if masked else None for start in starts]
        x = f.at(line.x, first * spec.number.bytes)
        doubt = f.variable("i1", False)
        sums, places = self._reduced(line, x, starts, masks, whole, doubt)
        taps = self._picked(across, sums)
        count = f.smaller(columns, f.value("i64", n)) if masked else None
        results = line.results.moved(f, spec, i)
        if isinstance(spec, Sum):
            total = taps[0]
            for tap in taps[1:]:
                total = total + tap
            self._store(spec.number.narrow(f, self._quotient(line, total, i)), results.y, count)
            return
        assert isinstance(spec, Extreme)
        value, place = self._choose(spec, taps, self._picked(across, places) if places else None, doubt)
        with f.when(doubt.get(), likely=False) as sure:
            self.exactly(line, i, f.smaller(columns, f.value("i64", n)))
            with sure.otherwise():
                self._store_places(place, results.offsets, count)
                self._store(spec.number.narrow(f, value), results.y, count)

    def _mask(self, column: Value) -> Value:
        """Which of the columns from this one on lie in the image."""
        f, n = self.f, self.lanes
        numbers = f.value(vector(n, "i32"), list(range(n)))
        low, high = (f.splat(f.larger(f.smaller(edge, n), 0).to("i32"), n) for edge in (-column, self.width - column))
        return (numbers >= low) & (numbers < high)

    def _reduced(
        self,
        line: Line,
        x: Value,
        starts: list[int],
        masks: list[Value | None],
        whole: tuple[int, int] | None,
        doubt: Variable,
    ) -> tuple[list[Value], list[Value]]:
        """The vectors of columns that begin at `starts`, reduced over the window's rows, and the rows' numbers."""
        f, spec, n = self.f, self.spec, self.lanes
        axes, number = (line.depth, line.height), spec.number
        kind = vector(n, number.stored)
        if isinstance(spec, Sum):
            totals = [Total(f, spec, n) for _ in starts]
            for total in totals:
                total.start(f.value("i64", 0), f.value("i64", 0))

            def add(pointer: Value, row: Value) -> None:
                for total, start, mask in zip(totals, starts, masks, strict=True):
                    total.take(f.load(kind, f.at(pointer, start * number.bytes), mask=mask), row)

            rows(f, axes, self.kernel, self.steps, x, add, whole)
            return [total.sum.get() for total in totals], []
        assert isinstance(spec, Extreme)
        worst = spec.worst(spec.start)
        best = [f.variable(kind, worst) for _ in starts]
        places = [f.variable(vector(n, spec.index), -1) for _ in starts] if spec.offsets else []
        clean = f.variable(vector(n, "i1"), True)
        waiting: list[Value] = []  # one comparison sees a NaN in either of two

        def take(pointer: Value, row: Value) -> None:
            for k, (start, mask) in enumerate(zip(starts, masks, strict=True)):
                tap = f.load(kind, f.at(pointer, start * number.bytes), mask=mask, other=worst)
                wins = spec.beats(tap, best[k].get())
                best[k].set(f.select(wins, tap, best[k].get()))
                if places:
                    places[k].set(f.select(wins, f.splat(row.to(spec.index), n), places[k].get()))
                if number.floating:
                    waiting.append(tap)
                if len(waiting) == 2 or (waiting and whole is None):
                    clean.set(clean.get() & waiting[0].compare("ord", waiting[-1]))
                    waiting.clear()

        rows(f, axes, self.kernel, self.steps, x, take, whole)
        if waiting:
            clean.set(clean.get() & waiting[0].compare("ord", waiting[0]))
        if number.floating:
            doubt.set(f.any(~clean.get()))
        return [value.get() for value in best], [place.get() for place in places]

    def _picked(self, across: Across, vectors: list[Value]) -> list[Value]:
        """For each tap along the width what n outputs have there: every stride-th column from the tap's own on."""
        f, n, stride = self.f, self.lanes, across.stride
        found = []
        for tap in range(across.kernel):
            columns = [stride * lane + tap for lane in range(n)]
            inside = [c if c < stride * n else -1 for c in columns]
            picked = f.shuffle(vectors[0], vectors[stride - 1], inside) if tap or stride > 1 else vectors[0]
            if columns[-1] >= stride * n:
                last = _last(across, n)
                picked = f.shuffle(picked, vectors[-1], [k if c < stride * n else n + c - last for k, c in enumerate(columns)])
            found.append(picked)
        return found


def _last(across: Across, lanes: int) -> int:
    """Where the vector begins that ends with the last column a block reads."""
    return (lanes - 1) * across.stride + across.kernel - lanes


def takes(spec: Spec, across: Across, machine: Machine) -> bool:
    """Whether this way is written for the window."""
    if across.stride not in STRIDES or across.dilation != 1 or across.group != 1:
        return False
    if across.stride == 1 and spec.offsets:  # places of all columns as well leave no registers
        return False
    if isinstance(spec, Sum):
        held, plain = spec.accumulate, spec.p >= 0
    else:
        held, plain = spec.number.computed, isinstance(spec, Extreme) and not spec.magnitude
    fits = KERNELS[0] <= across.kernel <= min(KERNELS[1], machine.lanes(held) + 1)
    return plain and fits and spec.number.stored == held and BITS[held] >= 32 and machine.lanes(held) >= 4
