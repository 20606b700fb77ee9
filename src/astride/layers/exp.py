"""Exp: a base raised to the values."""

from __future__ import annotations

import math

from ..errors import ArgumentError
from ..plan.dense import Function
from ._unary import Unary

LARGEST = 709.0
"""exp overflows beyond it, in the longest of the dtypes."""


class Exp(Unary):
    """y = base ^ (shift + scale * x); base None is e. Computed as base^shift * exp(scale * ln(base) * x).

    Source     Caffe, src/caffe/layers/exp_layer.cpp; golden layers/exp
    """

    type = "Exp"

    def __init__(self, *, base: float | None = None, scale: float = 1.0, shift: float = 0.0) -> None:
        log = 1.0 if base is None else log_of(base)
        if shift * log > LARGEST:
            raise ArgumentError(
                "base^shift is larger than any number",
                given={"base": base, "shift": shift},
                required=f"shift * ln(base) <= {LARGEST:g}: {shift * log:g}",
                hint="a smaller shift",
            )
        super().__init__(Function.EXP, scale=scale * log, factor=math.exp(shift * log))
        self.base, self.scale, self.shift = base, scale, shift


def log_of(base: float) -> float:
    """The natural logarithm of a base. Raises ArgumentError: it has none."""
    if not 0 < base < math.inf:
        raise ArgumentError("a base is a positive number", given={"base": base}, required=f"base > 0: {base}", hint="base: 2")
    return math.log(base)
