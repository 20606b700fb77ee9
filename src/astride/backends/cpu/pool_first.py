"""Pooling where the channels come first: lanes are output columns.

A unit is one row of output. Its input rows are reduced into one, lane by lane, in a buffer that has the window's identity
left and right of the image; then the taps along the width are taken from there, so that nothing needs a mask. Extremes
met in that order give the same value and the same place as in row-major order as long as there is no NaN and no tie
between zeros of both signs: a tile in which either may matter is scanned again, window by window, exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...plan.kinds import Start, Tie, Unpicked
from .extremes import FIRST_TAP_STARTS, Extreme, Matching, Scan
from .ir import BITS, Function, Value, Variable, element, module, size, vector
from .machine import Machine
from .numbers import absolute
from .sums import Sum, Total
from .window import (
    DILATION,
    FIRST_FREE,
    KERNEL,
    OUT,
    SIZE,
    Place,
    Spec,
    State,
    Window,
    begin,
    fields,
    finish,
    finish_empty,
    first_number,
    kernel_function,
    new_state,
    walk,
)

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

    @property
    def reach(self) -> int:
        return (self.kernel - 1) * self.dilation + 1

    def tile(self, lanes: int) -> int:
        """Outputs whose columns fit the buffer, vectors read past the last one included."""
        return (BUFFER - self.reach - 2 * lanes * self.stride) // self.stride


@dataclass(frozen=True, slots=True)
class Wide:
    """Windows of many columns, one behind the other: lanes are taps of one window."""


def forward(spec: Spec, across: Across | Wide | None, machine: Machine) -> str:
    """The module of `forward`: a is x, b is y, c the offsets; units are rows (plane, depth, height) of y.

    Without `across` every window is scanned by itself, tap by tap.
    """
    f = kernel_function("forward")
    size_, out, kernel, dilation = (fields(f, start) for start in (SIZE, OUT, KERNEL, DILATION))
    tables = [f.at(f.geometry, f.field(f.geometry, TABLES + axis)) for axis in range(3)]
    pixel = spec.number.bytes
    steps = [dilation[0] * size_[1] * size_[2] * pixel, dilation[1] * size_[2] * pixel, dilation[2] * pixel]
    row = Rows(f, spec, kernel, steps, tables[2], size_[2], machine)
    with f.loop(f.begin, f.end) as unit:
        plane, place = unit // (out[0] * out[1]), unit % (out[0] * out[1])
        depth, height = Window.read(f, tables[0], place // out[1]), Window.read(f, tables[1], place % out[1])
        x = f.at(f.a, ((plane * size_[0] + depth.pixel) * size_[1] + height.pixel) * size_[2] * pixel)
        line = Line(depth, height, x, unit * out[2], Place(f.b, f.c).moved(f, spec, unit * out[2]))
        some = (depth.count * height.count) > 0 if across is not None else f.value("i1", False)
        with f.when(some, likely=True) as none:
            if isinstance(across, Wide):
                row.widely(line, out[2])
            elif across is not None:
                tile = f.field(f.geometry, TILE)
                with f.loop(0, out[2], tile) as start:
                    row.quickly(line, across, start, f.smaller(out[2] - start, tile))
            with none.otherwise():
                row.exactly(line, f.value("i64", 0), out[2])
    return module(f)


@dataclass(frozen=True, slots=True)
class Line:
    """One row of output: its windows' parts along depth and height, its first input row, and where results go."""

    depth: Window
    height: Window
    x: Value
    place: Value
    results: Place


class Rows:
    """The code of one row, exactly or quickly."""

    def __init__(
        self, f: Function, spec: Spec, kernel: list[Value], steps: list[Value], table: Value, width: Value, machine: Machine
    ) -> None:
        self.f, self.spec, self.kernel, self.steps, self.table, self.width = f, spec, kernel, steps, table, width
        self.held = spec.accumulate if isinstance(spec, Sum) else spec.number.computed
        wide = spec.index if isinstance(spec, Extreme) and spec.offsets else self.held
        self.lanes = machine.lanes(wide)
        self.values = f.scratch(self.held, BUFFER, 64)
        self.places = f.scratch(spec.index, BUFFER, 64) if isinstance(spec, Extreme) and spec.offsets else None

    # One window after the other

    def exactly(self, line: Line, start: Value, count: Value) -> None:
        """Windows start to start + count, each scanned tap by tap."""
        f, spec, bytes_ = self.f, self.spec, self.spec.number.bytes
        with f.loop(start, start + count) as column:
            axes = (line.depth, line.height, Window.read(f, self.table, column))
            place = line.results.moved(f, spec, column)
            state = new_state(f, spec, 1)
            with f.when((axes[0].count * axes[1].count * axes[2].count) > 0, likely=True) as none:
                base = f.at(line.x, axes[2].pixel * bytes_)
                tap = spec.number.load(f, base, 1)
                begin(f, state, tap, first_number(f, axes, self.kernel), line.place + column)
                walk(f, axes, self.kernel, self.steps, base, lambda p, n: state.take(spec.number.load(f, p, 1), n))
                finish(f, spec, state, axes, self.kernel, place)
                with none.otherwise():
                    finish_empty(f, spec, state, axes, place)

    # One window after the other, its taps in lanes

    def widely(self, line: Line, count: Value) -> None:
        """All windows of the row, whose taps along the width lie side by side."""
        f, spec, n = self.f, self.spec, self.lanes
        bytes_, step = spec.number.bytes, 2 * self.lanes
        with f.loop(0, count) as column:
            axes = (line.depth, line.height, Window.read(f, self.table, column))
            base, taps = f.at(line.x, axes[2].pixel * bytes_), axes[2].count
            whole, rest = taps // step * step, taps // n * n
            folds = [_Fold(f, spec, n), _Fold(f, spec, n), _Fold(f, spec, 1)]
            for fold in folds:
                fold.start()

            def row(start: Value, _: Value) -> None:
                with f.loop(0, whole, step) as i:
                    for k in range(2):
                        folds[k].take(spec.number.load(f, f.at(start, (i + k * n) * bytes_), n))
                with f.loop(whole, rest, n) as i:
                    folds[0].take(spec.number.load(f, f.at(start, i * bytes_), n))
                with f.loop(rest, taps) as i:
                    folds[2].take(spec.number.load(f, f.at(start, i * bytes_), 1))

            self._rows(line, base, row)
            folds[0].join(folds[1])
            folds[2].join_lanes(folds[0])
            with f.when(folds[2].sure(taps), likely=True) as doubtful:
                state = new_state(f, spec, 1)
                folds[2].give(state)
                finish(f, spec, state, axes, self.kernel, line.results.moved(f, spec, column))
                with doubtful.otherwise():
                    self.exactly(line, column, f.value("i64", 1))

    # All windows of a tile at once

    def quickly(self, line: Line, across: Across, start: Value, count: Value) -> None:
        """Windows start to start + count: rows into the buffer, then along the width; exactly where that might differ."""
        f = self.f
        doubt = f.variable("i1", False)
        first = start * across.stride + f.field(f.geometry, STARTS)
        reach = (count - 1) * across.stride + across.reach
        if across.rows is None:
            self._reduce_rows(line, first, reach, across, None, doubt)
        else:
            # Most lines have all their rows: those are written out; at the edges they are counted.
            whole = (line.depth.count.eq(across.rows[0])) & (line.height.count.eq(across.rows[1]))
            with f.when(whole, likely=True) as partly:
                self._reduce_rows(line, first, reach, across, across.rows, doubt)
                with partly.otherwise():
                    self._reduce_rows(line, first, reach, across, None, doubt)
        if isinstance(self.spec, Sum):
            self._along_width(line, across, start, count, doubt)
            return
        with f.when(doubt.get(), likely=False) as sure:
            self.exactly(line, start, count)
            with sure.otherwise():
                self._along_width(line, across, start, count, doubt)
                with f.when(doubt.get(), likely=False):
                    self.exactly(line, start, count)

    def _reduce_rows(
        self, line: Line, first: Value, reach: Value, across: Across, rows: tuple[int, int] | None, doubt: Variable
    ) -> None:
        """Columns first to first + reach of all the windows' rows reduced to one row of the buffer."""
        f, n = self.f, self.lanes
        left, right = f.larger(-first, 0), f.smaller(self.width - first, reach)
        with f.loop(0, left, n) as i:
            self._put_identity(i)
        with f.loop(f.larger(right, 0), reach + n * across.stride, n) as i:
            self._put_identity(i)
        # The identities at the right may have come first: where the image is, columns overwrite them.
        columns = right - left

        def block(lanes: int) -> Callable[[Value], None]:
            return lambda i: self._reduce_block(line, f.at(line.x, (first + i) * self.spec.number.bytes), i, lanes, rows, doubt)

        self._blocks(left, columns, block)

    def _blocks(self, start: Value, count: Value, block: Callable[[int], Callable[[Value], None]]) -> None:
        """Positions start to start + count in whole vectors, the last one overlapping; one by one where there are fewer."""
        f, n = self.f, self.lanes
        with f.when(count >= n, likely=True) as few:
            last = start + count - n
            with f.loop(start, last, n) as i:
                block(n)(i)
            block(n)(last)
            with few.otherwise(), f.loop(start, start + count) as i:
                block(1)(i)

    def _put_identity(self, i: Value) -> None:
        f, n = self.f, self.lanes
        identity = self.spec.worst(self.spec.start) if isinstance(self.spec, Extreme) else 0
        f.store(f.value(vector(n, self.held), identity), self._at(self.values, i))
        if isinstance(self.spec, Extreme) and self.places is not None:
            f.store(f.value(vector(n, self.spec.index), -1), self._at(self.places, i, self.spec.index))

    def _at(self, buffer: Value, i: Value, kind: str = "") -> Value:
        return self.f.at(buffer, i * size(kind or self.held))

    def _reduce_block(
        self, line: Line, x: Value, i: Value, lanes: int, rows: tuple[int, int] | None, doubt: Variable
    ) -> None:
        """One vector of columns: all rows of the window."""
        f, spec = self.f, self.spec
        if isinstance(spec, Sum):
            total = Total(f, spec, lanes)
            total.start(f.value("i64", 0), f.value("i64", 0))
            self._rows(line, x, lambda p, n: total.take(spec.number.load(f, p, lanes), n), rows)
            f.store(total.sum.get(), self._at(self.values, i))
            return
        assert isinstance(spec, Extreme)
        kind = vector(lanes, self.held)
        best = f.variable(kind, spec.worst(spec.start))
        place = f.variable(vector(lanes, spec.index), -1) if spec.offsets else None
        clean = f.variable(vector(lanes, "i1"), True) if spec.number.floating else None
        pending: list[Value] = []  # one comparison sees a NaN in either of two

        def take(pointer: Value, number: Value) -> None:
            tap = spec.number.load(f, pointer, lanes)
            tap = absolute(f, tap) if spec.magnitude else tap
            wins = _beats(spec, tap, best.get())
            best.set(f.select(wins, tap, best.get()))
            if place is not None:
                place.set(f.select(wins, f.splat(number.to(spec.index), lanes), place.get()))
            if clean is not None and rows is None:
                clean.set(clean.get() & tap.compare("ord", tap))
            elif clean is not None:
                pending.append(tap)
                if len(pending) == 2:
                    clean.set(clean.get() & pending[0].compare("ord", pending[1]))
                    pending.clear()

        self._rows(line, x, take, rows)
        if clean is not None and pending:
            clean.set(clean.get() & pending[0].compare("ord", pending[0]))
        f.store(best.get(), self._at(self.values, i))
        if place is not None and self.places is not None:
            f.store(place.get(), self._at(self.places, i, spec.index))
        if clean is not None:
            doubt.set(doubt.get() | f.any(~clean.get()))

    def _rows(
        self, line: Line, x: Value, visit: Callable[[Value, Value], None], rows: tuple[int, int] | None = None
    ) -> None:
        """Every row of the window at one column: `visit(pointer, place of the row's first tap)`. `rows` is how many layers and
        rows there are, where all are there."""
        f = self.f
        if rows is not None:
            for a in range(rows[0]):
                above = f.at(x, self.steps[0] * a) if a else x
                for b in range(rows[1]):
                    visit(f.at(above, self.steps[1] * b) if b else above, self.kernel[2] * (a * rows[1] + b))
            return
        with f.loop(0, line.depth.count) as i:
            plane, layer = f.at(x, i * self.steps[0]), (line.depth.number + i) * self.kernel[1]
            with f.loop(0, line.height.count) as j:
                visit(f.at(plane, j * self.steps[1]), (layer + line.height.number + j) * self.kernel[2])

    def _along_width(self, line: Line, across: Across, start: Value, count: Value, doubt: Variable) -> None:
        """From the buffer to the results."""
        f, n = self.f, self.lanes
        with f.when(count >= n, likely=True) as few:
            last = count - n
            with f.loop(0, last, n) as i:
                self._width_block(line, across, start, i, None, doubt)
            self._width_block(line, across, start, last, None, doubt)
            with few.otherwise():
                self._width_block(line, across, start, f.value("i64", 0), count, doubt)

    def _width_block(
        self, line: Line, across: Across, start: Value, i: Value, count: Value | None, doubt: Variable
    ) -> None:
        """One vector of outputs, of which `count` are wanted."""
        f, spec = self.f, self.spec
        taps = self._taps(self.values, self.held, across, i)
        if isinstance(spec, Sum):
            total = taps[0]
            for tap in taps[1:]:
                total = total + tap
            value = self._quotient(line, total, start + i)
        else:
            assert isinstance(spec, Extreme)
            value, place = self._choose(spec, across, taps, i, doubt)
            if place is not None:
                places = place.to(f"i{8 * spec.offsets}")
                self._store(places, line.results.moved(f, spec, start + i).offsets, count)
        self._store(spec.number.narrow(f, value), line.results.moved(f, spec, start + i).y, count)

    def _taps(self, buffer: Value, kind: str, across: Across, i: Value) -> list[Value]:
        """For each tap along the width the vector of what n outputs read: every stride-th column from the tap's own on."""
        f, n, s = self.f, self.lanes, across.stride
        groups: dict[int, Value] = {}
        found = []
        for j in range(across.kernel):
            group, phase = divmod(j * across.dilation, s)
            if group not in groups:
                base = f.at(buffer, (i * s + group * s) * size(kind))
                parts = [f.load(vector(n, kind), f.at(base, k * n * size(kind))) for k in range(s)]
                groups[group] = f.joined(parts + parts[-1:] * (_power_of_two(s) - s))
            whole = groups[group]
            found.append(whole if s == 1 else f.shuffle(whole, whole, [phase + s * lane for lane in range(n)]))
        return found

    def _choose(
        self, spec: Extreme, across: Across, taps: list[Value], i: Value, doubt: Variable
    ) -> tuple[Value, Value | None]:
        """The extreme among the taps along the width, and the least place of those equal to it."""
        f, best = self.f, taps[0]
        if self.places is None:
            zeros = None
            for tap in taps[1:]:
                best = f.select(_beats(spec, tap, best), tap, best)
            if spec.number.floating and len(taps) > 1 and not spec.magnitude:
                # Zeros of both signs: which came first is not known here.
                bits = vector(self.lanes, f"i{BITS[spec.number.computed]}")
                either, both = taps[0].bits(bits), taps[0].bits(bits)
                for tap in taps[1:]:
                    either, both = either | tap.bits(bits), both & tap.bits(bits)
                minus = 1 << (BITS[spec.number.computed] - 1)
                zeros = best.eq(0.0) & (either & minus).ne(both & minus)
                doubt.set(doubt.get() | f.any(zeros))
            return best, None
        rows = self._taps(self.places, spec.index, across, i)
        columns = [f.select(row.eq(-1), row, row + j) for j, row in enumerate(rows)]
        place = columns[0]
        for tap, column in zip(taps[1:], columns[1:], strict=True):
            wins = _beats(spec, tap, best) | (tap.eq(best) & column.below(place))
            best, place = f.select(wins, tap, best), f.select(wins, column, place)
        if spec.unpicked is Unpicked.FIRST_TAP or spec.start is Start.FIRST_TAP or spec.tie in FIRST_TAP_STARTS:
            doubt.set(doubt.get() | f.any(place.eq(-1)))
        return best, place

    def _quotient(self, line: Line, total: Value, column: Value) -> Value:
        """What sums become: over the divisors of their columns and of this row."""
        f, n, spec = self.f, self.lanes, self.spec
        assert isinstance(spec, Sum)
        state = Total(f, spec, n)
        kind = vector(n, "i64" if spec.whole else spec.accumulate)
        table = f.at(f.geometry, f.field(f.geometry, COUNTS + (1 if spec.p else 0)))
        along = f.load(kind, f.at(table, column * size(element(kind))))
        part = line.depth.count * line.height.count if spec.p else line.depth.divisor * line.height.divisor
        factor = part if spec.p else part * f.field(f.geometry, FIRST_FREE)
        number = along * f.splat(factor.to(element(kind)), n)
        taps = self.kernel[0] * self.kernel[1] * self.kernel[2]
        return state.finish(total, number, taps, number)

    def _store(self, value: Value, pointer: Value, count: Value | None) -> None:
        """A vector, or its first `count` lanes."""
        f, n = self.f, self.lanes
        if count is None or n == 1:
            f.store(value, pointer)
            return
        kind = element(value.type)
        if BITS[kind] >= 32:
            numbers = f.value(vector(n, "i32"), list(range(n)))
            f.store(value, pointer, mask=numbers < f.splat(count.to("i32"), n))
            return
        spill = f.scratch(value.type, 1)
        f.store(value, spill)
        with f.loop(0, count) as k:
            f.store(f.load(kind, f.at(spill, k * size(kind))), f.at(pointer, k * size(kind)))


class _Fold:
    """A running sum or extreme that does not care for the order of its taps, in every lane."""

    def __init__(self, f: Function, spec: Spec, count: int) -> None:
        self.f, self.spec, self.lanes = f, spec, count
        self._sum = Total(f, spec, count) if isinstance(spec, Sum) else None
        if isinstance(spec, Extreme):
            self._best = f.variable(vector(count, spec.number.computed), spec.worst(spec.start))
            self._clean = f.variable(vector(count, "i1"), True)

    def start(self) -> None:
        if self._sum is not None:
            self._sum.sum.set(0)
        elif isinstance(self.spec, Extreme):
            self._best.set(self.spec.worst(self.spec.start))
            self._clean.set(True)

    def take(self, tap: Value) -> None:
        if self._sum is not None:
            self._sum.take(tap, tap)
            return
        assert isinstance(self.spec, Extreme)
        tap = absolute(self.f, tap) if self.spec.magnitude else tap
        if self.spec.number.floating:
            self._clean.set(self._clean.get() & tap.compare("ord", tap))
        self._merge(tap)

    def _merge(self, value: Value) -> None:
        assert isinstance(self.spec, Extreme)
        self._best.set(self.f.select(_beats(self.spec, value, self._best.get()), value, self._best.get()))

    def join(self, other: _Fold) -> None:
        """Take in what another has, of as many lanes."""
        if self._sum is not None and other._sum is not None:
            self._sum.sum.set(self._sum.sum.get() + other._sum.sum.get())
        else:
            self._merge(other._best.get())
            self._clean.set(self._clean.get() & other._clean.get())

    def join_lanes(self, other: _Fold) -> None:
        """Take in all lanes of another; this one has one lane."""
        f, n = self.f, other.lanes
        value = other._sum.sum.get() if other._sum is not None else other._best.get()
        while n > 1:
            n //= 2
            low, high = (f.shuffle(value, value, range(k, k + n)) for k in (0, n))
            if other._sum is not None:
                value = low + high
            else:
                assert isinstance(self.spec, Extreme)
                value = f.select(_beats(self.spec, high, low), high, low)
        if self._sum is not None:
            self._sum.sum.set(self._sum.sum.get() + value)
        else:
            self._merge(value)
            self._clean.set(self._clean.get() & ~f.any(~other._clean.get()))

    def sure(self, taps: Value) -> Value:
        """Whether the order of the taps cannot matter: no NaN, and no zero whose sign might be another tap's."""
        if self._sum is not None or not self.spec.number.floating:
            return taps > 0
        return self._clean.get() & self._best.get().ne(0.0) & (taps > 0)

    def give(self, state: State) -> None:
        """The result to a window's registers."""
        if isinstance(state, Total) and self._sum is not None:
            state.sum.set(self._sum.sum.get())
        elif isinstance(state, Scan):
            state.value.set(self._best.get())


def _beats(spec: Extreme, a: Value, b: Value) -> Value:
    if spec.number.floating or spec.number.signed:
        return a > b if spec.up else a < b
    return a.compare("ugt" if spec.up else "ult", b)


def _power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()


def takes(spec: Spec, across: Across, lanes: int) -> bool:
    """Whether the quick way along the width is written for this window."""
    if isinstance(spec, Matching) or (isinstance(spec, Extreme) and spec.tie is Tie.LAST):
        return False
    return across.kernel <= 16 and across.stride <= 4 and across.tile(lanes) >= lanes
