"""The plan that lays every window of an image out as a column, and of the way back."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..errors import ArgumentError
from .axis import StridedAxis
from .base import Plan, Shape, expect, sizes_match
from .kinds import Direction, Edge, Layout

DTYPES = ("float16", "bfloat16", "float32", "float64")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfoldPlan(Plan):
    """x (N, C, *size) gives y (N, C * taps, *out): row c * taps + j holds tap j of channel c for every window.

    Taps are counted in row-major order. A tap outside the input is what `edge` says; SKIP gives 0. Read in the other
    direction (TRANSPOSED) the plan is fold's: columns in, every pixel the sum of the taps that would read it.
    """

    axes: tuple[StridedAxis, ...]
    edge: Edge = Edge.SKIP
    direction: Direction = Direction.FORWARD
    layout: Layout = Layout.CHANNELS_FIRST
    accumulate: str = "float32"

    def __post_init__(self) -> None:
        if not 1 <= len(self.axes) <= 3:
            raise ArgumentError(
                "windows have one to three axes",
                given={"axes": len(self.axes)},
                required=f"1 <= rank <= 3: {len(self.axes)}",
                hint="other axes moved into the batch",
            )
        if self.dtype not in DTYPES:
            raise ArgumentError(
                "columns are floating numbers",
                given={"dtype": self.dtype},
                required=f"one of {', '.join(DTYPES)}",
                hint='x.astype("float32")',
                operator=self.op,
            )

    @property
    def op(self) -> str:
        return "unfold" if self.direction is Direction.FORWARD else "fold"

    @property
    def taps(self) -> int:
        return math.prod(axis.kernel for axis in self.axes)

    def output_shape(self, *shapes: Shape | None) -> Shape:
        x = shapes[0]
        assert x is not None
        rank = len(self.axes)
        expect(len(x) == rank + 2, "x has another rank than the plan", f"x.ndim == {rank + 2}: {len(x)}")
        first = self.layout is Layout.CHANNELS_FIRST
        sizes, channels = (x[2:], x[1]) if first else (x[1:-1], x[-1])
        out = tuple(axis.out for axis in self.axes)
        if self.direction is Direction.FORWARD:
            sizes_match(self.axes, sizes, "x")
            channels *= self.taps
        else:
            expect(sizes == out, "x has other windows than the plan", f"windows == {out}: {sizes}")
            expect(channels % self.taps == 0, "the rows are no whole channels", f"rows % taps == 0: {channels} % {self.taps}")
            channels //= self.taps
            out = tuple(axis.size for axis in self.axes)
        return (x[0], channels, *out) if first else (x[0], *out, channels)
