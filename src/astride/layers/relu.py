"""ReLU: negative values become zero, or a fraction of themselves."""

from __future__ import annotations

from ..plan.dense import Function
from ._unary import Unary


class ReLU(Unary):
    """y = max(x, 0) + slope * min(x, 0); the gradient at 0 is the slope.

    In place it is right for any slope: where x was positive is kept.
    Source     Caffe, src/caffe/layers/relu_layer.cpp; goldens layers/relu, relu_leaky
    """

    type = "ReLU"

    def __init__(self, *, slope: float = 0.0) -> None:
        super().__init__(Function.RELU, slope=slope)
        self.slope = slope
