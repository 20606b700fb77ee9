"""Flatten: several axes become one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..errors import ArgumentError
from .layer import Blobs, Layer, canonical_axis


class Flatten(Layer):
    """Axes `axis` to `end_axis` (inclusive) as one, in the bottom's own memory."""

    type = "Flatten"
    shares = True

    def __init__(self, *, axis: int = 1, end_axis: int = -1) -> None:
        super().__init__()
        self.axis = axis
        self.end_axis = end_axis

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        shape = bottom[0].shape
        first, last = canonical_axis(self.axis, shape), canonical_axis(self.end_axis, shape)
        if last < first - 1:
            raise ArgumentError(
                "the axes to flatten are in the wrong order",
                given={"axis": self.axis, "end_axis": self.end_axis},
                required=f"axis - 1 <= end_axis: {first - 1} <= {last}",
                hint="end_axis: -1",
            )
        top[0].reshape(*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :])
        if not self.copies:
            top[0].share(bottom[0], data=True, diff=True)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        if self.copies:
            top[0].data[...] = bottom[0].data.reshape(top[0].shape)

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if self.copies and want[0]:
            bottom[0].diff[...] = top[0].diff.reshape(bottom[0].shape)
