"""Split: one blob for several readers, whose gradients are summed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from .. import ops
from ..plan import ElementwisePlan
from ..plan.dense import Function
from .layer import Blobs, Layer


class Split(Layer):
    """Every top is the bottom, in its memory; the bottom's gradient is the sum of the tops'.

    A network puts one behind every blob that is read more than once, so a text needs none.
    `sums` says which tops have a gradient: those whose reader passes none (as labels, say) stay out. Empty means all.

    Source      Caffe, src/caffe/layers/split_layer.cpp, src/caffe/util/insert_splits.cpp
    """

    type = "Split"
    tops: ClassVar[tuple[int, int | None]] = (1, None)
    shares = True

    def __init__(self) -> None:
        super().__init__()
        self.sums: Sequence[bool] = ()

    def passes_on(self) -> bool:
        return True

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        for y in top:
            y.reshape(*bottom[0].shape)
            if not self.copies:
                y.share(bottom[0])

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        if self.copies:
            for y in top:
                y.data[...] = bottom[0].data

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if not want[0]:
            return
        dx = bottom[0].diff
        parts = [y.diff for y, counts in zip(top, self.sums or [True] * len(top), strict=True) if counts and y.has_diff]
        if not parts:
            dx.fill(0)
            return
        dx[...] = parts[0]
        plan = ElementwisePlan(dtype=bottom[0].dtype, function=Function.ADD)
        for part in parts[1:]:
            dx[...] = ops.forward(plan, dx, part)[0]
