"""ReLU6: a rectifier with a ceiling."""

from __future__ import annotations

import math

from .. import ops
from ..backends.protocol import Array, Arrays
from ..plan import ElementwisePlan
from ..plan.dense import Function
from ._composed import Composed
from ._steps import Steps


class ReLU6(Composed):
    """y = min(max(x, 0) + slope * min(x, 0), limit); the gradient at 0 is the slope, that at the limit 0. In place it keeps x.

    Source     MobileNet in forks of Caffe, src/caffe/layers/relu6_layer.cpp
    """

    type = "ReLU6"
    in_place = True

    def __init__(self, *, limit: float = 6.0, slope: float = 0.0) -> None:
        super().__init__()
        self.limit, self.slope = limit, slope

    def compose(self, steps: Steps, *arrays: Array) -> Array:
        x = steps.apply(Function.RELU, arrays[0], slope=self.slope)
        dtype = x.dtype.name
        y = ops.forward(ElementwisePlan(dtype=dtype, function=Function.CLIP, low=-math.inf, high=self.limit), x)[0]

        def pull(gradients: Arrays, want: tuple[bool, ...]) -> Arrays:
            negative = ops.forward(ElementwisePlan(dtype=dtype, function=Function.POWER, scale=-1.0), x)[0]
            below = ops.forward(ElementwisePlan(dtype=dtype, function=Function.THRESHOLD, low=-self.limit), negative)[0]
            return (ops.forward(ElementwisePlan(dtype=dtype, function=Function.MULTIPLY), gradients[0], below)[0],)

        return steps.note("ceiling", x, y, pull)
