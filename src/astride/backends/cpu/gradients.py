"""What one window gives back to one of its taps: the step of every gathering backward pass.

    offsets   dy where the saved offset is this tap's number (extremes); with `magnitude`, times the sign of x
    share     dy over the window's divisor (averages)
    norm      dy (x/y)^(p-1) and the window's scale (Lp)
    match     dy where x is equal to the window's value, or near it (extremes whose ties share); a NaN goes to every tap
              where it is the share of nobody
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...plan import PoolPlan
from ...plan.kinds import NEARNESS, LpForm, LpScale, Reduce, Rounding, Tie, ZeroWindow
from ..protocol import offset_dtype
from .ir import Function, Value
from .ir_types import BITS, element, lanes, vector
from .numbers import NUMBERS, Number, converted
from .powers import power
from .sums import ACCUMULATORS, whole_quotient


@dataclass(frozen=True, slots=True)
class Gradient:
    """What a kernel of gradients depends on besides geometry."""

    dtype: str
    accumulate: str
    kind: str
    offsets: int = 0
    magnitude: bool = False
    p: float = 0.0
    form: LpForm = LpForm.ABSOLUTE
    scale: LpScale = LpScale.SUM
    zero_window: ZeroWindow = ZeroWindow.ZERO
    tie: Tie | None = None
    rounding: Rounding = Rounding.TRUNCATE
    signed: bool = True

    @classmethod
    def of(cls, plan: PoolPlan) -> Gradient:
        """The gradient of a plan."""
        accumulate = ACCUMULATORS.get(plan.accumulate, "float")
        if plan.dtype == "float64":
            accumulate = "double"
        if plan.picks:
            return cls(
                plan.dtype, accumulate, "offsets", offset_dtype(plan.taps).itemsize, magnitude=plan.reduce is Reduce.LP
            )
        if plan.reduce is Reduce.AVERAGE:
            return cls(
                plan.dtype, accumulate, "share", rounding=plan.rounding, signed=not plan.accumulate.startswith("u")
            )
        if plan.reduce in (Reduce.MAX, Reduce.MIN):
            return cls(plan.dtype, accumulate, "match", tie=plan.tie)
        return cls(
            plan.dtype,
            accumulate,
            "norm",
            p=plan.p,
            form=plan.lp_form,
            scale=plan.lp_scale,
            zero_window=plan.zero_window,
        )

    @property
    def number(self) -> Number:
        return NUMBERS[self.dtype]

    @property
    def share(self) -> str:
        """The type shares come in."""
        return "i64" if self.accumulate.startswith("i") else self.accumulate

    @property
    def index(self) -> str:
        """The type offsets are compared in: as wide as what the mask selects."""
        return f"i{max(BITS[self.accumulate], 8 * self.offsets)}"

    def wide(self, f: Function, value: Value) -> Value:
        """Numbers in the type sums are formed in."""
        return converted(f, value, self.number, self.accumulate)

    def narrow(self, f: Function, value: Value) -> Value:
        """A sum as memory holds it."""
        number = self.number
        return number.narrow(f, value.to(number.computed)) if number.floating else value.to(number.stored)

    @property
    def reads_x(self) -> bool:
        return self.kind in ("norm", "match") or self.magnitude


class Gather:
    """The registers of one vector of pixels, and what each window that covers them adds."""

    def __init__(self, f: Function, spec: Gradient, count: int, taps: Value) -> None:
        self.f, self.spec, self.lanes, self._taps = f, spec, count, taps
        self._kind = vector(count, spec.accumulate)
        self.total = f.variable(self._kind, 0)

    def start(self, x: Value | None) -> None:
        """Begin again, at pixels of these values; None where they do not matter."""
        self.total.set(0)
        self._x, self._sign = x, None
        if x is not None and self.spec.magnitude:
            one = self.f.value(self._kind, 1.0)
            negative = self.f.select(x < 0.0, -one, x) if self.spec.number.signed else x
            positive = x > 0.0 if self.spec.number.signed else x.ne(0)
            self._sign = self.f.select(positive, one, negative)

    def scaled(self, dy: Value, share: Value) -> Value:
        """What windows have to give: dy over their divisors, or times their scale. `share` is the divisor (average) or the
        taps inside (norm), one for all lanes or one a lane, of type `share`."""
        spec = self.spec
        if spec.kind == "share" and spec.share == "i64":
            quotient = whole_quotient(self.f, dy, self._spread(share), spec.signed, spec.rounding)
            return quotient.to(spec.accumulate)
        if spec.kind == "share":
            return dy / self._spread(share + 0.0)  # 0, not -0, as the product of whole divisors
        if spec.kind == "norm" and spec.scale is not LpScale.SUM:
            one = self.f.value(spec.accumulate, 1.0) if spec.scale is LpScale.MEAN else self._taps.to(spec.accumulate)
            return dy * self._spread((one if share.type == one.type else self.f.splat(one, self.lanes)) / share)
        return dy

    def given(self, dy: Value) -> Value:
        """What the window gives to the tap it picked."""
        return dy if self._sign is None else dy * self._sign

    def take(self, dy: Value, number: Value, other: Value | None) -> None:
        """One window: dy as `scaled`, the number of the tap that the pixels are in it, and its saved offsets or y."""
        f, spec, total = self.f, self.spec, self.total.get()
        if spec.kind == "offsets":
            assert other is not None
            here = other.eq(f.splat(number.to(element(other.type)), self.lanes))
            self.total.set(f.select(here, total + self.given(dy), total))
        elif spec.kind == "share":
            self.total.set(total + dy)
        elif spec.kind == "match":
            assert other is not None and self._x is not None
            self.total.set(total + f.select(self._matches(other, dy), dy, 0))
        else:
            assert other is not None
            self.total.set(total + self._slope(other) * dy)

    def result(self) -> Value:
        """The gradient of the pixels."""
        return self.total.get()

    def _matches(self, value: Value, dy: Value) -> Value:
        """Where x counts as its window's value."""
        f, spec, x = self.f, self.spec, self._x
        assert x is not None
        if spec.tie is Tie.NEAR:
            apart = f.unary("fabs", spec.number.rounded(f, x - value))
            return apart < spec.number.constant(NEARNESS)
        return x.eq(value) | dy.is_nan() if spec.tie is Tie.EQUAL_SHARE else x.eq(value)

    def _spread(self, value: Value) -> Value:
        return value if lanes(value.type) == self.lanes else self.f.splat(value, self.lanes)

    def _slope(self, y: Value) -> Value:
        """(x/y)^(p-1), by the plan's form; what it is where y is 0 is the plan's too."""
        f, spec, x = self.f, self.spec, self._x
        assert x is not None
        ratio = x / y
        if spec.p == 2:
            slope = ratio
        elif spec.p == 1:
            one = f.value(self._kind, 1.0)
            slope = f.select(x > 0.0, one, f.select(x < 0.0, -one, x)) if spec.form is LpForm.ABSOLUTE else one
        else:
            base = f.unary("fabs", ratio) if spec.form is LpForm.ABSOLUTE else ratio
            slope = ratio * ratio if spec.p == 3 else power(f, base, spec.p - 1)
            if spec.form is LpForm.ABSOLUTE:
                slope = f.select(x.eq(0.0), ratio, f.binary("copysign", slope, x))
        silent = y.eq(0.0)
        if spec.p < 0:  # a sum of 0 has an infinite result
            silent = silent | f.unary("fabs", y).eq(math.inf)
        zero = 0.0
        if spec.zero_window is ZeroWindow.FORMULA:
            zero = 1.0 if spec.p == 1 and spec.form is not LpForm.ABSOLUTE else math.nan
        return f.select(silent, f.value(self._kind, zero), slope)

