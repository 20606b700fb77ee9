"""BatchReindex: items of a batch by their number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from .. import ops
from ..errors import ArgumentError, UnsupportedError
from ..plan import LayoutPlan
from ..plan.layout import Move
from .layer import Blobs, Layer, integers

SOURCE = "Caffe, src/caffe/layers/batch_reindex_layer.cpp"


class BatchReindex(Layer):
    """bottoms: a batch (N, ...) and numbers (M,), each in [0, N); top: (M, ...), item i being item number[i].

    An item taken several times gets the sum of the gradients, one that is not taken 0; the numbers have none.
    Source     Caffe, src/caffe/layers/batch_reindex_layer.cpp
    """

    type = "BatchReindex"
    bottoms: ClassVar[tuple[int, int | None]] = (2, 2)

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        x, numbers = bottom
        if len(numbers.shape) != 1 or not x.shape:
            raise ArgumentError(
                "the numbers are a list, and the batch has items",
                given={"batch": x.shape, "numbers": numbers.shape},
                required="batch (N, ...), numbers (M,)",
                because=SOURCE,
            )
        top[0].reshape(numbers.shape[0], *x.shape[1:])

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        numbers = integers(bottom[1], "numbers")
        self._saved = [self.compute(self._plan(bottom), bottom[0].data, numbers, top=top[0].data)]

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if want[1]:
            raise UnsupportedError("numbers have no gradient", because=SOURCE)
        if want[0]:
            bottom[0].diff[...] = ops.backward(self._plan(bottom), top[0].diff, self.kept(), want=(True, False))[0]

    def allow_force_backward(self, index: int) -> bool:
        return index == 0

    def _plan(self, bottom: Blobs) -> LayoutPlan:
        return LayoutPlan(dtype=bottom[0].dtype, move=Move.TAKE)
