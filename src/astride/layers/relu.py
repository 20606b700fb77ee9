"""ReLU: negative values become zero, or a fraction of themselves."""

from __future__ import annotations

from collections.abc import Sequence

from .. import ops
from ..plan import ElementwisePlan
from ..plan.dense import Function
from .blob import Blob
from .layer import Blobs, Layer


class ReLU(Layer):
    """y = max(x, 0) + slope * min(x, 0). In place it is right for any slope: where x was positive is kept."""

    type = "ReLU"
    in_place = True

    def __init__(self, *, slope: float = 0.0) -> None:
        super().__init__()
        self.slope = slope

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        self._saved = [self.compute(self._plan(bottom[0]), bottom[0].data, top=top[0].data)]

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if want[0]:
            bottom[0].diff[...] = ops.backward(self._plan(bottom[0]), top[0].diff, self.kept(), want=(True, False))[0]

    def _plan(self, blob: Blob) -> ElementwisePlan:
        return ElementwisePlan(dtype=blob.dtype, function=Function.RELU, slope=self.slope)
