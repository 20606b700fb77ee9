"""BNLL: a rectifier without the corner."""

from __future__ import annotations

from ..plan.dense import Function
from ._unary import Unary


class BNLL(Unary):
    """y = log(1 + exp(x)), the binomial normal log likelihood; it overflows nowhere.

    In place the gradient is right too; Caffe's would be taken at the result.
    Source     Caffe, src/caffe/layers/bnll_layer.cpp
    """

    type = "BNLL"

    def __init__(self) -> None:
        super().__init__(Function.BNLL)
