"""LRN: values less where their neighbours are large."""

from __future__ import annotations

from collections.abc import Sequence

from .. import ops
from ..errors import ArgumentError
from ..plan import LrnPlan
from .blob import Blob
from .layer import Blobs, Layer, canonical_axis


class LRN(Layer):
    """y = x / (k + alpha * sum of x^2 over a window)^beta, zeros outside x.

    The window has `size` places in each of `axes`: axes=(1,) is the window across channels, axes=(2, 3) the one within a
    channel. alpha multiplies the sum. Caffe's own alpha is divided by the size across channels, and by its square, also
    at the borders, within a channel, where there is no k either: it is 1. Caffe has odd sizes only; of an even one there
    is one place more before than after. In place it keeps x.
    Source     Caffe, src/caffe/layers/lrn_layer.cpp; goldens layers/lrn5, lrn3k2, lrn_within3
    """

    type = "LRN"
    in_place = True

    def __init__(
        self, *, size: int = 5, alpha: float = 1.0, beta: float = 0.75, k: float = 1.0, axes: Sequence[int] = (1,)
    ) -> None:
        super().__init__()
        if size < 1:
            raise ArgumentError("a window has one place or more", given={"local_size": size}, required="local_size >= 1")
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k
        self.axes = tuple(axes)

    def plan(self, blob: Blob) -> LrnPlan:
        """The plan for a bottom of this rank."""
        axes = tuple(canonical_axis(axis, blob.shape) for axis in self.axes)
        before, after = self.size // 2, (self.size - 1) // 2
        return LrnPlan(dtype=blob.dtype, axes=axes, before=before, after=after, alpha=self.alpha, beta=self.beta, k=self.k)

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        top[0].reshape(*self.plan(bottom[0]).output_shape(bottom[0].shape))

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        self._saved = [self.compute(self.plan(bottom[0]), bottom[0].data, top=top[0].data)]

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if want[0]:
            bottom[0].diff[...] = ops.backward(self.plan(bottom[0]), top[0].diff, self.kept())[0]
