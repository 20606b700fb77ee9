"""Dropout: in training, some values are put to zero and the rest made larger."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import ops
from ..backends.protocol import Array
from ..errors import ArgumentError
from ..plan import ElementwisePlan
from ..plan.dense import Function
from .blob import Blob
from .layer import Blobs, Layer


class Dropout(Layer):
    """y = x * mask / (1 - ratio) in training, y = x otherwise.

    The mask of a pass follows from the layer's key and the number of the pass alone, so that a restored run can go on
    as the unbroken one would have: set `draws` to the passes made.

    Source      Caffe, src/caffe/layers/dropout_layer.cpp, which scales in training, too; golden layers/dropout_test
    """

    type = "Dropout"
    in_place = True

    def __init__(self, *, ratio: float = 0.5, training: bool = False) -> None:
        super().__init__()
        if not 0 <= ratio < 1:
            raise ArgumentError(
                "the dropout ratio is a part of the whole", given={"dropout_ratio": ratio}, required=f"0 <= ratio < 1: {ratio}"
            )
        self.ratio = ratio
        self.random = training

    def passes_on(self) -> bool:
        return not self.random

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        if self.random:
            self._saved = [self.compute(self._plan(bottom[0]), bottom[0].data, self._mask(bottom[0]), top=top[0].data)]
        elif top[0] is not bottom[0]:
            top[0].data[...] = bottom[0].data

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if want[0] and self.random:
            bottom[0].diff[...] = ops.backward(self._plan(bottom[0]), top[0].diff, self.kept(), want=(True, False))[0]
        elif want[0] and top[0] is not bottom[0]:
            bottom[0].diff[...] = top[0].diff

    def _plan(self, blob: Blob) -> ElementwisePlan:
        return ElementwisePlan(dtype=blob.dtype, function=Function.MULTIPLY, scale=1 / (1 - self.ratio))

    def _mask(self, blob: Blob) -> Array:
        """Ones and zeros; each is one with probability 1 - ratio."""
        counter = np.random.Philox(key=self.key, counter=[0, 0, 0, self.draws])
        self.draws += 1
        return (np.random.Generator(counter).random(blob.shape, np.float32) >= self.ratio).astype(blob.dtype)
