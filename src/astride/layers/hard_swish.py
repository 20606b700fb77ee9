"""HardSwish: values times a straight line between 0 and 1."""

from __future__ import annotations

from ..backends.protocol import Array
from ..plan.dense import Function
from ._composed import Composed
from ._steps import Steps


class HardSwish(Composed):
    """y = x * min(max(x + 3, 0), 6) / 6. In place it keeps x.

    Source     MobileNet v3 in forks of Caffe, src/caffe/layers/hard_swish_layer.cpp
    """

    type = "HardSwish"
    in_place = True

    def compose(self, steps: Steps, *arrays: Array) -> Array:
        x = arrays[0]
        line = steps.apply(Function.CLIP, steps.apply(Function.POWER, x, shift=3.0), low=0.0, high=6.0)
        return steps.apply(Function.MULTIPLY, x, line, scale=1 / 6)
