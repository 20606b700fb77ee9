"""Small windows where the channels come first: lanes are output columns, all windows of a tile at once.

The rows of the windows are reduced into one, lane by lane, in a buffer that has the window's identity left and right of
the image; then the taps along the width are taken from there, so that nothing needs a mask. Extremes met in that order
give the same value and the same place as in row-major order as long as there is no NaN and no tie between zeros of both
signs: a tile in which either may matter is scanned again, window by window, exactly.
"""

from __future__ import annotations

from collections.abc import Callable

from ...plan.kinds import Start, Tie, Unpicked
from .extremes import FIRST_TAP_STARTS, Extreme, Matching
from .ir import Value, Variable
from .ir_types import BITS, element, size, vector
from .line import BUFFER, COUNTS, SEGMENT, STARTS, TOGETHER, Across, Exactly, Line
from .numbers import absolute
from .sums import Sum, Total
from .window import FIRST_FREE, Spec, blocks
from .window import rows as every_row


class Quickly(Exactly):
    """The code of one row, all windows of a tile at once."""

    def _reserve(self) -> None:
        f, spec = self.f, self.spec
        self._values = self.values = f.scratch(self.held, BUFFER, 64)
        self._places = self.places = f.scratch(spec.index, BUFFER, 64) if isinstance(spec, Extreme) and spec.offsets else None
        self.doubts = f.scratch("i8", TOGETHER)

    def reduce(self, line: Line, across: Across, start: Value, count: Value, number: Value) -> None:
        """Windows start to start + count of the line, the `number`th of its batch: their rows into the buffer."""
        f = self.f
        self._begin(number)
        doubt = f.variable("i1", False)
        first = start * across.stride + f.field(f.geometry, STARTS) * self.group
        reach = (count - self.group) * across.stride + across.reach * self.group
        if across.rows is None:
            self._reduce_rows(line, first, reach, across, None, doubt)
        else:
            # Most lines have all their rows: those are written out; at the edges they are counted.
            whole = (line.depth.count.eq(across.rows[0])) & (line.height.count.eq(across.rows[1]))
            with f.when(whole, likely=True) as partly:
                self._reduce_rows(line, first, reach, across, across.rows, doubt)
                with partly.otherwise():
                    self._reduce_rows(line, first, reach, across, None, doubt)
        f.store(doubt.get().to("i8"), f.at(self.doubts, number))

    def finish(self, line: Line, across: Across, start: Value, count: Value, number: Value) -> None:
        """From the buffer along the width to the results; exactly where that might differ."""
        f = self.f
        self._begin(number)
        doubt = f.variable("i1", False)
        if isinstance(self.spec, Sum):
            self._along_width(line, across, start, count, doubt)
            return
        with f.when(f.load("i8", f.at(self.doubts, number)).ne(0), likely=False) as sure:
            self.exactly(line, start, count)
            with sure.otherwise():
                self._along_width(line, across, start, count, doubt)
                with f.when(doubt.get(), likely=False):
                    self.exactly(line, start, count)

    def _begin(self, number: Value) -> None:
        """The part of the buffer that belongs to a line."""
        f, at = self.f, number * self.f.field(self.f.geometry, SEGMENT)
        self.values = f.at(self._values, at * size(self.held))
        if isinstance(self.spec, Extreme) and self._places is not None:
            self.places = f.at(self._places, at * size(self.spec.index))

    def _reduce_rows(
        self, line: Line, first: Value, reach: Value, across: Across, rows: tuple[int, int] | None, doubt: Variable
    ) -> None:
        """Columns first to first + reach of all the windows' rows reduced to one row of the buffer."""
        f, n = self.f, self.lanes
        left, right = f.larger(-first, 0), f.smaller(self.width - first, reach)
        with f.loop(0, left, n) as i:
            self._put_identity(i)
        with f.loop(f.larger(right, 0), reach + n * across.stride * self.group, n) as i:
            self._put_identity(i)
        # The identities at the right may have come first: where the image is, columns overwrite them.

        def block(i: Value, lanes: int) -> None:
            self._reduce_block(line, f.at(line.x, (first + i) * self.spec.number.bytes), i, lanes, rows, doubt)

        blocks(f, n, left, right, block)

    def _put_identity(self, i: Value) -> None:
        f, n = self.f, self.lanes
        identity = self.spec.worst(self.spec.start) if isinstance(self.spec, Extreme) else 0
        f.store(f.value(vector(n, self.held), identity), self._at(self.values, i))
        if isinstance(self.spec, Extreme) and self.places is not None:
            f.store(f.value(vector(n, self.spec.index), -1), self._at(self.places, i, self.spec.index))

    def _at(self, buffer: Value, i: Value, kind: str = "") -> Value:
        return self.f.at(buffer, i * size(kind or self.held))

    def _reduce_block(self, line: Line, x: Value, i: Value, lanes: int, rows: tuple[int, int] | None, doubt: Variable) -> None:
        """One vector of columns: all rows of the window."""
        f, spec = self.f, self.spec
        if isinstance(spec, Sum):
            total = Total(f, spec, lanes)
            total.start(f.value("i64", 0), f.value("i64", 0))
            self._each_row(line, x, lambda p, n: total.take(spec.number.load(f, p, lanes), n), rows)
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
            wins = spec.beats(tap, best.get())
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

        self._each_row(line, x, take, rows)
        if clean is not None and pending:
            clean.set(clean.get() & pending[0].compare("ord", pending[0]))
        f.store(best.get(), self._at(self.values, i))
        if place is not None and self.places is not None:
            f.store(place.get(), self._at(self.places, i, spec.index))
        if clean is not None:
            doubt.set(doubt.get() | f.any(~clean.get()))

    def _each_row(self, line: Line, x: Value, visit: Callable[[Value, Value], None], whole: tuple[int, int] | None) -> None:
        every_row(self.f, (line.depth, line.height), self.kernel, self.steps, x, visit, whole)

    def _along_width(self, line: Line, across: Across, start: Value, count: Value, doubt: Variable) -> None:
        """From the buffer to the results."""
        f, n = self.f, self.lanes * self.group
        with f.when(count >= n, likely=True) as few:
            last = count - n
            with f.loop(0, last, n) as i:
                self._width_block(line, across, start, i, None, doubt)
            self._width_block(line, across, start, last, None, doubt)
            with few.otherwise():
                self._width_block(line, across, start, f.value("i64", 0), count, doubt)

    def _width_block(self, line: Line, across: Across, start: Value, i: Value, count: Value | None, doubt: Variable) -> None:
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
            rows = None if self.places is None else self._taps(self.places, spec.index, across, i)
            value, place = self._choose(spec, taps, rows, doubt)
            self._store_places(place, line.results.moved(f, spec, start + i).offsets, count)
        self._store(spec.number.narrow(f, value), line.results.moved(f, spec, start + i).y, count)

    def _taps(self, buffer: Value, kind: str, across: Across, i: Value) -> list[Value]:
        """For each tap along the width the vector of what n outputs read: every stride-th column from the tap's own on."""
        f, n, s, g = self.f, self.lanes, across.stride, self.group
        loaded: dict[int, Value] = {}
        found = []
        for j in range(across.kernel):
            far, phase = divmod(j * across.dilation, s)
            if far not in loaded:
                base = f.at(buffer, (i * s + far * s * g) * size(kind))
                parts = [f.load(vector(n, kind), f.at(base, k * n * size(kind))) for k in range(s * g)]
                loaded[far] = f.joined(parts)
            whole = loaded[far]
            if s == 1:
                found.append(whole if g == 1 else f.shuffle(whole, whole, range(n * g)))
                continue
            found.append(f.shuffle(whole, whole, [(pixel * s + phase) * g + c for pixel in range(n) for c in range(g)]))
        return found

    def _choose(
        self, spec: Extreme, taps: list[Value], rows: list[Value] | None, doubt: Variable
    ) -> tuple[Value, Value | None]:
        """The extreme among the taps along the width, and the least place of those equal to it; `rows` are the numbers of
        the rows' first taps."""
        f, best = self.f, taps[0]
        if rows is None:
            for tap in taps[1:]:
                best = f.select(spec.beats(tap, best), tap, best)
            if spec.number.floating and len(taps) > 1 and not spec.magnitude:
                # Zeros of both signs: which came first is not known here.
                bits = vector(self.lanes * self.group, f"i{BITS[spec.number.computed]}")
                either, both = taps[0].bits(bits), taps[0].bits(bits)
                for tap in taps[1:]:
                    either, both = either | tap.bits(bits), both & tap.bits(bits)
                minus = 1 << (BITS[spec.number.computed] - 1)
                zeros = best.eq(0.0) & (either & minus).ne(both & minus)
                doubt.set(doubt.get() | f.any(zeros))
            return best, None
        columns = [f.select(row.eq(-1), row, row + j) for j, row in enumerate(rows)]
        place = columns[0]
        for tap, column in zip(taps[1:], columns[1:], strict=True):
            wins = spec.beats(tap, best) | (tap.eq(best) & column.below(place))
            best, place = f.select(wins, tap, best), f.select(wins, column, place)
        if spec.unpicked is Unpicked.FIRST_TAP or spec.start is Start.FIRST_TAP or spec.tie in FIRST_TAP_STARTS:
            doubt.set(doubt.get() | f.any(place.eq(-1)))
        return best, place

    def _quotient(self, line: Line, total: Value, column: Value) -> Value:
        """What sums become: over the divisors of their columns and of this row."""
        f, n, spec = self.f, self.lanes * self.group, self.spec
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

    def _store_places(self, place: Value | None, pointer: Value, count: Value | None) -> None:
        """Places as they are saved, where they are."""
        if place is not None:
            self._store(place.to(f"i{8 * self.spec.offsets}"), pointer, count)

    def _store(self, value: Value, pointer: Value, count: Value | None) -> None:
        """A vector, or its first `count` lanes."""
        f, n = self.f, self.lanes * self.group
        if count is None or n == 1:
            f.store(value, pointer)
            return
        kind = element(value.type)
        if BITS[kind] >= 32:
            numbers = f.value(vector(n, "i32"), list(range(n)))
            f.store(value, pointer, mask=numbers < f.splat(count.to("i32"), n))
            return
        with f.when(count >= n, likely=True) as few:
            f.store(value, pointer)
            with few.otherwise():
                spill = f.scratch(value.type, 1)
                f.store(value, spill)
                with f.loop(0, count) as k:
                    f.store(f.load(kind, f.at(spill, k * size(kind))), f.at(pointer, k * size(kind)))


def takes(spec: Spec, across: Across, lanes: int) -> bool:
    """Whether the quick way along the width is written for this window."""
    if isinstance(spec, Matching) or (isinstance(spec, Extreme) and spec.tie is Tie.LAST):
        return False
    return across.kernel <= 16 and across.stride <= 4 and across.tile(lanes) >= lanes
