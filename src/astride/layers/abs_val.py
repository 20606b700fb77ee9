"""AbsVal: values without their sign."""

from __future__ import annotations

from ..plan.dense import Function
from ._unary import Unary


class AbsVal(Unary):
    """y = |x|. The gradient at 0 is 0. Not in place, as in Caffe.

    Source     Caffe, src/caffe/layers/absval_layer.cpp
    """

    type = "AbsVal"
    in_place = False

    def __init__(self) -> None:
        super().__init__(Function.ABS)
