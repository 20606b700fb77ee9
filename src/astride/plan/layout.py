"""The plan of operators that move values and compute nothing: other orders, joints, cuts and repetitions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from ..errors import ArgumentError
from .base import Plan, Shape, expect
from .dense import DENSE_DTYPES


class Move(StrEnum):
    """What a layout plan does with an array."""

    PERMUTE = "permute"  # its axes in another order
    CONCAT = "concat"  # several arrays, one behind the other along an axis
    CROP = "crop"  # a box cut out of it
    TILE = "tile"  # the whole of it again and again along an axis
    TAKE = "take"  # places of an axis by their index, each any number of times


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutPlan(Plan):
    """Where each value goes. Only the fields of the move count; the others keep their defaults.

    permute   order: the input's axes in the order of the output
    concat    axis, pieces: how many arrays
    crop      axis, starts, sizes: along axis + i, `sizes[i]` places from `starts[i]` on; other axes whole
    tile      axis, tiles
    take      axis; indices of any shape take the axis's place
    """

    integer_roles: ClassVar[frozenset[str]] = frozenset({"indices"})

    move: Move
    axis: int = 0
    order: tuple[int, ...] = ()
    pieces: int = 1
    starts: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    tiles: int = 1

    def __post_init__(self) -> None:
        if self.dtype not in DENSE_DTYPES:
            raise ArgumentError(
                "layout moves float32 or float64",
                given={"dtype": self.dtype},
                required=f"one of {', '.join(DENSE_DTYPES)}",
                hint='x.astype("float32")',
                operator="layout",
            )
        if self.axis < 0:
            raise ArgumentError(
                "a plan's axis counts from the front", given={"axis": self.axis}, required="axis >= 0", operator="layout"
            )
        if sorted(self.order) != list(range(len(self.order))):
            raise ArgumentError(
                "the order does not name every axis once",
                given={"order": self.order},
                required=f"a permutation of {tuple(range(len(self.order)))}",
                operator="layout",
            )
        for name in ("pieces", "tiles"):
            if getattr(self, name) < 1:
                raise ArgumentError(
                    f"{name} count from 1", given={name: getattr(self, name)}, required=f"{name} >= 1", operator="layout"
                )
        if len(self.starts) != len(self.sizes) or any(n < 0 for n in (*self.starts, *self.sizes)):
            raise ArgumentError(
                "a cut has a start and a size along each of its axes, none negative",
                given={"starts": self.starts, "sizes": self.sizes},
                required=f"len(starts) == len(sizes): {len(self.starts)} == {len(self.sizes)}",
                operator="layout",
            )

    @property
    def op(self) -> str:
        return "layout"

    @property
    def roles(self) -> tuple[str, ...]:  # type: ignore[override]
        """x, or x0, x1, ... for pieces that are joined; a take has indices besides."""
        if self.move is Move.CONCAT:
            return tuple(f"x{i}" for i in range(self.pieces))
        return ("x", "indices") if self.move is Move.TAKE else ("x",)

    @property
    def box(self) -> tuple[slice, ...]:
        """The cut as slices, from the first axis on."""
        cut = (slice(start, start + size) for start, size in zip(self.starts, self.sizes, strict=True))
        return (slice(None),) * self.axis + tuple(cut)

    def output_shape(self, *shapes: Shape | None) -> Shape:
        x = shapes[0]
        assert x is not None
        if self.move is Move.PERMUTE:
            expect(len(x) == len(self.order), "the order is for another rank", f"x.ndim == {len(self.order)}: {len(x)}")
            return tuple(x[a] for a in self.order)
        expect(self.axis < len(x), "x has no such axis", f"axis < x.ndim: {self.axis} < {len(x)}")
        if self.move is Move.CONCAT:
            return self._joined(shapes)
        if self.move is Move.CROP:
            return self._cut(x)
        before, after = x[: self.axis], x[self.axis + 1 :]
        if self.move is Move.TILE:
            return (*before, x[self.axis] * self.tiles, *after)
        indices = shapes[1]
        assert indices is not None
        expect(
            x[self.axis] > 0 or math.prod(indices) == 0, "there is nothing to take", f"x.shape[{self.axis}] >= 1: {x[self.axis]}"
        )
        return (*before, *indices, *after)

    def _joined(self, shapes: tuple[Shape | None, ...]) -> Shape:
        first, total = shapes[0], 0
        assert first is not None
        for i, shape in enumerate(shapes):
            assert shape is not None
            fits = len(shape) == len(first) and all(
                n == m for a, (n, m) in enumerate(zip(shape, first, strict=True)) if a != self.axis
            )
            expect(
                fits, f"x{i} does not fit x0", f"equal shapes but for axis {self.axis}: {shape} and {first}", **{f"x{i}": shape}
            )
            total += shape[self.axis]
        return (*first[: self.axis], total, *first[self.axis + 1 :])

    def _cut(self, x: Shape) -> Shape:
        last = self.axis + len(self.starts)
        expect(last <= len(x), "the cut has more axes than x", f"axis + len(starts) <= x.ndim: {last} <= {len(x)}")
        for a, start, size in zip(range(self.axis, last), self.starts, self.sizes, strict=True):
            expect(start + size <= x[a], "the cut leaves x", f"start + size <= x.shape[{a}]: {start} + {size} <= {x[a]}")
        return (*x[: self.axis], *self.sizes, *x[last:])
