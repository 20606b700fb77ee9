"""The plan of a convolution of quantised numbers: eight bits in, thirty-two bits summed, and those or eight bits out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from ..errors import ArgumentError
from .axis import StridedAxis
from .base import Plan, Shape, expect
from .kinds import Layout

BYTES = ("int8", "uint8")


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerConvPlan(Plan):
    """x (N, I, *size) and w (O, I/g, *kernel), less their zero points, convolved in int32, which wraps around.

    y_dtype int32    y is that sum, plus b (int32)
    y_dtype int8,    y = clip(round(sum * (x_scale * w_scale / y_scale)) + y_zero_point): in float32, halves to the even
    uint8            number, clipped to what the type holds
    Taps outside the input are skipped, as if they held x's zero point. Zero points and scales are one number each; w's may be
    one per output channel.
    """

    roles: ClassVar[tuple[str, ...]] = (
        "x",
        "w",
        "x_zero_point",
        "w_zero_point",
        "b",
        "x_scale",
        "w_scale",
        "y_scale",
        "y_zero_point",
    )
    optional: ClassVar[frozenset[str]] = frozenset(roles[2:])

    axes: tuple[StridedAxis, ...]
    in_channels: int
    out_channels: int
    w_dtype: str = "int8"
    y_dtype: str = "int32"
    layout: Layout = Layout.CHANNELS_FIRST
    groups: int = 1

    def __post_init__(self) -> None:
        if not 1 <= len(self.axes) <= 3:
            raise ArgumentError(
                "windows have one to three axes",
                given={"axes": len(self.axes)},
                required=f"1 <= rank <= 3: {len(self.axes)}",
                hint="other axes moved into the batch",
            )
        for name, known in (("dtype", BYTES), ("w_dtype", BYTES), ("y_dtype", ("int32", *BYTES))):
            if getattr(self, name) not in known:
                raise ArgumentError(
                    f"{'x' if name == 'dtype' else name[0]} holds no quantised numbers",
                    given={name: getattr(self, name)},
                    required=f"one of {', '.join(known)}",
                )
        for name in ("in_channels", "out_channels"):
            channels = getattr(self, name)
            if self.groups < 1 or channels < 0 or channels % self.groups:
                raise ArgumentError(
                    f"{name} is not divisible by groups",
                    given={name: channels, "groups": self.groups},
                    required=f"{name} % groups == 0: {channels} % {self.groups}",
                    hint=f"groups={math.gcd(self.in_channels, self.out_channels) or 1}",
                )

    @property
    def op(self) -> str:
        return "conv_integer"

    @property
    def output_dtype(self) -> str:
        return self.y_dtype

    @property
    def quantised(self) -> bool:
        """Whether the sums are scaled back to eight bits."""
        return self.y_dtype != "int32"

    @property
    def weight_shape(self) -> Shape:
        return (self.out_channels, self.in_channels // self.groups, *(axis.kernel for axis in self.axes))

    def dtype_of(self, role: str) -> str:
        if role.endswith("scale"):
            return "float32"
        if role == "b":
            return "int32"
        return {"x": self.dtype, "w": self.w_dtype, "y": self.y_dtype}[role[0]]

    def output_shape(self, *shapes: Shape | None) -> Shape:
        given = dict(zip(self.roles, (*shapes, *[None] * len(self.roles)), strict=False))
        x, w, b = given["x"], given["w"], given["b"]
        assert x is not None
        rank = len(self.axes)
        expect(len(x) == rank + 2, "x has another rank than the plan", f"x.ndim == {rank + 2}: {len(x)}")
        first = self.layout is Layout.CHANNELS_FIRST
        sizes, channels = (x[2:], x[1]) if first else (x[1:-1], x[-1])
        planned = tuple(axis.size for axis in self.axes)
        expect(sizes == planned, "x has other sizes than the plan was made for", f"sizes == {planned}: {sizes}")
        expect(channels == self.in_channels, "x has other channels than the plan", f"channels == {self.in_channels}: {channels}")
        expect(w == self.weight_shape, "w does not fit the plan", f"w.shape == {self.weight_shape}: {w}")
        expect(b is None or b == (self.out_channels,), "b does not fit the plan", f"b.shape == {(self.out_channels,)}: {b}")
        for role in self.roles[2:4] + self.roles[5:]:
            shape = given[role]
            if shape is None:
                needed = self.quantised and role.endswith("scale")
                expect(not needed, f"{role} is missing", "x_scale, w_scale and y_scale for a quantised result")
                continue
            one = math.prod(shape) == 1 and len(shape) <= 1
            each = role.startswith("w_") and shape == (self.out_channels,)
            expect(one or each, f"{role} is not one number", f"{role}.shape == (): {shape}")
        out = tuple(axis.out for axis in self.axes)
        return (x[0], self.out_channels, *out) if first else (x[0], *out, self.out_channels)
