"""The plan of a pooling window: everything in which frameworks differ, as a field."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from ..errors import ArgumentError
from .axis import Axis, StridedAxis
from .base import Plan, Shape, expect, sizes_match
from .kinds import (
    Divisor,
    Edge,
    Empty,
    IndexBase,
    Layout,
    LpForm,
    LpScale,
    Nan,
    Reduce,
    Rounding,
    Start,
    Tie,
    Unpicked,
    ZeroWindow,
)

OPERATORS = {
    Reduce.MAX: "max_pool",
    Reduce.MIN: "min_pool",
    Reduce.AVERAGE: "avg_pool",
    Reduce.LP: "lp_pool",
    Reduce.STOCHASTIC: "stochastic_pool",
    Reduce.STOCHASTIC_MEAN: "stochastic_pool",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPlan(Plan):
    """Windows over (N, C, *size) or (N, *size, C), each reduced to one value per image and channel.

    Extremes      start, nan, tie, unpicked decide value and gradient (max and min).
    Averages      divisor (with divisor_override, divisor_pad) decides what the sum is divided by, rounding what
                  becomes of an integer's rest; integers are summed in `accumulate`, which wraps around.
    Lp            p, lp_form, lp_scale, zero_window; p = infinity is the greatest absolute value. lp_scaled keeps
                  the powers of huge and tiny values from overflowing; without it they do, and pixels no window reads, or
                  only windows whose sum is 0, have the gradient 0 * x^(p-1), NaN where that power is none, as in PyTorch.
                  p < 0 exists in the signed form as it is written alone.
    Stochastic    threshold is the dtype in which draw * sum is formed (Caffe: float32 always).
    Outside       edge (with edge_value) says what a tap outside the input reads, empty what a window gives
                  that has no tap inside.
    Indices       index_base is what the indices of an extreme count from, for those who ask for them.
    accumulate    the dtype sums are formed in, at least.
    """

    roles: ClassVar[tuple[str, ...]] = ("x", "uniform")
    optional: ClassVar[frozenset[str]] = frozenset({"uniform"})

    axes: tuple[Axis, ...]
    reduce: Reduce
    layout: Layout = Layout.CHANNELS_FIRST
    start: Start = Start.INFINITY
    nan: Nan = Nan.PROPAGATED
    tie: Tie = Tie.FIRST
    unpicked: Unpicked = Unpicked.FIRST_TAP
    divisor: Divisor = Divisor.VALID
    divisor_override: int = 0
    divisor_pad: tuple[tuple[int, int], ...] | None = None
    rounding: Rounding = Rounding.TRUNCATE
    p: float = 2.0
    lp_form: LpForm = LpForm.ABSOLUTE
    lp_scale: LpScale = LpScale.SUM
    lp_scaled: bool = True
    zero_window: ZeroWindow = ZeroWindow.ZERO
    threshold: str = "float32"
    edge: Edge = Edge.SKIP
    edge_value: float = 0.0
    empty: Empty = Empty.START
    index_base: IndexBase = IndexBase.PLANE
    accumulate: str = "float32"

    def __post_init__(self) -> None:
        if not 1 <= len(self.axes) <= 3:
            raise ArgumentError(
                "windows have one to three axes",
                given={"axes": len(self.axes)},
                required=f"1 <= rank <= 3: {len(self.axes)}",
                hint="other axes moved into the batch",
            )
        strided = [axis for axis in self.axes if isinstance(axis, StridedAxis)]
        if self.edge is not Edge.SKIP and (len(strided) < len(self.axes) or any(a.input_dilation > 1 for a in strided)):
            raise ArgumentError(
                "an edge mode needs plain strided axes", given={"edge": str(self.edge)}, hint='edge="skip", or no input dilation'
            )
        if self.divisor is Divisor.CAFFE and (len(strided) < len(self.axes) or any(a.dilation > 1 for a in strided)):
            raise ArgumentError(
                "Caffe's divisor is defined for undilated strided windows only",
                given={"divisor": str(self.divisor)},
                hint="another divisor, or dilation=1",
            )
        if self.divisor is Divisor.OVERRIDE and self.divisor_override == 0:
            raise ArgumentError("the divisor is zero", given={"divisor_override": 0}, hint="divisor_override=1")
        as_written = self.lp_form is LpForm.SIGNED and not self.lp_scaled and -math.inf < self.p < 0
        if self.reduce is Reduce.LP and not self.p > 0 and not as_written:
            raise ArgumentError(
                "the order of an Lp norm is positive", given={"p": self.p}, required=f"p > 0: {self.p}", hint="p=2.0"
            )
        if self.divisor_pad is not None and len(self.divisor_pad) != len(self.axes):
            raise ArgumentError(
                "divisor_pad needs a pair per axis",
                given={"divisor_pad": self.divisor_pad, "axes": len(self.axes)},
                hint="divisor_pad=None, or a (low, high) pair per axis",
            )
        if self.reduce in (Reduce.STOCHASTIC, Reduce.STOCHASTIC_MEAN) and self.edge is not Edge.SKIP:
            raise ArgumentError(
                "stochastic pooling draws among the taps inside the input only",
                given={"edge": str(self.edge)},
                hint='edge="skip"',
            )

    @property
    def op(self) -> str:
        return OPERATORS[self.reduce]

    @property
    def taps(self) -> int:
        """Taps of a whole window."""
        return math.prod(axis.kernel for axis in self.axes)

    @property
    def picks(self) -> bool:
        """True where a window's gradient returns to one tap, whose offset is saved."""
        if self.reduce in (Reduce.MAX, Reduce.MIN):
            return self.tie.picks_one
        return self.reduce is Reduce.STOCHASTIC or (self.reduce is Reduce.LP and math.isinf(self.p))

    def output_shape(self, *shapes: Shape | None) -> Shape:
        x = shapes[0]
        assert x is not None
        expect(len(x) == len(self.axes) + 2, "x has another rank than the plan", f"x.ndim == {len(self.axes) + 2}: {len(x)}")
        first = self.layout is Layout.CHANNELS_FIRST
        sizes_match(self.axes, x[2:] if first else x[1:-1], "x")
        out = tuple(axis.out for axis in self.axes)
        y = (x[0], x[1], *out) if first else (x[0], *out, x[-1])
        uniform = shapes[1] if len(shapes) > 1 else None
        if uniform is not None:
            expect(uniform == y, "uniform needs one draw per output", f"uniform.shape == {y}: {uniform}")
        elif self.reduce is Reduce.STOCHASTIC:
            expect(False, "stochastic pooling in training needs a draw per output", f"uniform of shape {y}: None")
        return y
