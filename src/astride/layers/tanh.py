"""TanH: everything between -1 and 1."""

from __future__ import annotations

from ..plan.dense import Function
from ._unary import Unary


class TanH(Unary):
    """y = tanh(x).

    Source     Caffe, src/caffe/layers/tanh_layer.cpp; golden layers/tanh
    """

    type = "TanH"

    def __init__(self) -> None:
        super().__init__(Function.TANH)
