"""Pad: a constant around a blob."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ArgumentError
from ..plan import Shape
from .layer import Blobs, Layer


class Pad(Layer):
    """The bottom with `pads` places before and behind each axis, filled with `value`.

    Gradient    the top's, without the pads
    Source      TensorFlow in a fork of Caffe, src/caffe/layers/pad_layer.cpp
    """

    type = "Pad"

    def __init__(self, pads: Sequence[tuple[int, int]], *, value: float = 0.0) -> None:
        super().__init__()
        self.pads, self.value = tuple(pads), value
        if any(n < 0 for pair in self.pads for n in pair):
            raise ArgumentError(
                "pads are not negative", given={"paddings": self.pads}, required="each >= 0", hint="a Crop or a Slice"
            )

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        shape = bottom[0].shape
        if len(shape) != len(self.pads):
            raise ArgumentError(
                "each axis needs two pads",
                given={"bottom": shape, "paddings": self.pads},
                required=f"len(paddings) == 2 * {len(shape)}: {2 * len(self.pads)}",
                because="a fork of Caffe, src/caffe/layers/pad_layer.cpp",
                hint="paddings: 0 paddings: 0 ... for axes without pads",
            )
        top[0].reshape(*(n + low + high for n, (low, high) in zip(shape, self.pads, strict=True)))

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        y = top[0].data
        y.fill(self.value)
        y[self._box(bottom[0].shape)] = bottom[0].data

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if want[0]:
            bottom[0].diff[...] = top[0].diff[self._box(bottom[0].shape)]

    def _box(self, shape: Shape) -> tuple[slice, ...]:
        return tuple(slice(low, low + n) for n, (low, _) in zip(shape, self.pads, strict=True))
