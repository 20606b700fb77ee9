"""ContrastiveLoss: pairs that belong together are pulled together, others pushed apart up to a margin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from .. import ops
from ..backends.protocol import Array, Arrays
from ..errors import ArgumentError
from ..plan import ElementwisePlan, Shape
from ..plan.dense import Function
from ..plan.reduce import Total
from ._loss import Loss, sum_plan
from ._steps import Steps
from .layer import Blobs, integers

EPSILON = 1e-4
"""What Caffe adds to a distance before it divides by it, in the gradient."""


class ContrastiveLoss(Loss):
    """(sum of d^2 over the pairs that belong together, and of max(0, margin - d)^2 over the others) / (2 pairs).

    d is the distance of the pair: the root of sum (a - b)^2 over its features.

    Bottoms    a and b (pairs, features), further axes of size 1; one label a pair: 0 for two that do not belong
               together, anything else for two that do. Labels have no gradient
    Tops       the loss, one number
    Options    margin
               legacy: max(0, margin - d^2) for the others, as Caffe computed it first
               epsilon: added to d where the gradient divides by it, so that two equal samples have one
    Gradient   for a, together: (a - b) / pairs. Others inside the margin: -(margin - d) (a - b) / ((d + epsilon) pairs),
               legacy -(a - b) / pairs. The negative of that for b
    Quirks     with Caffe's epsilon of 1e-4 the gradient is smaller than the true one by 1e-4 / d
    Source     Caffe, src/caffe/layers/contrastive_loss_layer.cpp; golden layers/contrastive, contrastive_legacy
    """

    type = "ContrastiveLoss"
    bottoms: ClassVar[tuple[int, int | None]] = (3, 3)
    labels: ClassVar[frozenset[int]] = frozenset({2})
    source = "src/caffe/layers/contrastive_loss_layer.cpp"

    def __init__(self, *, margin: float = 1.0, legacy: bool = False, epsilon: float = EPSILON) -> None:
        super().__init__()
        if epsilon <= 0:
            raise ArgumentError("epsilon keeps a gradient finite", given={"epsilon": epsilon}, required=f"epsilon > 0: {epsilon}")
        self.margin = margin
        self.legacy = legacy
        self.epsilon = epsilon

    def check(self, bottom: Blobs) -> None:
        a, b = (blob.shape for blob in bottom[:2])
        if _rows(a) != _rows(b) or any(n != 1 for n in (*a[2:], *b[2:])):
            raise ArgumentError(
                "a pair is two rows of equally many features",
                given={"a": a, "b": b},
                required="(pairs, features), further axes of size 1, twice",
                because=f"Caffe, {self.source}",
            )
        self.one_label_each(bottom, 2)

    def loss(self, steps: Steps, arrays: Sequence[Array], bottom: Blobs) -> Array:
        dtype, shape = bottom[0].dtype, _rows(bottom[0].shape)
        a, b = (steps.shaped(array, shape) for array in arrays[:2])
        squares = steps.run(sum_plan(dtype, 1.0, total=Total.SUMSQ, axis=1), steps.apply(Function.ADD, a, b, z_scale=-1.0))
        together = integers(bottom[2], "labels").reshape(-1) != 0
        near, far = (steps.take(squares, np.flatnonzero(which)) for which in (together, ~together))
        half = 0.5 / max(shape[0], 1)
        pull = steps.run(sum_plan(dtype, half), near)
        distances = far if self.legacy else self._root(steps, far)
        missing = steps.apply(Function.RELU, steps.apply(Function.POWER, distances, scale=-1.0, shift=self.margin))
        push = steps.run(sum_plan(dtype, half, total=Total.SUM if self.legacy else Total.SUMSQ), missing)
        return steps.apply(Function.ADD, pull, push)

    def _root(self, steps: Steps, squares: Array) -> Array:
        """The distances; their gradient is divided by twice the distance and epsilon."""
        dtype = squares.dtype.name
        root = ops.forward(ElementwisePlan(dtype=dtype, function=Function.POWER, power=0.5), squares)[0]

        def pull(gradients: Arrays, want: tuple[bool, ...]) -> Arrays:
            moved = ops.forward(ElementwisePlan(dtype=dtype, function=Function.POWER, shift=self.epsilon), root)[0]
            return (ops.forward(ElementwisePlan(dtype=dtype, function=Function.DIVIDE, scale=0.5), gradients[0], moved)[0],)

        return steps.note("root", squares, root, pull)


def _rows(shape: Shape) -> Shape:
    return (*shape, 1)[:2]
