"""Windows of many columns where the channels come first: one after the other, each with its taps in lanes."""

from __future__ import annotations

from .extremes import Extreme, Scan
from .ir import Function, Value
from .ir_types import vector
from .line import Exactly, Line
from .numbers import absolute
from .sums import Sum, Total
from .window import Spec, State, Window, finish, new_state, rows


class Widely(Exactly):
    """The code of one row of wide windows."""

    def widely(self, line: Line, count: Value) -> None:
        """All windows of the row, whose taps along the width lie side by side."""
        f, spec, n = self.f, self.spec, self.lanes
        bytes_, step = spec.number.bytes, 2 * self.lanes
        with f.loop(0, count) as column:
            axes = (line.depth, line.height, Window.read(f, self.table, column))
            base, taps = f.at(line.x, axes[2].pixel * bytes_), axes[2].count
            whole, rest = taps // step * step, taps // n * n
            folds = [Fold(f, spec, n), Fold(f, spec, n), Fold(f, spec, 1)]
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

            rows(f, (line.depth, line.height), self.kernel, self.steps, base, row)
            folds[0].join(folds[1])
            folds[2].join_lanes(folds[0])
            with f.when(folds[2].sure(taps), likely=True) as doubtful:
                state = new_state(f, spec, 1)
                folds[2].give(state)
                finish(f, spec, state, axes, self.kernel, line.results.moved(f, spec, column))
                with doubtful.otherwise():
                    self.exactly(line, column, f.value("i64", 1))


class Fold:
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
        self._best.set(self.f.select(self.spec.beats(value, self._best.get()), value, self._best.get()))

    def join(self, other: Fold) -> None:
        """Take in what another has, of as many lanes."""
        if self._sum is not None and other._sum is not None:
            self._sum.sum.set(self._sum.sum.get() + other._sum.sum.get())
        else:
            self._merge(other._best.get())
            self._clean.set(self._clean.get() & other._clean.get())

    def join_lanes(self, other: Fold) -> None:
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
                value = f.select(self.spec.beats(high, low), high, low)
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
