"""Normalize: vectors across channels, or whole images, brought to one length and scaled."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..plan import BroadcastPlan, LayoutPlan
from ..plan.dense import Function
from ..plan.layout import Move
from ..plan.reduce import ReducePlan, Total
from ._steps import Steps
from .fillers import Filler
from .layer import Blobs, Layer, nothing_kept

SOURCE = "the SSD fork of Caffe, src/caffe/layers/normalize_layer.cpp"


class Normalize(Layer):
    """y = scale * x / sqrt(sum x^2 + eps), the sum over the channels of a place, or over the whole image.

    Bottoms    x (N, C, *size)
    Tops       y of x's shape
    Options    across_spatial: one sum for an image, in place of one for each place
               channel_shared: one scale, in place of one for each channel. It is learned
               eps: inside the root, so that an image of zeros stays one
    Gradient   the true one, of the scale too
    Source     the SSD fork of Caffe, src/caffe/layers/normalize_layer.cpp
    """

    type = "Normalize"
    in_place = True

    def __init__(
        self, *, across_spatial: bool = True, channel_shared: bool = True, eps: float = 1e-10, filler: Filler | None = None
    ) -> None:
        super().__init__()
        self.across_spatial = across_spatial
        self.channel_shared = channel_shared
        self.eps = eps
        self.filler = filler or Filler(value=1.0)
        self._steps: Steps | None = None
        self._ends: tuple[Array, ...] = ()

    def setup(self, bottom: Blobs, top: Blobs) -> None:
        if len(bottom[0].shape) < 2:
            raise ArgumentError(
                "there are no channels to sum over", given={"shape": bottom[0].shape}, required="(N, C, ...)", because=SOURCE
            )
        self.declare(() if self.channel_shared else bottom[0].shape[1:2], bottom[0].dtype, self.filler)

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        shape, scale = bottom[0].shape, self.params[0].shape
        if len(shape) < 2 or (not self.channel_shared and shape[1:2] != scale):
            raise ArgumentError(
                "the scales are for another number of channels",
                given={"shape": shape, "scale": scale},
                required=f"(N, {', '.join(map(str, scale)) or 'C'}, ...)",
                because=SOURCE,
            )
        top[0].reshape(*shape)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        x = bottom[0].data
        if self.keep and np.may_share_memory(x, top[0].data):
            x = x.copy()
        steps = self._steps = Steps(self.keep)
        scale = self.params[0].data
        y = self._across(steps, x) if self.across_spatial else self._each_place(steps, x)
        y = steps.run(BroadcastPlan(dtype=bottom[0].dtype, axis=0 if self.channel_shared else 1), y, scale)
        self._ends = (x, scale, y)
        top[0].data[...] = y

    def _across(self, steps: Steps, x: Array) -> Array:
        images = steps.shaped(x, (x.shape[0], math.prod(x.shape[1:])))
        return steps.shaped(self._unit(steps, images), x.shape)

    def _each_place(self, steps: Steps, x: Array) -> Array:
        """The same with channels last, where a place's are a row."""
        last = (0, *range(2, x.ndim), 1)
        back = (0, x.ndim - 1, *range(1, x.ndim - 1))
        places = steps.run(LayoutPlan(dtype=x.dtype.name, move=Move.PERMUTE, order=last), x)
        return steps.run(LayoutPlan(dtype=x.dtype.name, move=Move.PERMUTE, order=back), self._unit(steps, places))

    def _unit(self, steps: Steps, x: Array) -> Array:
        """x with its last axis brought to length 1."""
        dtype = x.dtype.name
        squares = steps.run(ReducePlan(dtype=dtype, total=Total.SUMSQ, axis=x.ndim - 1), x)
        return steps.run(BroadcastPlan(dtype=dtype, axis=0), x, steps.apply(Function.POWER, squares, shift=self.eps, power=-0.5))

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if self._steps is None:
            raise nothing_kept()
        x, scale, y = self._ends
        dx, dscale = self._steps.backward([(y, top[0].diff)], [x, scale])
        if self.param_wanted[0]:
            self.accumulate(0, dscale)
        if want[0]:
            bottom[0].diff[...] = dx
