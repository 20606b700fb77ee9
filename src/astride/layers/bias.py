"""Bias: values plus a number for each channel."""

from __future__ import annotations

import numpy as np

from ..backends.protocol import Array
from ..plan.norms import Along
from ._along import AlongAxes
from .fillers import Filler


class Bias(AlongAxes):
    """y = x + bias, repeated over all axes but those from `axis` on.

    The bias is a parameter of `num_axes` axes (-1: all that follow; 0: one number), or the second bottom.
    Source     Caffe, src/caffe/layers/bias_layer.cpp; golden layers/bias
    """

    type = "Bias"

    def __init__(self, *, axis: int = 1, num_axes: int = 1, filler: Filler | None = None) -> None:
        super().__init__(Along.ADD, axis=axis, num_axes=num_axes, filler=filler or Filler())

    def affine(self, channels: int) -> tuple[Array, Array] | None:
        if self.axis != 1 or not self.params or self.params[0].shape != (channels,):
            return None
        return np.ones(channels), self.params[0].data.astype(np.float64)
