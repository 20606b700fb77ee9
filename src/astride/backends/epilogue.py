"""What a convolution does with its results before anybody reads them: a rectifier, a leaky one, limits."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .protocol import Array


@dataclass(frozen=True, slots=True)
class Epilogue:
    """y becomes max(y, 0) + slope * min(y, 0), then min(y, high), then max(y, low): what none of these changes is left out.

    slope       of what is below zero: 1 leaves it, 0 rectifies
    low, high   limits; where low > high all is low
    nan_is_low  whether a NaN becomes `low`, as C's comparisons have it; otherwise it stays

    A kernel that does it gives what `apply` gives, to the last bit, zeros' signs included.
    """

    slope: float = 1.0
    low: float = -math.inf
    high: float = math.inf
    nan_is_low: bool = False

    @property
    def limits(self) -> bool:
        """Whether there are any."""
        return self.low > -math.inf or self.high < math.inf or self.nan_is_low

    def apply(self, y: Array, residual: Array | None = None) -> None:
        """Add a residual to y and change it, in place and step by step: as the layers do, one after the other."""
        real = y.dtype.type
        with np.errstate(all="ignore"):
            if residual is not None:
                np.add(y, residual, out=y)
            if self.slope not in (0, 1):
                below = real(self.slope) * np.minimum(y, 0)
                np.maximum(y, 0, out=y)
                y += below
            elif self.slope == 0:
                np.maximum(y, 0, out=y)
            if self.limits:
                odd = np.isnan(y) if self.nan_is_low else None
                np.minimum(y, real(self.high), out=y)
                np.maximum(y, real(self.low), out=y)
                if odd is not None:
                    np.copyto(y, real(self.low), where=odd)


RECTIFIED = Epilogue(slope=0.0)
"""Zero for what is below zero."""
