"""Threshold: ones where values lie above a limit, zeros elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import UnsupportedError
from ..plan.dense import Function
from ._unary import Unary
from .layer import Blobs


class Threshold(Unary):
    """y = 1 where x > threshold, else 0, for NaN as well. A step has no gradient: nothing below it can learn through it.

    Source     Caffe, src/caffe/layers/threshold_layer.cpp
    """

    type = "Threshold"

    def __init__(self, *, threshold: float = 0.0) -> None:
        super().__init__(Function.THRESHOLD, low=threshold)
        self.threshold = threshold

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if want[0]:
            raise UnsupportedError(
                "a threshold has no gradient",
                because="Caffe, src/caffe/layers/threshold_layer.cpp, has no backward pass: where there is a slope, it is 0",
                hint="propagate_down: false",
            )

    def allow_force_backward(self, index: int) -> bool:
        return False
