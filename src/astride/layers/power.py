"""Power: values shifted, scaled and raised to a power."""

from __future__ import annotations

import numpy as np

from ..backends.protocol import Array
from ..plan.dense import Function
from ._unary import Unary


class Power(Unary):
    """y = (shift + scale * x) ^ power.

    Where scale or power is 0 x takes no part, whatever it is. The gradient where shift + scale * x is 0 is the
    derivative: 0 for a power above 1, infinite for one between 0 and 1; Caffe divides y by that 0 and gets NaN.
    Source     Caffe, src/caffe/layers/power_layer.cpp; golden layers/power
    """

    type = "Power"

    def __init__(self, *, power: float = 1.0, scale: float = 1.0, shift: float = 0.0) -> None:
        super().__init__(Function.POWER, power=power, scale=scale, shift=shift)
        self.power, self.scale, self.shift = power, scale, shift

    def affine(self, channels: int) -> tuple[Array, Array] | None:
        return (np.full(channels, self.scale), np.full(channels, self.shift)) if self.power == 1 else None
