"""HardSigmoid: a straight line between 0 and 1."""

from __future__ import annotations

from ..backends.protocol import Array
from ..plan.dense import Function
from ._composed import Composed
from ._steps import Steps


class HardSigmoid(Composed):
    """y = alpha * x + beta, held between 0 and 1. In place it keeps x.

    Source     MobileNet v3 in forks of Caffe, src/caffe/layers/hard_sigmoid_layer.cpp
    """

    type = "HardSigmoid"
    in_place = True

    def __init__(self, *, alpha: float = 0.2, beta: float = 0.5) -> None:
        super().__init__()
        self.alpha, self.beta = alpha, beta

    def compose(self, steps: Steps, *arrays: Array) -> Array:
        line = steps.apply(Function.POWER, arrays[0], scale=self.alpha, shift=self.beta, power=1.0)
        return steps.apply(Function.CLIP, line, low=0.0, high=1.0)
