"""ArgMax: the places of the greatest values."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import ops
from ..errors import ArgumentError, UnsupportedError
from ..plan import ArgmaxPlan
from .blob import Blob
from .layer import Blobs, Layer, canonical_axis

SOURCE = "Caffe, src/caffe/layers/argmax_layer.cpp"


class ArgMax(Layer):
    """The `top_k` greatest, the greatest first; of equals the one with the highest place comes first.

    axis       search along this axis: the top has top_k in its place, the places or, with `values`, the values
               None: search each image as a whole; the top is (N, 1, top_k) with the places counted in the flattened
               image, or (N, 2, top_k) with `values`: places, then values; as many axes of 1 behind as the bottom has more

    Places travel in the blob's own dtype. There is no gradient.
    Source     Caffe, src/caffe/layers/argmax_layer.cpp
    """

    type = "ArgMax"

    def __init__(self, *, top_k: int = 1, axis: int | None = None, values: bool = False) -> None:
        super().__init__()
        if top_k < 1:
            raise ArgumentError("top_k counts from 1", given={"top_k": top_k}, required=f"top_k >= 1: {top_k}", hint="top_k: 1")
        self.top_k = top_k
        self.axis = axis
        self.values = values

    def plan(self, blob: Blob, *, values: bool) -> ArgmaxPlan:
        """The search; without an axis over (N, rest)."""
        axis = 1 if self.axis is None else canonical_axis(self.axis, blob.shape)
        return ArgmaxPlan(dtype=blob.dtype, axis=axis, top_k=self.top_k, values=values)

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        shape = bottom[0].shape
        if self.axis is None:
            canonical_axis(0, shape)
            size = math.prod(shape[1:])
            result = [shape[0], 2 if self.values else 1, self.top_k, *[1] * (len(shape) - 3)]
        else:
            axis = canonical_axis(self.axis, shape)
            size, result = shape[axis], [*shape[:axis], self.top_k, *shape[axis + 1 :]]
        if self.top_k > size:
            raise ArgumentError(
                "top_k is more than there are values to search",
                given={"top_k": self.top_k, "shape": shape},
                required=f"top_k <= {size}: {self.top_k}",
                because=SOURCE,
                hint="top_k: 1",
            )
        top[0].reshape(*result)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        x, y = bottom[0].data, top[0].data
        if self.axis is not None:
            y[...] = ops.forward(self.plan(bottom[0], values=self.values), x)[0]
            return
        rows = x.reshape(x.shape[0], math.prod(x.shape[1:]))
        found = y.reshape(y.shape[0], y.shape[1], self.top_k)
        for i in range(found.shape[1]):
            found[:, i] = ops.forward(self.plan(bottom[0], values=i == 1), rows)[0]

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if any(want):
            raise UnsupportedError("the place of a maximum has no gradient", because=SOURCE)

    def allow_force_backward(self, index: int) -> bool:
        return False
