"""Swish: values times their own sigmoid."""

from __future__ import annotations

from ..plan.dense import Function
from ._unary import Unary


class Swish(Unary):
    """y = x * sigmoid(beta * x). In place it keeps x.

    Source     Caffe, src/caffe/layers/swish_layer.cpp; golden layers/swish
    """

    type = "Swish"

    def __init__(self, *, beta: float = 1.0) -> None:
        super().__init__(Function.SWISH, scale=beta)
        self.beta = beta
