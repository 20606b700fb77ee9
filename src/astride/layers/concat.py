"""Concat: blobs one behind the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from .. import ops
from ..errors import ArgumentError
from ..plan import LayoutPlan
from ..plan.layout import Move
from .layer import Blobs, Layer, canonical_axis


class Concat(Layer):
    """All bottoms along `axis`, in their order; their other axes must agree.

    Source     Caffe, src/caffe/layers/concat_layer.cpp
    """

    type = "Concat"
    bottoms: ClassVar[tuple[int, int | None]] = (1, None)

    def __init__(self, *, axis: int = 1) -> None:
        super().__init__()
        self.axis = axis

    def plan(self, bottom: Blobs) -> LayoutPlan:
        """The plan for bottoms of this rank."""
        axis = canonical_axis(self.axis, bottom[0].shape)
        return LayoutPlan(dtype=bottom[0].dtype, move=Move.CONCAT, axis=axis, pieces=len(bottom))

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        plan = self.plan(bottom)
        first = bottom[0].shape
        for x in bottom[1:]:
            same = len(x.shape) == len(first)
            if not same or any(n != m for a, (n, m) in enumerate(zip(x.shape, first, strict=True)) if a != plan.axis):
                raise ArgumentError(
                    "the bottoms differ along another axis than the one they are joined along",
                    given={"axis": self.axis, "shapes": [b.shape for b in bottom]},
                    required=f"equal shapes but for axis {plan.axis}: {x.shape} and {first}",
                    because="Caffe, src/caffe/layers/concat_layer.cpp",
                    hint="a Crop or other pads before this layer",
                )
        top[0].reshape(*plan.output_shape(*(b.shape for b in bottom)))

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        self._saved = [self.compute(self.plan(bottom), *(b.data for b in bottom), top=top[0].data)]

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if not any(want):
            return
        for x, dx in zip(bottom, ops.backward(self.plan(bottom), top[0].diff, self.kept(), want=want), strict=True):
            if dx is not None:
                x.diff[...] = dx
