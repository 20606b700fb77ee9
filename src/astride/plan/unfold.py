"""The plan that lays every window of an image out as a column."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..errors import ArgumentError
from .axis import StridedAxis
from .base import Plan, Shape, expect, sizes_match
from .dense import DENSE_DTYPES
from .kinds import Edge


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfoldPlan(Plan):
    """x (N, C, *size) gives y (N, C * taps, *out): row c * taps + j holds tap j of channel c for every window.

    Taps are counted in row-major order. A tap outside the input is what `edge` says; SKIP gives 0.
    """

    axes: tuple[StridedAxis, ...]
    edge: Edge = Edge.SKIP

    def __post_init__(self) -> None:
        if not 1 <= len(self.axes) <= 3:
            raise ArgumentError(
                "windows have one to three axes", given={"axes": len(self.axes)}, required=f"1 <= rank <= 3: {len(self.axes)}"
            )
        if self.dtype not in DENSE_DTYPES:
            raise ArgumentError(
                "columns are float32 or float64",
                given={"dtype": self.dtype},
                required=f"one of {', '.join(DENSE_DTYPES)}",
                hint='x.astype("float32")',
                operator="unfold",
            )

    @property
    def op(self) -> str:
        return "unfold"

    @property
    def taps(self) -> int:
        return math.prod(axis.kernel for axis in self.axes)

    def output_shape(self, *shapes: Shape | None) -> Shape:
        x = shapes[0]
        assert x is not None
        rank = len(self.axes)
        expect(len(x) == rank + 2, "x has another rank than the plan", f"x.ndim == {rank + 2}: {len(x)}")
        sizes_match(self.axes, x[2:], "x")
        return (x[0], x[1] * self.taps, *(axis.out for axis in self.axes))
