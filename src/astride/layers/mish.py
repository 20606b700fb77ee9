"""Mish: values times the hyperbolic tangent of their softplus."""

from __future__ import annotations

from ..backends.protocol import Array
from ..plan.dense import Function
from ._composed import Composed
from ._steps import Steps


class Mish(Composed):
    """y = x * tanh(log(1 + exp(x))). In place it keeps x.

    Quirks      the fork's own backward pass takes y for x; here the gradient is the derivative
    Source      the YOLO ports of Caffe, src/caffe/layers/mish_layer.cpp
    """

    type = "Mish"
    in_place = True

    def compose(self, steps: Steps, *arrays: Array) -> Array:
        x = arrays[0]
        return steps.apply(Function.MULTIPLY, steps.apply(Function.TANH, steps.apply(Function.BNLL, x)), x)
