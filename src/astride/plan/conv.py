"""The plan of a convolution or a transposed one: one relation between two grids, read in either direction.

A transposed convolution is the adjoint of a convolution, and its plan holds the axes of that convolution:
`size` is the *output* of the transposed operator and `out` its *input*. Output padding needs no field: it makes
`size` larger and `pad_hi` smaller (docs/decisions/0006).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from ..errors import ArgumentError
from .axis import StridedAxis
from .base import Plan, Shape, expect
from .kinds import Direction, Edge, Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvPlan(Plan):
    """x (N, I, *size) with w (O, I/g, *kernel), plus b (O,), gives y (N, O, *out); transposed w is (I, O/g, *kernel).

    Forward      y[i] = sum_j x[i*stride - pad_lo + j*dilation] * w[j]
    Transposed   y[i*stride - pad_lo + j*dilation] += x[i] * w[j], places outside the output dropped
    flip         reverses the kernel along every spatial axis before either
    batch_groups splits the batch instead of the channels: image n meets filter group n // (N / batch_groups)
    edge         what taps outside the input read; SKIP is zero padding, whose taps are skipped, not multiplied
    accumulate   the dtype sums are formed in, at least; integers wrap around in it, and sums of bools are "or"
    conjugate    whether gradients of complex numbers take the conjugates of w and x (PyTorch) or not (JAX)
    y_dtype      the dtype of y where it is another than x's (JAX's preferred_element_type); "" for the same
    """

    roles: ClassVar[tuple[str, ...]] = ("x", "w", "b")
    optional: ClassVar[frozenset[str]] = frozenset({"b"})

    axes: tuple[StridedAxis, ...]
    in_channels: int
    out_channels: int
    direction: Direction = Direction.FORWARD
    layout: Layout = Layout.CHANNELS_FIRST
    groups: int = 1
    batch_groups: int = 1
    flip: bool = False
    edge: Edge = Edge.SKIP
    accumulate: str = "float32"
    conjugate: bool = False
    y_dtype: str = ""

    def __post_init__(self) -> None:
        if not 1 <= len(self.axes) <= 3:
            raise ArgumentError(
                "windows have one to three axes",
                given={"axes": len(self.axes)},
                required=f"1 <= rank <= 3: {len(self.axes)}",
                hint="other axes moved into the batch",
            )
        for name in ("groups", "batch_groups"):
            if getattr(self, name) < 1:
                raise ArgumentError(f"{name} is below 1", given={name: getattr(self, name)}, hint=f"{name}=1")
        for name in ("in_channels", "out_channels"):
            channels = getattr(self, name)
            if channels < 0 or channels % self.groups:
                raise ArgumentError(
                    f"{name} is not divisible by groups",
                    given={name: channels, "groups": self.groups},
                    required=f"{name} % groups == 0: {channels} % {self.groups} = {channels % self.groups}",
                    hint=f"groups={math.gcd(self.in_channels, self.out_channels) or 1}, or other channels",
                )
        if self.out_channels % self.batch_groups or (self.groups > 1 and self.batch_groups > 1):
            raise ArgumentError(
                "batch_groups must divide the output channels and exclude groups",
                given={"batch_groups": self.batch_groups, "groups": self.groups, "out_channels": self.out_channels},
                hint="groups=1, or batch_groups=1",
            )
        if self.edge is Edge.CONSTANT:
            raise ArgumentError(
                "a convolution has no constant edge", given={"edge": str(self.edge)}, hint='edge="skip" pads with zeros'
            )
        transposed = self.direction is Direction.TRANSPOSED
        if transposed and (self.edge is not Edge.SKIP or self.batch_groups > 1 or any(a.input_dilation > 1 for a in self.axes)):
            raise ArgumentError(
                "a transposed convolution has zero padding, one batch group and no input dilation",
                given={"edge": str(self.edge)},
                hint='edge="skip", batch_groups=1, input_dilation=1',
            )
        if self.edge is not Edge.SKIP and any(a.input_dilation > 1 for a in self.axes):
            raise ArgumentError(
                "an edge mode needs an undilated input", given={"edge": str(self.edge)}, hint='edge="skip", or input_dilation=1'
            )

    @property
    def op(self) -> str:
        return "conv" if self.direction is Direction.FORWARD else "conv_transpose"

    @property
    def output_dtype(self) -> str:
        return self.y_dtype or self.dtype

    @property
    def whole(self) -> bool:
        """Whether x holds whole numbers or bools, which have no gradient."""
        return self.dtype == "bool" or "int" in self.dtype

    @property
    def kernel(self) -> tuple[int, ...]:
        return tuple(axis.kernel for axis in self.axes)

    @property
    def weight_shape(self) -> Shape:
        """(O, I/g, *kernel), transposed (I, O/g, *kernel)."""
        if self.direction is Direction.FORWARD:
            return (self.out_channels, self.in_channels // self.groups, *self.kernel)
        return (self.in_channels, self.out_channels // self.groups, *self.kernel)

    @property
    def input_sizes(self) -> Shape:
        return tuple(a.size if self.direction is Direction.FORWARD else a.out for a in self.axes)

    @property
    def output_sizes(self) -> Shape:
        return tuple(a.out if self.direction is Direction.FORWARD else a.size for a in self.axes)

    def output_shape(self, *shapes: Shape | None) -> Shape:
        x, w, b = (*shapes, None, None)[:3]
        assert x is not None
        rank = len(self.axes)
        expect(len(x) == rank + 2, "x has another rank than the plan", f"x.ndim == {rank + 2}: {len(x)}")
        first = self.layout is Layout.CHANNELS_FIRST
        sizes, channels = (x[2:], x[1]) if first else (x[1:-1], x[-1])
        expect(sizes == self.input_sizes, "x has other sizes than the plan was made for", f"sizes == {self.input_sizes}: {sizes}")
        expect(channels == self.in_channels, "x has other channels than the plan", f"channels == {self.in_channels}: {channels}")
        expect(x[0] % self.batch_groups == 0, "batch_groups does not divide the batch", f"{x[0]} % {self.batch_groups} == 0")
        expect(w == self.weight_shape, "w does not fit the plan", f"w.shape == {self.weight_shape}: {w}")
        expect(b is None or b == (self.out_channels,), "b does not fit the plan", f"b.shape == {(self.out_channels,)}: {b}")
        images = x[0] // self.batch_groups
        return (images, self.out_channels, *self.output_sizes) if first else (images, *self.output_sizes, self.out_channels)
