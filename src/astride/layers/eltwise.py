"""Eltwise: products, weighted sums or maxima of blobs of one shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from .. import ops
from ..backends.protocol import Array
from ..errors import ArgumentError
from ..plan import ElementwisePlan
from ..plan.dense import Function
from ..plan.kinds import Nan, Tie
from .layer import Blobs, Layer


class Eltwise(Layer):
    """y = the product (Function.MULTIPLY), sum (ADD) or maximum (MAXIMUM) of two or more bottoms, from the first to the last.

    coeffs              factors of a sum, one for each bottom; none means 1
    second_wins_ties    of a maximum's first two bottoms the second has the gradient where they are equal; every further
                        one wins only where it is greater. Otherwise the first of equals always has it
    nan                 whether a maximum keeps every NaN (Nan.PROPAGATED), or each step is one comparison, as in Caffe,
                        which may lose it (Nan.COMPARED)
    stable_gradient     a product's gradient is the product of the others; without, y / x, which is NaN where x is 0

    Source     Caffe, src/caffe/layers/eltwise_layer.cpp; goldens layers/elt_prod, elt_prod3, elt_coeff, elt_max, elt_max_ties
    """

    type = "Eltwise"
    bottoms: ClassVar[tuple[int, int | None]] = (2, None)

    def __init__(
        self,
        function: Function = Function.ADD,
        *,
        coeffs: Sequence[float] = (),
        second_wins_ties: bool = False,
        nan: Nan = Nan.PROPAGATED,
        stable_gradient: bool = True,
    ) -> None:
        super().__init__()
        if function not in (Function.MULTIPLY, Function.ADD, Function.MAXIMUM):
            raise ArgumentError(
                "there is no such operation on many blobs",
                given={"operation": str(function)},
                required="one of multiply, add, maximum",
            )
        if coeffs and function is Function.MULTIPLY:
            raise ArgumentError(
                "only a sum has coefficients",
                given={"operation": str(function), "coeff": list(coeffs)},
                because="Caffe, src/caffe/layers/eltwise_layer.cpp",
                hint="operation: SUM",
            )
        self.function = function
        self.coeffs = tuple(coeffs)
        self.second_wins_ties = second_wins_ties
        self.nan = nan
        self.stable_gradient = stable_gradient
        self._product: Array | None = None

    def setup(self, bottom: Blobs, top: Blobs) -> None:
        if self.coeffs and len(self.coeffs) != len(bottom):
            raise ArgumentError(
                "there is one coefficient for each bottom, or none",
                given={"coeff": list(self.coeffs), "bottoms": len(bottom)},
                required=f"{len(bottom)} coefficients: {len(self.coeffs)}",
                because="Caffe, src/caffe/layers/eltwise_layer.cpp",
            )

    def plan(self, index: int, dtype: str) -> ElementwisePlan:
        """The step that takes in the bottom of this index, 1 or more."""
        plan = ElementwisePlan(dtype=dtype, function=self.function)
        if self.function is Function.ADD and self.coeffs:
            return replace(plan, scale=self.coeffs[0] if index == 1 else 1.0, z_scale=self.coeffs[index])
        if self.function is Function.MAXIMUM:
            return replace(plan, tie=Tie.LAST if self.second_wins_ties and index == 1 else Tie.FIRST, nan=self.nan)
        return plan

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        for blob in bottom[1:]:
            if blob.shape != bottom[0].shape:
                raise ArgumentError(
                    "the bottoms have different shapes",
                    given={"bottoms": [b.shape for b in bottom]},
                    required=f"equal shapes: {bottom[0].shape} == {blob.shape}",
                    because="Caffe, src/caffe/layers/eltwise_layer.cpp",
                )
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        self._saved = []
        so_far, last = bottom[0].data, len(bottom) - 1
        for i in range(1, last):
            so_far, saved = ops.forward(self.plan(i, top[0].dtype), so_far, bottom[i].data, save=self.keep)
            self._saved.append(saved)
        self._saved.append(self.compute(self.plan(last, top[0].dtype), so_far, bottom[last].data, top=top[0].data))
        divides = self.function is Function.MULTIPLY and not self.stable_gradient
        self._product = top[0].data.copy() if divides and self.keep else None

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if self._product is not None:
            self._divide(self._product, top[0].diff, want, bottom)
            return
        dy: Array = top[0].diff
        for i in reversed(range(1, len(bottom))):
            wanted = (any(want[:i]), want[i])
            before, own = ops.backward(self.plan(i, top[0].dtype), dy, self.kept(i - 1), want=wanted)
            if own is not None:
                bottom[i].diff[...] = own
            if before is None:
                return
            dy = before
        bottom[0].diff[...] = dy

    def _divide(self, product: Array, dy: Array, want: Sequence[bool], bottom: Blobs) -> None:
        """The gradient y / x * dy."""
        divide = ElementwisePlan(dtype=dy.dtype.name, function=Function.DIVIDE)
        for blob, wanted in zip(bottom, want, strict=True):
            if wanted:
                others = ops.forward(divide, product, blob.data)[0]
                blob.diff[...] = ops.forward(replace(divide, function=Function.MULTIPLY), others, dy)[0]
