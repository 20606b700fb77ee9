"""Choosing the extreme of a window in registers: the same scan as the reference's, in every lane at once.

Taps come in row-major order. The value and the pick follow rules of their own (`nan` and `tie`); where the two cannot
differ one comparison serves both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from ...plan import PoolPlan
from ...plan.kinds import Empty, Nan, Reduce, Start, Tie, Unpicked
from ..protocol import offset_dtype
from .ir import Function, Value
from .ir_types import BITS, vector
from .numbers import NUMBERS, Number, absolute

FIRST_TAP_STARTS = (Tie.LEADING_NAN, Tie.AFTER_NAN)


@dataclass(frozen=True, slots=True)
class Extreme:
    """What a kernel of extremes depends on besides geometry. `magnitude` chooses among absolute values."""

    dtype: str
    up: bool
    start: Start
    nan: Nan
    tie: Tie | None
    unpicked: Unpicked
    empty: Empty
    offsets: int
    """Bytes of a saved offset; 0 where none are saved."""
    magnitude: bool = False

    @classmethod
    def of(cls, plan: PoolPlan, *, save: bool) -> Extreme:
        """The extreme a plan asks for, with offsets where they are to be kept."""
        picks = save and plan.picks
        return cls(
            dtype=plan.dtype,
            up=plan.reduce is not Reduce.MIN,
            start=plan.start,
            nan=plan.nan,
            tie=plan.tie if picks else None,
            unpicked=plan.unpicked,
            empty=plan.empty,
            offsets=offset_dtype(plan.taps).itemsize if picks else 0,
            magnitude=plan.reduce is Reduce.LP and NUMBERS[plan.dtype].signed,
        )

    @property
    def number(self) -> Number:
        return NUMBERS[self.dtype]

    @property
    def index(self) -> str:
        """The type offsets have in registers: as wide as the values, so that one mask selects both."""
        return f"i{max(BITS[self.number.computed], 8 * self.offsets)}"

    @property
    def together(self) -> bool:
        """Whether value and pick are always the same tap's."""
        if self.tie is None or (self.tie in FIRST_TAP_STARTS and self.start is not Start.FIRST_TAP):
            return False
        if not self.number.floating:
            return self.tie is not Tie.LAST
        if self.nan is Nan.PROPAGATED:
            return self.tie in (Tie.FIRST_NAN, Tie.LAST_NAN)
        return self.tie in (Tie.FIRST, Tie.LEADING_NAN)

    def beats(self, a: Value, b: Value) -> Value:
        """Where a is better than b; a NaN is better than nothing."""
        if self.number.floating or self.number.signed:
            return a > b if self.up else a < b
        return a.compare("ugt" if self.up else "ult", b)

    def worst(self, start: Start) -> Any:
        """The start value: what loses to everything."""
        number = self.number
        if self.dtype == "bool":
            return 0 if self.up else 1
        if not number.floating:
            bits = BITS[number.stored]
            low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if number.signed else (0, (1 << bits) - 1)
            return low if self.up else high
        limit = GREATEST[self.dtype] if start is Start.FINITE else math.inf
        return -limit if self.up else limit


GREATEST = {
    "float16": 65504.0,
    "bfloat16": float.fromhex("0x1.fep127"),
    "float32": float.fromhex("0x1.fffffep127"),
    "float64": float.fromhex("0x1.fffffffffffffp1023"),
}


class Scan:
    """The registers of one group of windows, and the steps of scanning them."""

    def __init__(self, f: Function, spec: Extreme, lanes: int) -> None:
        self.f, self.spec, self.lanes = f, spec, lanes
        self._kind = vector(lanes, spec.number.computed)
        self._places = vector(lanes, spec.index)
        self.value = f.variable(self._kind, spec.worst(spec.start))
        self.pick = self.value
        if spec.tie is not None:
            if not spec.together:
                self.pick = f.variable(self._kind, spec.worst(Start.INFINITY))
            self.place = f.variable(self._places, -1)

    def start(self, first: Value, number: Value) -> None:
        """Begin again: `first` is the first tap inside the input, `number` its place in the window."""
        f, spec = self.f, self.spec
        first = self.of(first)
        self.value.set(first if spec.start is Start.FIRST_TAP else spec.worst(spec.start))
        if spec.tie is None:
            return
        from_first = spec.start is Start.FIRST_TAP or spec.tie in FIRST_TAP_STARTS
        if not spec.together:
            self.pick.set(first if from_first else spec.worst(spec.start))
        self.place.set(f.splat(number.to(spec.index), self.lanes) if from_first else f.value(self._places, -1))

    def take(self, tap: Value, number: Value) -> None:
        """Look at the next tap."""
        f, spec = self.f, self.spec
        tap = self.of(tap)
        if spec.tie is None or not spec.together:
            best = self.value.get()
            self.value.set(f.select(self._wins(tap, best), tap, best))
        if spec.tie is not None:
            pick = self.pick.get()
            moves = self._moves(tap, pick)
            self.pick.set(f.select(moves, tap, pick))
            self.place.set(f.select(moves, f.splat(number.to(spec.index), self.lanes), self.place.get()))

    def result(self) -> Value:
        return self.value.get()

    def offset(self, first: Value) -> Value:
        """The picked places as they are saved; `first` is the place of the first tap inside the input."""
        f, spec = self.f, self.spec
        place = self.place.get()
        if spec.unpicked is Unpicked.FIRST_TAP:
            place = f.select(place.eq(-1), f.splat(first.to(spec.index), self.lanes), place)
        return place.to(f"i{8 * spec.offsets}")

    def empty(self) -> Value:
        """What a window without a tap inside the input gives."""
        spec = self.spec
        value = 0 if spec.empty is Empty.ZERO else math.nan if spec.empty is Empty.NAN else spec.worst(spec.start)
        return self.f.value(self._kind, 0 if value != value and not spec.number.floating else value)

    def no_offset(self) -> Value:
        return self.f.value(vector(self.lanes, f"i{8 * self.spec.offsets}"), -1)

    def of(self, tap: Value) -> Value:
        """What is compared of a tap."""
        return absolute(self.f, tap) if self.spec.magnitude else tap

    def _wins(self, tap: Value, best: Value) -> Value:
        """Whether the value moves on to this tap. Of equal zeros the first stays, whatever its sign."""
        wins = self.spec.beats(tap, best)
        if self.spec.nan is Nan.PROPAGATED and self.spec.number.floating:
            return wins | tap.is_nan()
        return wins

    def _moves(self, tap: Value, pick: Value) -> Value:
        """Whether the pick moves on to this tap."""
        tie, floating = self.spec.tie, self.spec.number.floating
        wins = self.spec.beats(tap, pick)
        if tie is Tie.LAST:
            return wins | tap.eq(pick)
        if not floating or tie in (Tie.FIRST, Tie.LEADING_NAN):
            return wins
        if tie is Tie.AFTER_NAN:
            return ~(pick >= tap if self.spec.up else pick <= tap)
        if tie is Tie.LAST_NAN:
            return wins | tap.is_nan()
        unordered_or_better = tap.compare("ugt" if self.spec.up else "ult", pick)
        return unordered_or_better & pick.compare("ord", pick)


@dataclass(frozen=True, slots=True)
class Matching:
    """Counting the taps equal to a value that each window has: for ties that are shared. The values are argument d."""

    dtype: str
    offsets: ClassVar[int] = 0

    @property
    def number(self) -> Number:
        return NUMBERS[self.dtype]


class Count:
    """The registers of one group of windows being counted."""

    def __init__(self, f: Function, spec: Matching, lanes: int) -> None:
        self.f, self.spec, self.lanes = f, spec, lanes
        self._kind = vector(lanes, spec.number.computed)
        self.count = f.variable(self._kind, 0)

    def start(self, first: Value, number: Value) -> None:
        """Begin again."""
        self.count.set(0)

    def against(self, value: Value) -> None:
        """What taps are compared with."""
        self._value = value

    def take(self, tap: Value, number: Value) -> None:
        """Count the next tap if it is equal."""
        count = self.count.get()
        self.count.set(self.f.select(tap.eq(self._value), count + 1, count))
