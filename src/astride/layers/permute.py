"""Permute: axes in another order."""

from __future__ import annotations

from collections.abc import Sequence

from .. import ops
from ..errors import ArgumentError
from ..plan import LayoutPlan
from ..plan.layout import Move
from .blob import Blob
from .layer import Blobs, Layer


class Permute(Layer):
    """The top's axis i is the bottom's axis `order[i]`. Axes that are not named follow in their own order.

    Source     the SSD fork of Caffe, src/caffe/layers/permute_layer.cpp; BVLC has no such layer
    """

    type = "Permute"

    def __init__(self, order: Sequence[int]) -> None:
        super().__init__()
        self.order = tuple(int(a) for a in order)
        if len(set(self.order)) != len(self.order) or any(a < 0 for a in self.order):
            raise ArgumentError(
                "the order names an axis twice, or one that cannot be",
                given={"order": self.order},
                required="different axes, counted from 0",
                hint="order: 0 order: 2 order: 3 order: 1",
            )

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        top[0].reshape(*self.plan(bottom[0]).output_shape(bottom[0].shape))

    def plan(self, blob: Blob) -> LayoutPlan:
        """The plan for a bottom of this rank."""
        rank = len(blob.shape)
        if any(a >= rank for a in self.order):
            raise ArgumentError(
                "the order names an axis that the bottom does not have",
                given={"order": self.order, "shape": blob.shape},
                required=f"order < {rank}: {max(self.order)}",
            )
        rest = tuple(a for a in range(rank) if a not in self.order)
        return LayoutPlan(dtype=blob.dtype, move=Move.PERMUTE, order=self.order + rest)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        self._saved = [self.compute(self.plan(bottom[0]), bottom[0].data, top=top[0].data)]

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if want[0]:
            bottom[0].diff[...] = ops.backward(self.plan(bottom[0]), top[0].diff, self.kept())[0]
