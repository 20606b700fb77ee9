"""Plans of operators that make fewer values of many: totals over trailing axes, and the greatest along one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from ..errors import ArgumentError
from .base import Plan, Shape, expect
from .dense import DENSE_DTYPES


class Total(StrEnum):
    """What a reduction makes of the values behind an axis."""

    SUM = "sum"
    MEAN = "mean"
    ASUM = "asum"  # sum |x|
    SUMSQ = "sumsq"  # sum x^2


@dataclass(frozen=True, slots=True, kw_only=True)
class ReducePlan(Plan):
    """coeff times the total of everything from `axis` on: x (*lead, *rest) gives y (*lead)."""

    total: Total
    axis: int = 0
    coeff: float = 1.0

    def __post_init__(self) -> None:
        _check(self)

    @property
    def op(self) -> str:
        return "reduce"

    def output_shape(self, *shapes: Shape | None) -> Shape:
        x = shapes[0]
        assert x is not None
        expect(self.axis <= len(x), "x has no such axis", f"axis <= x.ndim: {self.axis} <= {len(x)}")
        return x[: self.axis]

    def scale(self, x: Shape) -> float:
        """What the sum is multiplied by; a mean of nothing is not a number."""
        if self.total is not Total.MEAN:
            return self.coeff
        count = math.prod(x[self.axis :])
        return self.coeff / count if count else math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgmaxPlan(Plan):
    """The `top_k` greatest along an axis, the greatest first: their places, int64, or their values.

    Of equal values the one with the highest index comes first. NaN counts as greater than everything.
    """

    axis: int = 1
    top_k: int = 1
    values: bool = False

    def __post_init__(self) -> None:
        _check(self)
        if self.top_k < 1:
            raise ArgumentError(
                "top_k counts from 1", given={"top_k": self.top_k}, required="top_k >= 1", hint="top_k=1", operator="argmax"
            )

    @property
    def op(self) -> str:
        return "argmax"

    @property
    def output_dtype(self) -> str:
        return self.dtype if self.values else "int64"

    def output_shape(self, *shapes: Shape | None) -> Shape:
        x = shapes[0]
        assert x is not None
        expect(self.axis < len(x), "x has no such axis", f"axis < x.ndim: {self.axis} < {len(x)}")
        size = x[self.axis]
        expect(self.top_k <= size, "top_k is more than there are", f"top_k <= x.shape[{self.axis}]: {self.top_k} <= {size}")
        return (*x[: self.axis], self.top_k, *x[self.axis + 1 :])


def _check(plan: ReducePlan | ArgmaxPlan) -> None:
    if plan.dtype not in DENSE_DTYPES:
        raise ArgumentError(
            "dense operators compute in float32 or float64",
            given={"dtype": plan.dtype},
            required=f"one of {', '.join(DENSE_DTYPES)}",
            hint='x.astype("float32")',
            operator=plan.op,
        )
    if plan.axis < 0:
        raise ArgumentError(
            "a plan's axis counts from the front",
            given={"axis": plan.axis},
            required=f"axis >= 0: {plan.axis}",
            operator=plan.op,
        )
