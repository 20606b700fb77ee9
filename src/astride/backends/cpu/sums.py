"""Averages and Lp norms of a window in registers: one running sum in every lane, then a division or a root.

Norms whose plan scales (so that no power overflows or vanishes on the way) are summed in float64 where the values are
narrower: nothing a float32 holds leaves float64's range at the powers these kernels take.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from ...plan import PoolPlan
from ...plan.kinds import Empty, LpForm, LpScale, Reduce, Rounding
from .ir import Function, Value
from .ir_types import BITS, lanes, vector
from .numbers import NUMBERS, Number, absolute, converted
from .powers import power

ACCUMULATORS = {"float32": "float", "float64": "double", "int32": "i32", "int64": "i64", "uint32": "i32", "uint64": "i64"}
POWERS = (1.0, 2.0, 3.0)
"""Orders of a norm that need no power function."""


@dataclass(frozen=True, slots=True)
class Sum:
    """What a kernel of sums depends on besides geometry. `p` is 0 for an average."""

    dtype: str
    accumulate: str
    empty: Empty
    rounding: Rounding = Rounding.TRUNCATE
    p: float = 0.0
    form: LpForm = LpForm.ABSOLUTE
    scale: LpScale = LpScale.SUM
    signed: bool = True
    """Whether integer sums are signed."""
    scaled: bool = False
    """Whether each window has a scale, a float64 in argument d, by which its taps are multiplied twice and its norm divided."""

    offsets: ClassVar[int] = 0

    @classmethod
    def of(cls, plan: PoolPlan, *, save: bool = False) -> Sum:
        """The sum a plan asks for."""
        accumulate = ACCUMULATORS[plan.accumulate]
        if plan.reduce is Reduce.AVERAGE:
            return cls(plan.dtype, accumulate, plan.empty, plan.rounding, signed=not plan.accumulate.startswith("u"))
        if plan.lp_scaled and accumulate == "float":
            accumulate = "double"
        return cls(plan.dtype, accumulate, plan.empty, p=plan.p, form=plan.lp_form, scale=plan.lp_scale)

    @property
    def number(self) -> Number:
        return NUMBERS[self.dtype]

    @property
    def whole(self) -> bool:
        """Whether sums are integers."""
        return self.accumulate.startswith("i")


class Total:
    """The registers of one group of windows, and the steps of summing them."""

    def __init__(self, f: Function, spec: Sum, count: int) -> None:
        self.f, self.spec, self.lanes = f, spec, count
        self._kind = vector(count, spec.accumulate)
        self.sum = f.variable(self._kind, 0)

    def start(self, first: Value, number: Value) -> None:
        """Begin again."""
        self.sum.set(0)

    def against(self, scale: Value) -> None:
        """What taps are multiplied by, twice."""
        self._scale = scale

    def take(self, tap: Value, number: Value) -> None:
        """Add the next tap, or its power."""
        x = converted(self.f, tap, self.spec.number, self.spec.accumulate)
        if self.spec.scaled:
            x = x * self._scale * self._scale
        self.sum.set(self.sum.get() + self.power(x))

    def power(self, x: Value) -> Value:
        """What a tap adds."""
        p = self.spec.p
        if p == 0:
            return x
        if p == 2:
            return x * x
        x = absolute(self.f, x) if self.spec.form is LpForm.ABSOLUTE else x
        return x if p == 1 else x * x * x if p == 3 else power(self.f, x, p)

    def result(self, divisor: Value, taps: Value, count: Value) -> Value:
        """The average or the norm. `divisor` is the plan's, `taps` those of a whole window, `count` those inside; all i64."""
        return self.finish(self.sum.get(), divisor, taps, count)

    def finish(self, total: Value, divisor: Value, taps: Value, count: Value) -> Value:
        """From windows' sums to what they give; `divisor` and `count` are one for all lanes or one a lane."""
        f, spec = self.f, self.spec
        if spec.whole:
            return whole_quotient(f, total, self._spread(divisor), spec.signed, spec.rounding).to(spec.number.stored)
        if spec.p == 0:
            # Products of column divisors are formed in floating point, where 0 may have become -0.
            value = total / self._spread(divisor.to(spec.accumulate) + 0.0)
            return value.to(spec.number.computed) if spec.number.floating else value
        if spec.scale is not LpScale.SUM:
            one = f.value(spec.accumulate, 1.0) if spec.scale is LpScale.MEAN else taps.to(spec.accumulate)
            number = count.to(spec.accumulate)
            whole = one if lanes(number.type) == 1 else f.splat(one, self.lanes)
            total = total * self._spread(whole / number)
        root = self._root(total)
        return (root / self._scale / self._scale if spec.scaled else root).to(spec.number.computed)

    def _spread(self, value: Value) -> Value:
        return value if lanes(value.type) == self.lanes else self.f.splat(value, self.lanes)

    def _root(self, total: Value) -> Value:
        f, p = self.f, self.spec.p
        if p == 1:
            return total
        magnitude = absolute(f, total)
        if p not in POWERS and self.spec.form is LpForm.SIGNED:
            return power(f, total, 1 / p)
        root = f.unary("sqrt", magnitude) if p == 2 else cube_root(f, magnitude) if p == 3 else power(f, magnitude, 1 / p)
        if p == 2 or self.spec.form is LpForm.ABSOLUTE:
            return root
        negative = total < 0.0
        if self.spec.form is LpForm.SIGNED_ROOT:
            return f.select(negative, -root, root)
        return f.select(negative & (magnitude < math.inf), math.nan, root)  # C's pow: of -inf it is inf

    def empty(self, divisor: Value) -> Value:
        """What a window without a tap inside the input gives."""
        f, spec = self.f, self.spec
        kind = vector(self.lanes, spec.number.computed)
        if not spec.number.floating or spec.empty not in (Empty.NAN, Empty.QUOTIENT) or (spec.p and spec.empty is Empty.QUOTIENT):
            return f.value(kind, 0)
        if spec.empty is Empty.NAN:
            return f.value(kind, math.nan)
        return f.splat(f.value(spec.number.computed, 0.0) / divisor.to(spec.number.computed), self.lanes)


def whole_quotient(f: Function, total: Value, divisor: Value, signed: bool, rounding: Rounding) -> Value:
    """An integer quotient in i64, its rest cut off or halves rounded away from zero; 0 for a divisor of 0, which is i64."""
    wide, zero = divisor.type, f.value(divisor.type, 0)
    total = total.to("i64") if signed else total.widened("i64")
    negative = (divisor < 0) ^ (total < 0) if signed else divisor < 0
    count = f.select(divisor < 0, -divisor, divisor)
    magnitude = f.select(total < 0, -total, total) if signed else total
    if rounding is Rounding.HALF_AWAY:
        magnitude = magnitude + (count >> 1)
    by = f.select(count > zero, count, f.value(wide, 1))
    quotient = f.emit(wide, f"udiv {wide} {magnitude.text}, {by.text}")
    return f.select(negative, -quotient, quotient)


def cube_root(f: Function, x: Value) -> Value:
    """The cube root of numbers >= 0, infinities and NaN: a guess from the exponent's bits, then Newton's steps.

    Each of Halley's steps triples the digits: five bits of the guess give more than float64 holds after three, and a last
    step of Newton's removes what rounding left. Within 2 ulp of the true root.
    """
    kind = x.type
    real = "double" if "double" in kind else "float"
    whole = kind.replace(real, f"i{BITS[real]}")
    # A third of the exponent: bits / 3 + 2/3 of the bias, less what makes the worst relative error smallest.
    magic = 0x2A9F7893782DA1CE if real == "double" else 0x2A555556
    tiny, up = x < (2.0**-1022 if real == "double" else 2.0**-126), 54 if real == "double" else 24
    scaled = f.select(tiny, x * 2.0**up, x)  # a subnormal's bits say less of its exponent
    bits = scaled.bits(whole)
    third = f.emit(whole, f"udiv {whole} {bits.text}, {f.value(whole, 3).text}")
    y = (third + magic).bits(kind)
    for _ in range(3 if real == "double" else 2):
        over = y / scaled * y * y  # y^3 / x, which stays near 1 where y^3 would leave the type's range
        y = y * ((over + 2.0) / (over * 2.0 + 1.0))
    y = y - (y - scaled / (y * y)) / 3.0
    y = f.select(tiny, y * 2.0 ** (-up // 3), y)
    keep = x.eq(0.0) | ~(x < math.inf)
    return f.select(keep, x, y)
