"""Layers that combine the bottom with a smaller array along some of its axes: a parameter, or a second bottom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from .. import ops
from ..errors import ArgumentError
from ..plan import BroadcastPlan, Shape
from ..plan.norms import Along
from .blob import Blob
from .fillers import Filler
from .layer import Blobs, Layer, canonical_axis


class AlongAxes(Layer):
    """Subclasses say what is computed.

    axis        the first of x's axes that the smaller array has; negative ones count from the back
    num_axes    how many it has where it is a parameter: -1 for all that follow, 0 for one number
    filler      its first values; `shift_filler` those of a second parameter of its shape, which is added
    """

    bottoms: ClassVar[tuple[int, int | None]] = (1, 2)
    in_place = True

    def __init__(
        self, function: Along, *, axis: int = 1, num_axes: int = 1, filler: Filler, shift_filler: Filler | None = None
    ) -> None:
        super().__init__()
        if num_axes < -1:
            raise ArgumentError(
                "num_axes counts axes", given={"num_axes": num_axes}, required=f"num_axes >= -1: {num_axes}", hint="num_axes: 1"
            )
        self.function = function
        self.axis = axis
        self.num_axes = num_axes
        self.filler = filler
        self.shift_filler = shift_filler

    def setup(self, bottom: Blobs, top: Blobs) -> None:
        shape = self._other_shape(bottom)
        if len(bottom) == 1:
            self.declare(shape, bottom[0].dtype, self.filler)
        if self.shift_filler is not None:
            self.declare(shape, bottom[0].dtype, self.shift_filler)

    def plan(self, x: Blob, other: Blob) -> BroadcastPlan:
        """The plan for a bottom with this smaller array."""
        axis = canonical_axis(self.axis, x.shape) if other.shape else 0
        return BroadcastPlan(dtype=x.dtype, function=self.function, axis=axis)

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        other = self._other(bottom)
        axis = canonical_axis(self.axis, bottom[0].shape) if other.shape else 0
        own = bottom[0].shape[axis : axis + len(other.shape)]
        if own != other.shape:
            raise ArgumentError(
                "the smaller array does not fit the bottom",
                given={"bottom": bottom[0].shape, "smaller": other.shape, "axis": axis},
                required=f"bottom.shape[{axis}:{axis + len(other.shape)}] == {other.shape}: {own}",
                hint="a bottom of the size that the network was set up with" if len(bottom) == 1 else "another axis",
            )
        if self.shift_filler is not None and self.params[-1].shape != other.shape:
            raise ArgumentError(
                "the bias has another shape than the second bottom",
                given={"second bottom": other.shape, "bias": self.params[-1].shape},
                required=f"equal shapes: {other.shape} == {self.params[-1].shape}",
            )
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        other = self._other(bottom)
        shift = self.params[-1].data if self.shift_filler is not None else None
        self._saved = [self.compute(self.plan(bottom[0], other), bottom[0].data, other.data, shift, top=top[0].data)]

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        wanted = (*want, *self.param_wanted)
        gradients = ops.backward(self.plan(bottom[0], self._other(bottom)), top[0].diff, self.kept(), want=wanted)
        for blob, gradient in zip(bottom, gradients, strict=False):
            if gradient is not None:
                blob.diff[...] = gradient
        for i in range(len(self.params)):
            self.accumulate(i, gradients[len(bottom) + i])

    def _other(self, bottom: Blobs) -> Blob:
        return bottom[1] if len(bottom) > 1 else self.params[0]

    def _other_shape(self, bottom: Blobs) -> Shape:
        if len(bottom) > 1:
            return bottom[1].shape
        x = bottom[0].shape
        if self.num_axes == 0:
            return ()
        axis = canonical_axis(self.axis, x)
        end = len(x) if self.num_axes == -1 else axis + self.num_axes
        if end > len(x):
            raise ArgumentError(
                "the bottom has too few axes",
                given={"bottom": x, "axis": axis, "num_axes": self.num_axes},
                required=f"axis + num_axes <= {len(x)}: {end}",
                hint="num_axes: -1",
            )
        return x[axis:end]
