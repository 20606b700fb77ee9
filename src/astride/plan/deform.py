"""The plan of a deformable convolution: taps moved by offsets that are data, between pixels, and weighed by a mask."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from ..errors import ArgumentError
from .axis import StridedAxis
from .base import Plan, Shape, expect
from .kinds import Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class DeformPlan(Plan):
    """x (N, I, *size), offset (N, G * taps * rank, *out), w (O, I/g, *kernel), mask (N, G * taps, *out), b (O,) give
    y (N, O, *out); channels last in x, offset, mask and y alike.

        y[i] = sum_j w[j] mask[j, i] x(i*stride - pad_lo + j*dilation + offset[j, i]) + b

    x between pixels is interpolated linearly along every axis; pixels outside the input are 0, and so is a tap that lies a
    whole pixel or more outside. Channels are in G = `offset_groups` groups with offsets of their own: the offset's channel is
    (group * taps + tap) * rank + axis, the mask's group * taps + tap. Without a mask every tap weighs 1 (v1).
    """

    roles: ClassVar[tuple[str, ...]] = ("x", "offset", "w", "mask", "b")
    optional: ClassVar[frozenset[str]] = frozenset({"mask", "b"})

    axes: tuple[StridedAxis, ...]
    in_channels: int
    out_channels: int
    layout: Layout = Layout.CHANNELS_FIRST
    groups: int = 1
    offset_groups: int = 1
    accumulate: str = "float32"

    def __post_init__(self) -> None:
        if not 1 <= len(self.axes) <= 3:
            raise ArgumentError(
                "windows have one to three axes",
                given={"axes": len(self.axes)},
                required=f"1 <= rank <= 3: {len(self.axes)}",
                hint="other axes moved into the batch",
            )
        for channels, groups in (("in_channels", "groups"), ("out_channels", "groups"), ("in_channels", "offset_groups")):
            count, parts = getattr(self, channels), getattr(self, groups)
            if parts < 1 or count < 0 or count % parts:
                raise ArgumentError(
                    f"{channels} is not divisible by {groups}",
                    given={channels: count, groups: parts},
                    required=f"{channels} % {groups} == 0: {count} % {parts}",
                    hint=f"{groups}={math.gcd(count, max(parts, 1)) or 1}",
                )
        if any(axis.input_dilation > 1 for axis in self.axes):
            raise ArgumentError(
                "a deformable convolution has no input dilation", given={"axes": self.axes}, hint="input_dilation=1"
            )

    @property
    def op(self) -> str:
        return "deform_conv"

    @property
    def kernel(self) -> tuple[int, ...]:
        return tuple(axis.kernel for axis in self.axes)

    @property
    def taps(self) -> int:
        return math.prod(self.kernel)

    @property
    def weight_shape(self) -> Shape:
        return (self.out_channels, self.in_channels // self.groups, *self.kernel)

    def shape_of(self, images: int, channels: int, *, inside: bool = False) -> Shape:
        """An array's shape in the plan's layout: one per output position, or `inside` the input."""
        sizes = tuple(axis.size if inside else axis.out for axis in self.axes)
        return (images, channels, *sizes) if self.layout is Layout.CHANNELS_FIRST else (images, *sizes, channels)

    def output_shape(self, *shapes: Shape | None) -> Shape:
        x, offset, w, mask, b = (*shapes, None, None, None, None)[:5]
        assert x is not None
        expect(len(x) == len(self.axes) + 2, "x has another rank than the plan", f"x.ndim == {len(self.axes) + 2}: {len(x)}")
        wanted = self.shape_of(x[0], self.in_channels, inside=True)
        expect(x == wanted, "x has another shape than the plan was made for", f"x.shape == {wanted}: {x}")
        moved = self.shape_of(x[0], self.offset_groups * self.taps * len(self.axes))
        expect(offset == moved, "offset does not fit the plan", f"offset.shape == {moved}: {offset}")
        expect(w == self.weight_shape, "w does not fit the plan", f"w.shape == {self.weight_shape}: {w}")
        weighed = self.shape_of(x[0], self.offset_groups * self.taps)
        expect(mask is None or mask == weighed, "mask does not fit the plan", f"mask.shape == {weighed}: {mask}")
        expect(b is None or b == (self.out_channels,), "b does not fit the plan", f"b.shape == {(self.out_channels,)}: {b}")
        return self.shape_of(x[0], self.out_channels)
