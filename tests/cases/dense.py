"""What a case of a dense operator is: its plan, its arrays' shapes, and what fills them."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from astride.plan import Plan

Array = NDArray[Any]


@dataclass(frozen=True)
class DenseCase:
    """`shapes` are in the order of the plan's roles, None for an absent array; integer arrays lie below `integers`."""

    name: str
    plan: Plan
    shapes: tuple[tuple[int, ...] | None, ...]
    integers: int = 1

    def __str__(self) -> str:
        return self.name

    def arrays(self, dtype: str | None = None) -> tuple[Array | None, ...]:
        """Small integers, so that sums are exact in any order; the same in every process."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        made: list[Array | None] = []
        for role, shape in zip(self.plan.roles, self.shapes, strict=True):
            if shape is None:
                made.append(None)
            elif role in self.plan.integer_roles:
                made.append(rng.integers(0, self.integers, shape))
            else:
                made.append(rng.integers(-4, 5, shape).astype(dtype or self.plan.dtype))
        return tuple(made)

    def double(self) -> DenseCase:
        """The same in float64."""
        return replace(self, plan=replace(self.plan, dtype="float64"))


@dataclass(frozen=True)
class DenseRefusal:
    """A call that is refused: the arrays' shapes and dtypes, the keywords, and texts that the message holds."""

    name: str
    arrays: tuple[tuple[tuple[int, ...], str], ...]
    keywords: dict[str, Any]
    says: tuple[str, ...]
    error: str = "ArgumentError"

    def __str__(self) -> str:
        return self.name

    def made(self) -> list[Array]:
        return [np.zeros(shape, dtype) for shape, dtype in self.arrays]
