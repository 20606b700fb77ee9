"""Parameter: a blob that is learned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..plan import Shape
from .fillers import Filler
from .layer import Blobs, Layer


class ParameterLayer(Layer):
    """No bottom; the top is a parameter of the given shape, in the parameter's own memory. It begins as `filler` has it, with 0.

    Gradients are added up over backward passes, as every parameter's. Caffe lets the top's gradient be the parameter's, so
    that with iter_size above 1 only the last pass counts there.
    Source     Caffe, include/caffe/layers/parameter_layer.hpp
    """

    type = "Parameter"
    bottoms: ClassVar[tuple[int, int | None]] = (0, 0)
    shares = True

    def __init__(self, shape: Shape, *, filler: Filler | None = None) -> None:
        super().__init__()
        self.shape = tuple(shape)
        self.filler = filler or Filler()

    def setup(self, bottom: Blobs, top: Blobs) -> None:
        self.declare(self.shape, top[0].dtype, self.filler)

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        top[0].reshape(*self.shape)
        if not self.copies:
            top[0].share(self.params[0])

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        if self.copies:
            top[0].data[...] = self.params[0].data

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if self.param_wanted[0]:
            self.accumulate(0, top[0].diff)
