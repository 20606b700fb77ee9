"""What one window gives back to one of its taps: the step of every gathering backward pass.

    offsets   dy where the saved offset is this tap's number (extremes); with `magnitude`, times the sign of x
    share     dy over the window's divisor (averages)
    norm      dy (x/y)^(p-1) and the window's scale (Lp)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...plan import PoolPlan
from ...plan.kinds import LpForm, LpScale, Reduce, Rounding, ZeroWindow
from ..protocol import offset_dtype
from .ir import BITS, Function, Value, vector
from .numbers import NUMBERS, Number, absolute
from .sums import ACCUMULATORS


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
    rounding: Rounding = Rounding.TRUNCATE

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
            return cls(plan.dtype, accumulate, "share", rounding=plan.rounding)
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
    def index(self) -> str:
        """The type offsets are compared in: as wide as what the mask selects."""
        return f"i{max(BITS[self.accumulate], 8 * self.offsets)}"

    @property
    def reads_x(self) -> bool:
        return self.kind == "norm" or self.magnitude


class Gather:
    """The registers of one vector of pixels, and what each window that covers them adds."""

    def __init__(self, f: Function, spec: Gradient, lanes: int, taps: Value) -> None:
        self.f, self.spec, self.lanes, self._taps = f, spec, lanes, taps
        self._kind = vector(lanes, spec.accumulate)
        self.total = f.variable(self._kind, 0)

    def start(self, x: Value | None) -> None:
        """Begin again, at pixels of these values; None where they do not matter."""
        self.total.set(0)
        self._x, self._sign = x, None
        if x is not None and self.spec.magnitude:
            one = self.f.value(self._kind, 1.0)
            self._sign = self.f.select(x > 0.0, one, self.f.select(x < 0.0, -one, x))

    def take(self, dy: Value, number: Value, share: Value, other: Value | None) -> None:
        """One window: `number` is the tap's, `share` the divisor (average) or taps inside (norm), `other` the saved
        offsets or y."""
        f, spec = self.f, self.spec
        if spec.kind == "offsets":
            assert other is not None
            place = other.widened(spec.index)
            here = place.eq(f.splat(number.to(spec.index), self.lanes))
            if self._sign is not None:
                dy = dy * self._sign
            self.total.set(f.select(here, self.total.get() + dy, self.total.get()))
        elif spec.kind == "share":
            self.total.set(self.total.get() + dy / f.splat(share.to(spec.accumulate), self.lanes))
        else:
            assert other is not None
            if spec.scale is LpScale.MEAN:
                dy = dy * f.splat(f.value(spec.accumulate, 1.0) / share.to(spec.accumulate), self.lanes)
            elif spec.scale is LpScale.RESCALED:
                dy = dy * f.splat(self._taps.to(spec.accumulate) / share.to(spec.accumulate), self.lanes)
            self.total.set(self.total.get() + self._slope(other) * dy)

    def result(self) -> Value:
        """The gradient of the pixels."""
        return self.total.get()

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
            slope = ratio * ratio
            if spec.form is LpForm.ABSOLUTE:
                size = absolute(f, ratio)
                slope = f.select(x.eq(0.0), ratio, f.call(self._kind, f"llvm.copysign.{_suffix(self._kind)}", size * size, x))
        zero = 0.0
        if spec.zero_window is ZeroWindow.FORMULA:
            zero = 1.0 if spec.p == 1 and spec.form is not LpForm.ABSOLUTE else math.nan
        return f.select(y.eq(0.0), f.value(self._kind, zero), slope)


def _suffix(kind: str) -> str:
    from .ir import SHORT, element, lanes

    return f"v{lanes(kind)}{SHORT[element(kind)]}" if lanes(kind) > 1 else SHORT[kind]
