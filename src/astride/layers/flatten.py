"""Flatten: several axes become one."""

from __future__ import annotations

import math

from ..errors import ArgumentError
from ..plan import Shape
from ._view import View
from .layer import canonical_axis


class Flatten(View):
    """Axes `axis` to `end_axis` (inclusive) as one, in the bottom's own memory.

    Source      Caffe, src/caffe/layers/flatten_layer.cpp; golden layers/flatten, flatten_axis
    """

    type = "Flatten"

    def __init__(self, *, axis: int = 1, end_axis: int = -1) -> None:
        super().__init__()
        self.axis = axis
        self.end_axis = end_axis

    def top_shape(self, shape: Shape) -> Shape:
        first, last = canonical_axis(self.axis, shape), canonical_axis(self.end_axis, shape)
        if last < first - 1:
            raise ArgumentError(
                "the axes to flatten are in the wrong order",
                given={"axis": self.axis, "end_axis": self.end_axis},
                required=f"axis - 1 <= end_axis: {first - 1} <= {last}",
                hint="end_axis: -1",
            )
        return (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :])
