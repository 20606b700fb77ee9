"""The plan of max unpooling: values scattered to the places their indices name, zeros elsewhere."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from ..errors import ArgumentError
from .base import Plan, Shape, expect
from .kinds import IndexBase, Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpoolPlan(Plan):
    """x (N, C, *size) and indices of its shape give y (N, C, *out); layout as stated, indices per `index_base`.

    Where two values have one index, the last in row-major order stays, and the gradient of both is that place's dy,
    as in PyTorch. An index outside the plane (or tensor) is an error, never a write. Indices count in planes of
    `index_size`, no larger than `out`, which they are where it is not given.
    """

    roles: ClassVar[tuple[str, ...]] = ("x", "indices")
    integer_roles: ClassVar[frozenset[str]] = frozenset({"indices"})

    size: tuple[int, ...]
    out: tuple[int, ...]
    layout: Layout = Layout.CHANNELS_FIRST
    index_base: IndexBase = IndexBase.PLANE
    index_size: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not 1 <= len(self.size) <= 3 or len(self.size) != len(self.out):
            raise ArgumentError(
                "sizes and output sizes need one to three axes each",
                given={"size": self.size, "out": self.out},
                required=f"len(size) == len(out): {len(self.size)} == {len(self.out)}",
                hint="one output size per spatial axis",
            )
        if min(self.out) < 1:
            raise ArgumentError(
                "the output is empty",
                given={"out": self.out},
                required=f"out >= 1: {min(self.out)}",
                hint="less padding, or output_size=",
            )
        if self.index_base not in (IndexBase.PLANE, IndexBase.TENSOR):
            raise ArgumentError(
                "unpooling needs indices of a plane or tensor",
                given={"index_base": str(self.index_base)},
                hint='index_base="plane"',
            )
        counted = self.counted
        if len(counted) != len(self.out) or any(not 1 <= inner <= outer for inner, outer in zip(counted, self.out, strict=True)):
            raise ArgumentError(
                "the planes that indices count in do not fit the output",
                given={"index_size": self.index_size, "out": self.out},
                required=f"1 <= index_size <= out: {counted} <= {self.out}",
                hint=f"index_size={self.out}",
            )

    @property
    def op(self) -> str:
        return "max_unpool"

    @property
    def counted(self) -> tuple[int, ...]:
        """The sizes of the planes that indices count in."""
        return self.out if self.index_size is None else self.index_size

    @property
    def plane(self) -> int:
        """Places in one output plane."""
        return math.prod(self.out)

    def output_shape(self, *shapes: Shape | None) -> Shape:
        x, indices = (*shapes, None)[:2]
        assert x is not None
        rank = len(self.size)
        expect(len(x) == rank + 2, "x has another rank than the plan", f"x.ndim == {rank + 2}: {len(x)}")
        first = self.layout is Layout.CHANNELS_FIRST
        sizes = x[2:] if first else x[1:-1]
        expect(sizes == self.size, "x has other sizes than the plan was made for", f"sizes == {self.size}: {sizes}")
        expect(indices == x, "indices need one place per value", f"indices.shape == {x}: {indices}")
        return (x[0], x[1], *self.out) if first else (x[0], *self.out, x[-1])
