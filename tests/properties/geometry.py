"""Random geometry for properties: small, so that a failure is readable, and derandomised, so that it is found again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

SETTINGS = settings(max_examples=settings.default.max_examples // 4, deadline=None, derandomize=True, database=None)
"""A quarter of the profile's examples, 25 in every run: each may need kernels that no other does, which takes longer to compile
than to run. The profile of the complete sweep has ten times as many."""

PAD_MODES = {"clamp": "edge", "mirror": "reflect", "mirror_edge": "symmetric", "wrap": "wrap"}
"""Edge modes as np.pad calls them."""


@dataclass(frozen=True)
class Windows:
    """Per axis: size, kernel, stride, dilation, pads."""

    size: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]

    @property
    def rank(self) -> int:
        return len(self.size)

    @property
    def arguments(self) -> dict[str, Any]:
        return {"stride": self.stride, "dilation": self.dilation, "padding": self.padding}


@st.composite
def windows(draw: st.DrawFn, *, ranks: tuple[int, ...] = (1, 2, 3), crop: bool = True) -> Windows:
    """One to three axes, each with at least one window."""
    rank = draw(st.sampled_from(ranks))
    size, kernel, stride, dilation, padding = [], [], [], [], []
    for _ in range(rank):
        k, d = draw(st.integers(1, 3)), draw(st.integers(1, 2))
        lo, hi = (draw(st.integers(-1 if crop else 0, 3)) for _ in range(2))
        reach = (k - 1) * d + 1
        size.append(draw(st.integers(max(reach - lo - hi, 1), max(reach - lo - hi, 1) + 4)))
        kernel.append(k)
        dilation.append(d)
        stride.append(draw(st.integers(1, 3)))
        padding.append((lo, hi))
    return Windows(tuple(size), tuple(kernel), tuple(stride), tuple(dilation), tuple(padding))


def integers(seed: int, shape: tuple[int, ...]) -> Any:
    """Small integers in double precision: every sum of their products is exact."""
    return np.random.default_rng(seed).integers(-5, 6, shape).astype("float64")


def distinct(seed: int, shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(seed).permutation(int(np.prod(shape))).reshape(shape).astype("float64")
