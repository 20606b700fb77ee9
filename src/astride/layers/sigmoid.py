"""Sigmoid: everything between 0 and 1."""

from __future__ import annotations

from ..plan.dense import Function
from ._unary import Unary


class Sigmoid(Unary):
    """y = 1 / (1 + exp(-x)), computed as (1 + tanh(x / 2)) / 2, which overflows nowhere.

    Source     Caffe, src/caffe/layers/sigmoid_layer.cpp; golden layers/sigmoid
    """

    type = "Sigmoid"

    def __init__(self) -> None:
        super().__init__(Function.SIGMOID)
