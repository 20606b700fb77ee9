"""Softmax: scores become probabilities along one axis."""

from __future__ import annotations

from collections.abc import Sequence

from .. import ops
from ..plan import SoftmaxPlan
from .blob import Blob
from .layer import Blobs, Layer, canonical_axis


class Softmax(Layer):
    """y = exp(x) / sum of exp(x) along `axis`, computed from x less its maximum, so that nothing overflows.

    Source      Caffe, src/caffe/layers/softmax_layer.cpp; golden layers/softmax, softmax_axis2
    """

    type = "Softmax"
    in_place = True

    def __init__(self, *, axis: int = 1) -> None:
        super().__init__()
        self.axis = axis

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        canonical_axis(self.axis, bottom[0].shape)
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        self._saved = [self.compute(self._plan(bottom[0]), bottom[0].data, top=top[0].data)]

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if want[0]:
            bottom[0].diff[...] = ops.backward(self._plan(bottom[0]), top[0].diff, self.kept(), want=(True,))[0]

    def _plan(self, blob: Blob) -> SoftmaxPlan:
        return SoftmaxPlan(dtype=blob.dtype, axis=canonical_axis(self.axis, blob.shape))
