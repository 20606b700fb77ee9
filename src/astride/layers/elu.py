"""ELU: negative values level off smoothly."""

from __future__ import annotations

from ..plan.dense import Function
from ._unary import Unary


class ELU(Unary):
    """y = x where x > 0, alpha * (exp(x) - 1) elsewhere; the gradient at 0 is alpha.

    In place it is right for any alpha: where x was positive is kept.
    Source     Caffe, src/caffe/layers/elu_layer.cpp; goldens layers/elu, elu_a
    """

    type = "ELU"

    def __init__(self, *, alpha: float = 1.0) -> None:
        super().__init__(Function.ELU, slope=alpha)
        self.alpha = alpha
