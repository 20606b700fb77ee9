"""Scale: values times a factor for each channel, and perhaps a bias."""

from __future__ import annotations

import numpy as np

from ..backends.protocol import Array
from ..plan.norms import Along
from ._along import AlongAxes
from .fillers import Filler


class Scale(AlongAxes):
    """y = x * scale, + bias where asked for; both are repeated over all axes but those from `axis` on.

    The scale is a parameter of `num_axes` axes (-1: all that follow; 0: one number), or the second bottom. The bias is
    always a parameter, of the scale's shape.
    In place it keeps x.
    Source     Caffe, src/caffe/layers/scale_layer.cpp; goldens layers/scale_bias, scale_axis2, scale_2bottom
    """

    type = "Scale"

    def __init__(
        self,
        *,
        axis: int = 1,
        num_axes: int = 1,
        bias: bool = False,
        filler: Filler | None = None,
        bias_filler: Filler | None = None,
    ) -> None:
        super().__init__(
            Along.MULTIPLY,
            axis=axis,
            num_axes=num_axes,
            filler=filler or Filler(value=1.0),
            shift_filler=(bias_filler or Filler()) if bias else None,
        )
        self.bias = bias

    def affine(self, channels: int) -> tuple[Array, Array] | None:
        if self.axis != 1 or not self.params or any(p.shape != (channels,) for p in self.params):
            return None
        if len(self.params) == 1 and self.bias:
            return None  # the scale is a second bottom
        scale = self.params[0].data.astype(np.float64)
        return scale, self.params[1].data.astype(np.float64) if self.bias else np.zeros(channels)
