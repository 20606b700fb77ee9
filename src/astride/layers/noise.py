"""Noise: a random number is added to each value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..backends.protocol import Array
from ..errors import ArgumentError
from .layer import Blobs, Layer


class Noise(Layer):
    """y = x + noise, where `active`; y = x otherwise. The noise is Gaussian, or uniform in an interval.

    The noise of a pass follows from the layer's key and the number of the pass alone, as Dropout's mask does.

    Options    gaussian: mean and standard deviation
               uniform: from where to where; one of both at most, without either there is no noise
               active: whether to add it
    Gradient   that of the top
    Quirks     two layers have this name. One has gaussian_std, uniform_range and bias, adds noise in training only, and its
               Gaussian goes before the uniform; the other has a filler, and adds noise in both phases. A third reads the
               first's fields as parts of the data's size: that one is not told apart
    Source     two forks of Caffe, src/caffe/layers/noise_layer.cpp in happynear/caffe-windows and in jyegerlehner/caffe
    """

    type = "Noise"
    in_place = True

    def __init__(
        self,
        *,
        gaussian: tuple[float, float] | None = None,
        uniform: tuple[float, float] | None = None,
        active: bool = True,
    ) -> None:
        super().__init__()
        if gaussian is not None and uniform is not None:
            raise ArgumentError(
                "noise is of one kind", given={"gaussian": gaussian, "uniform": uniform}, required="gaussian or uniform"
            )
        if (gaussian and not 0 <= gaussian[1] < np.inf) or (uniform and not -np.inf < uniform[0] <= uniform[1] < np.inf):
            raise ArgumentError(
                "no noise has these numbers",
                given={"gaussian": gaussian, "uniform": uniform},
                required="0 <= standard deviation < inf, from <= to",
                hint="noise_param { gaussian_std: 0.1 }",
            )
        self.gaussian, self.uniform = gaussian, uniform
        self.random = active and (gaussian or uniform) is not None

    def passes_on(self) -> bool:
        return not self.random

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        if self.random:
            top[0].data[...] = bottom[0].data + self._noise(bottom[0].shape).astype(bottom[0].dtype)
        elif top[0] is not bottom[0]:
            top[0].data[...] = bottom[0].data

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if want[0] and top[0] is not bottom[0]:
            bottom[0].diff[...] = top[0].diff

    def _noise(self, shape: tuple[int, ...]) -> Array:
        generator = np.random.Generator(np.random.Philox(key=self.key, counter=[0, 0, 0, self.draws]))
        self.draws += 1
        if self.gaussian is not None:
            return generator.normal(*self.gaussian, shape)
        assert self.uniform is not None
        return generator.uniform(*self.uniform, shape)
