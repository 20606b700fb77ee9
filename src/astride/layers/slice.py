"""Slice: one blob cut into several."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar

from .. import ops
from ..errors import ArgumentError
from ..plan import LayoutPlan
from ..plan.layout import Move
from .blob import Blob
from .layer import Blobs, Layer, canonical_axis

SOURCE = "Caffe, src/caffe/layers/slice_layer.cpp"


class Slice(Layer):
    """The tops are the parts of the bottom along `axis`, cut at `points`; without points all of one size.

    Source     Caffe, src/caffe/layers/slice_layer.cpp
    """

    type = "Slice"
    tops: ClassVar[tuple[int, int | None]] = (1, None)

    def __init__(self, *, axis: int = 1, points: Sequence[int] = ()) -> None:
        super().__init__()
        self.axis = axis
        self.points = tuple(int(p) for p in points)

    def setup(self, bottom: Blobs, top: Blobs) -> None:
        if self.points and len(self.points) != len(top) - 1:
            raise ArgumentError(
                "there is a point between each two tops, or none at all",
                given={"slice_point": self.points, "tops": len(top)},
                required=f"points == tops - 1: {len(self.points)} == {len(top) - 1}",
                because=SOURCE,
            )

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        for y, plan in zip(top, self.plans(bottom[0], len(top)), strict=True):
            y.reshape(*plan.output_shape(bottom[0].shape))

    def plans(self, blob: Blob, tops: int) -> list[LayoutPlan]:
        """A cut for each top."""
        axis = canonical_axis(self.axis, blob.shape)
        edges = self._edges(blob.shape[axis], tops)
        return [
            LayoutPlan(dtype=blob.dtype, move=Move.CROP, axis=axis, starts=(low,), sizes=(high - low,))
            for low, high in pairwise(edges)
        ]

    def _edges(self, size: int, tops: int) -> list[int]:
        """Where the parts begin, and the end."""
        if not self.points:
            if size % tops:
                raise ArgumentError(
                    "the axis does not divide into equal parts",
                    given={"axis": self.axis, "tops": tops},
                    required=f"size % tops == 0: {size} % {tops} = {size % tops}",
                    because=SOURCE,
                    hint="slice_point: ... between each two tops",
                )
            return list(range(0, size + 1, max(size // tops, 1))) if size else [0] * (tops + 1)
        edges = [0, *self.points, size]
        if any(low >= high for low, high in pairwise(edges)):
            raise ArgumentError(
                "the points do not rise from the axis's beginning to its end",
                given={"slice_point": self.points},
                required=f"0 < point < next point < {size}: {self.points}",
                because=SOURCE,
            )
        return edges

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        for y, plan in zip(top, self.plans(bottom[0], len(top)), strict=True):
            self.compute(plan, bottom[0].data, top=y.data, keep=False)

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        """The parts' gradients joined: the cuts cover the bottom."""
        if want[0]:
            axis = canonical_axis(self.axis, bottom[0].shape)
            plan = LayoutPlan(dtype=bottom[0].dtype, move=Move.CONCAT, axis=axis, pieces=len(top))
            ops.forward(plan, *(y.diff for y in top), out=bottom[0].diff)
