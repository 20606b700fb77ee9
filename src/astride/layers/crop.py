"""Crop: a box of the size of another blob."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from .. import ops
from ..errors import ArgumentError
from ..plan import LayoutPlan
from ..plan.layout import Move
from .layer import Blobs, Layer, canonical_axis

SOURCE = "Caffe, src/caffe/layers/crop_layer.cpp"


class Crop(Layer):
    """bottoms: the blob to cut, and one whose sizes the cut takes from `axis` on; its values do not matter.

    offsets    where the box begins: one for all axes from `axis` on, one each, or none for 0

    The second bottom's gradient is 0.
    Source     Caffe, src/caffe/layers/crop_layer.cpp
    """

    type = "Crop"
    bottoms: ClassVar[tuple[int, int | None]] = (2, 2)

    def __init__(self, *, axis: int = 2, offsets: Sequence[int] = ()) -> None:
        super().__init__()
        self.axis = axis
        self.offsets = tuple(int(n) for n in offsets)

    def plan(self, bottom: Blobs) -> LayoutPlan:
        """The cut for bottoms of these shapes."""
        x, like = bottom[0].shape, bottom[1].shape
        axis = canonical_axis(self.axis, x)
        cut = len(x) - axis
        if len(like) < len(x):
            raise ArgumentError(
                "the second bottom has no size for every axis of the first",
                given={"shapes": (x, like)},
                required=f"at least {len(x)} axes: {len(like)}",
                because=SOURCE,
            )
        if len(self.offsets) not in (0, 1, cut):
            raise ArgumentError(
                "there is an offset for each axis that is cut, one for all, or none",
                given={"axis": self.axis, "offset": self.offsets},
                required=f"0, 1 or {cut} offsets: {len(self.offsets)}",
                because=SOURCE,
            )
        starts = self.offsets if len(self.offsets) == cut else (self.offsets or (0,)) * cut
        for a, start in enumerate(starts, axis):
            if start + like[a] > x[a]:
                raise ArgumentError(
                    "the box leaves the blob",
                    given={"offset": self.offsets, "shapes": (x, like)},
                    required=f"offset + size <= size of the bottom, on axis {a}: {start} + {like[a]} <= {x[a]}",
                    because=SOURCE,
                    hint=f"offset: {max(x[a] - like[a], 0)}",
                )
        return LayoutPlan(dtype=bottom[0].dtype, move=Move.CROP, axis=axis, starts=starts, sizes=like[axis : len(x)])

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        top[0].reshape(*self.plan(bottom).output_shape(bottom[0].shape))

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        self._saved = [self.compute(self.plan(bottom), bottom[0].data, top=top[0].data)]

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if want[0]:
            bottom[0].diff[...] = ops.backward(self.plan(bottom), top[0].diff, self.kept())[0]
        if want[1]:
            bottom[1].diff.fill(0)
