"""The plan of a user's own function over windows: their geometry, and the function by name."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..errors import ArgumentError
from .axis import Axis, StridedAxis
from .base import Plan, Shape, expect, sizes_match
from .kinds import Edge, Layout

HALF = ("float16", "bfloat16")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
DTYPES = (*HALF, "float32", "float64", *INTEGERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPlan(Plan):
    """Windows over (N, C, *size) or (N, *size, C), each given to the function registered under `function`.

    compiled      whether Numba compiles it, or Python runs it as it is
    edge          what a tap outside the input reads (with edge_value); SKIP leaves it out of the window
    empty         the value of a window that has no tap at all; without one such windows are refused
    """

    axes: tuple[Axis, ...]
    function: str
    compiled: bool = True
    layout: Layout = Layout.CHANNELS_FIRST
    edge: Edge = Edge.SKIP
    edge_value: float = 0.0
    empty: float | None = None

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
                "windows hold floating or whole numbers",
                given={"dtype": self.dtype},
                required=f"one of {', '.join(DTYPES)}",
                hint='x.astype("float32")',
            )
        plain = all(isinstance(axis, StridedAxis) and axis.input_dilation == 1 for axis in self.axes)
        if self.edge is not Edge.SKIP and not plain:
            raise ArgumentError(
                "an edge mode needs plain strided axes", given={"edge": str(self.edge)}, hint='edge="skip", or no input dilation'
            )

    @property
    def op(self) -> str:
        return "window_reduce"

    @property
    def taps(self) -> int:
        """Taps of a whole window."""
        return math.prod(axis.kernel for axis in self.axes)

    @property
    def whole(self) -> bool:
        """Whether the arrays hold whole numbers."""
        return self.dtype in INTEGERS

    @property
    def window_dtype(self) -> str:
        """What the function is given: float32 for the half types, 64 bits for whole numbers, else the arrays' own."""
        if self.whole:
            return "uint64" if self.dtype == "uint64" else "int64"
        return "float32" if self.dtype in HALF else self.dtype

    @property
    def result_dtype(self) -> str:
        """What its values are kept in before they become the arrays' own."""
        return "float64" if self.whole else self.window_dtype

    def output_shape(self, *shapes: Shape | None) -> Shape:
        x = shapes[0]
        assert x is not None
        rank = len(self.axes)
        expect(len(x) == rank + 2, "x has another rank than the plan", f"x.ndim == {rank + 2}: {len(x)}")
        first = self.layout is Layout.CHANNELS_FIRST
        sizes_match(self.axes, x[2:] if first else x[1:-1], "x")
        out = tuple(axis.out for axis in self.axes)
        return (x[0], x[1], *out) if first else (x[0], *out, x[-1])
