"""Reshape: the same values in another shape."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..errors import ArgumentError
from ..plan import Shape
from ._view import View
from .layer import canonical_axis

SOURCE = "Caffe, src/caffe/layers/reshape_layer.cpp"


class Reshape(View):
    """`dims` stand in for `num_axes` axes of the bottom from `axis` on; the axes around them stay.

    dims       a size; 0 for the size of the bottom's axis at that place; -1, once, for what is left over
    axis       where they begin; -1 is behind the last axis
    num_axes   how many axes they replace, -1 for all that follow; 0 puts the dims in and takes nothing out

    The top uses the bottom's memory.
    Source     Caffe, src/caffe/layers/reshape_layer.cpp
    """

    type = "Reshape"

    def __init__(self, dims: Sequence[int], *, axis: int = 0, num_axes: int = -1) -> None:
        super().__init__()
        self.dims = tuple(int(n) for n in dims)
        self.axis = axis
        self.num_axes = num_axes
        if any(n < -1 for n in self.dims) or self.dims.count(-1) > 1:
            raise ArgumentError(
                "these sizes make no shape",
                given={"dim": self.dims},
                required="sizes >= 0, and at most one -1 for what is left over",
                because=SOURCE,
            )
        if num_axes < -1:
            raise ArgumentError("num_axes is negative", given={"num_axes": num_axes}, required="num_axes >= -1", because=SOURCE)

    def top_shape(self, shape: Shape) -> Shape:
        first = len(shape) + self.axis + 1 if self.axis < 0 else self.axis
        # As places between axes, of which there is one more than axes.
        canonical_axis(first if first >= 0 else self.axis, shape, end=True)
        last = len(shape) if self.num_axes == -1 else first + self.num_axes
        if last > len(shape):
            raise ArgumentError(
                "the bottom has fewer axes than are to be replaced",
                given={"axis": self.axis, "num_axes": self.num_axes, "shape": shape},
                required=f"axis + num_axes <= {len(shape)}: {first} + {self.num_axes}",
                because=SOURCE,
                hint="num_axes: -1",
            )
        top = [*shape[:first], *self._copied(shape, first), *shape[last:]]
        count, known = math.prod(shape), math.prod(n for n in top if n >= 0)
        if -1 in top:
            if known == 0 or count % known:
                raise self._misfit(shape, f"bottom.count % (product of the others) == 0: {count} % {known}")
            top[top.index(-1)] = count // known
        elif known != count:
            raise self._misfit(shape, f"top.count == bottom.count: {known} == {count}")
        return tuple(top)

    def _copied(self, shape: Shape, first: int) -> list[int]:
        """The dims, each 0 replaced by the bottom's size at its place."""
        dims = list(self.dims)
        for i, n in enumerate(dims):
            if n == 0:
                if first + i >= len(shape):
                    raise ArgumentError(
                        "dim: 0 stands where the bottom has no axis to copy",
                        given={"dim": self.dims, "shape": shape},
                        required=f"axis + {i} < {len(shape)}: {first + i}",
                        because=SOURCE,
                        hint="a size in its place",
                    )
                dims[i] = shape[first + i]
        return dims

    def _misfit(self, shape: Shape, required: str) -> ArgumentError:
        return ArgumentError(
            "the values do not fit the new shape",
            given={"dim": self.dims, "axis": self.axis, "num_axes": self.num_axes, "shape": shape},
            required=required,
            because=SOURCE,
            hint="dim: -1 for one of the sizes",
        )
