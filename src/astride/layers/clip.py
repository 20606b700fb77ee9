"""Clip: values held between two limits."""

from __future__ import annotations

from ..plan.dense import Function
from ..plan.kinds import Nan
from ._unary import Unary


class Clip(Unary):
    """y = low where x < low, high where x > high, else x; on the limits the gradient passes.

    NaN stays NaN; with Nan.COMPARED it becomes low, as Caffe's max(low, min(x, high)) has it. Where low > high all is low.
    In place it keeps where x lay between the limits; Caffe forgets that, and every gradient passes.
    Source     Caffe, src/caffe/layers/clip_layer.cpp; golden layers/clip
    """

    type = "Clip"

    def __init__(self, low: float, high: float, *, nan: Nan = Nan.PROPAGATED) -> None:
        super().__init__(Function.CLIP, low=low, high=high, nan=nan)
        self.low, self.high, self.nan = low, high, nan
