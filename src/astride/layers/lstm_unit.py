"""LSTMUnit: one time step of an LSTM, without its products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ..backends.protocol import Array
from ..errors import ArgumentError
from ._steps import Steps
from .layer import Blobs, Layer, nothing_kept
from .lstm import lstm_step

SOURCE = "Caffe, src/caffe/layers/lstm_unit_layer.cpp"


class LSTMUnit(Layer):
    """i, f, o = sigmoid of the first three quarters of g, c = cont f c_before + i tanh(the last quarter), h = o tanh(c).

    Bottoms    c_before (1, streams, D); g, the sums of the four gates, (1, streams, 4 D); cont (1, streams), 0 where a stream
               begins anew
    Tops       c and h, (1, streams, D) each
    Gradient   to c_before and g; none to cont
    Source     Caffe, src/caffe/layers/lstm_unit_layer.cpp
    """

    type = "LSTMUnit"
    bottoms: ClassVar[tuple[int, int | None]] = (3, 3)
    tops: ClassVar[tuple[int, int | None]] = (2, 2)

    def __init__(self) -> None:
        super().__init__()
        self._steps: Steps | None = None
        self._given: list[Array] = []
        self._made: tuple[Array, Array] | None = None

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        c, g, cont = (blob.shape for blob in bottom)
        if len(c) != 3 or c[0] != 1 or g != (1, c[1], 4 * c[2]) or cont != c[:2]:
            raise ArgumentError(
                "the three bottoms do not belong together",
                given={"c": c, "g": g, "cont": cont},
                required="(1, N, D), (1, N, 4 D) and (1, N)",
                because=SOURCE,
            )
        for y in top:
            y.reshape(*c)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        steps = Steps(self.keep)
        c, g = (blob.data for blob in bottom[:2])
        gate = np.repeat(bottom[2].data[:, :, None], c.shape[2], axis=2)
        after, h = lstm_step(steps, c, g, gate)
        top[0].data[...], top[1].data[...] = after, h
        self._steps, self._given, self._made = steps, [c, g], (after, h)

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if self._steps is None or self._made is None:
            raise nothing_kept()
        wanted = [a for a, w in zip(self._given, want, strict=False) if w]
        found = self._steps.backward(zip(self._made, (y.diff for y in top), strict=True), wanted)
        for blob, gradient in zip([b for b, w in zip(bottom[:2], want, strict=False) if w], found, strict=True):
            blob.diff[...] = 0 if gradient is None else gradient

    def allow_force_backward(self, index: int) -> bool:
        return index < 2
