"""Reduction: everything behind an axis becomes one number."""

from __future__ import annotations

from collections.abc import Sequence

from .. import ops
from ..plan import ReducePlan
from ..plan.reduce import Total
from .blob import Blob
from .layer import Blobs, Layer, canonical_axis


class Reduction(Layer):
    """coeff times the sum, mean, sum of |x| or sum of x^2 of everything from `axis` on; the axes before it stay.

    The gradient of |x| at 0 is 0.
    Source     Caffe, src/caffe/layers/reduction_layer.cpp
    """

    type = "Reduction"

    def __init__(self, *, total: Total = Total.SUM, axis: int = 0, coeff: float = 1.0) -> None:
        super().__init__()
        self.total = total
        self.axis = axis
        self.coeff = coeff

    def plan(self, blob: Blob) -> ReducePlan:
        """The plan for a bottom of this rank."""
        axis = canonical_axis(self.axis, blob.shape)
        return ReducePlan(dtype=blob.dtype, total=self.total, axis=axis, coeff=self.coeff)

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        top[0].reshape(*self.plan(bottom[0]).output_shape(bottom[0].shape))

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        self._saved = [self.compute(self.plan(bottom[0]), bottom[0].data, top=top[0].data)]

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if want[0]:
            bottom[0].diff[...] = ops.backward(self.plan(bottom[0]), top[0].diff, self.kept())[0]
