"""The plan of fractional max pooling: windows of one size whose places a random number per plane decides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from ..errors import ArgumentError
from .base import Plan, Shape, axis_names, expect
from .kinds import Layout, Tie


@dataclass(frozen=True, slots=True, kw_only=True)
class FractionalPlan(Plan):
    """x (N, C, *size) with samples (N, C, rank) in [0, 1) gives y (N, C, *out), or channels last (the samples as they are).

    With u the plane's sample of an axis and a = (size - kernel) / (out - 1), window i starts at
    floor((i + u) a) - floor(u a), formed in x's dtype, and the last at size - kernel. `sample_axes` says which of a plane's
    samples each axis takes. The greatest tap wins, the first of several; a NaN wins over all, by `tie` the first or the last.
    """

    roles: ClassVar[tuple[str, ...]] = ("x", "samples")

    size: tuple[int, ...]
    kernel: tuple[int, ...]
    out: tuple[int, ...]
    sample_axes: tuple[int, ...]
    layout: Layout = Layout.CHANNELS_FIRST
    tie: Tie = Tie.LAST_NAN
    accumulate: str = "float32"

    def __post_init__(self) -> None:
        rank = len(self.size)
        if not 1 <= rank <= 3 or not len(self.kernel) == len(self.out) == len(self.sample_axes) == rank:
            raise ArgumentError(
                "size, kernel, out and sample_axes need one to three axes each", given={"size": self.size, "kernel": self.kernel}
            )
        if sorted(self.sample_axes) != list(range(rank)):
            raise ArgumentError(
                "sample_axes is no order of the axes",
                given={"sample_axes": self.sample_axes},
                hint=f"sample_axes={tuple(range(rank))}",
            )
        if self.tie not in (Tie.FIRST_NAN, Tie.LAST_NAN):
            raise ArgumentError(
                "a fractional maximum returns its gradient to the first or last NaN, else the first extreme",
                given={"tie": str(self.tie)},
                required=f"one of {Tie.FIRST_NAN.value!r}, {Tie.LAST_NAN.value!r}",
                hint=f"tie={Tie.FIRST_NAN.value!r}",
            )
        for n, k, o, name in zip(self.size, self.kernel, self.out, axis_names(rank), strict=True):
            if not (k >= 1 and o >= 0 and o + k - 1 <= n):
                raise ArgumentError(
                    "the windows do not fit the input",
                    given={"kernel": self.kernel, "output_size": self.out},
                    required=f"output_size + kernel - 1 <= size, on axis {name}: {o} + {k} - 1 <= {n}",
                    hint=f"output_size={max(n - k + 1, 1)} on axis {name}",
                )

    @property
    def op(self) -> str:
        return "fractional_pool"

    @property
    def taps(self) -> int:
        return math.prod(self.kernel)

    def output_shape(self, *shapes: Shape | None) -> Shape:
        x, samples = (*shapes, None)[:2]
        assert x is not None
        rank = len(self.size)
        expect(len(x) == rank + 2, "x has another rank than the plan", f"x.ndim == {rank + 2}: {len(x)}")
        first = self.layout is Layout.CHANNELS_FIRST
        sizes, channels = (x[2:], x[1]) if first else (x[1:-1], x[-1])
        expect(sizes == self.size, "x has other sizes than the plan was made for", f"sizes == {self.size}: {sizes}")
        drawn = (x[0], channels, rank)
        expect(samples == drawn, "samples need one number per plane and axis", f"samples.shape == {drawn}: {samples}")
        return (x[0], channels, *self.out) if first else (x[0], *self.out, channels)
