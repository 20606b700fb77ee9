"""EuclideanLoss: half the squared distance of two blobs, a sample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..plan.dense import Function
from ..plan.reduce import Total
from ._loss import Loss, sum_plan
from ._steps import Steps
from .layer import Blobs


class EuclideanLoss(Loss):
    """sum (a - b)^2 / (2 samples), with gradients for both bottoms: (a - b) / samples and its negative.

    Bottoms    a and b: equal numbers of samples and of elements a sample, which may be laid out differently
    Tops       the loss, one number
    Edges      no samples: 0
    Source     Caffe, src/caffe/layers/euclidean_loss_layer.cpp
    """

    type = "EuclideanLoss"
    labels: ClassVar[frozenset[int]] = frozenset()

    def check(self, bottom: Blobs) -> None:
        sizes = [math.prod(blob.shape[1:]) for blob in bottom]
        if sizes[0] != sizes[1]:
            raise ArgumentError(
                "both bottoms need equally many elements a sample",
                given={"bottoms": tuple(blob.shape for blob in bottom)},
                required=f"{sizes[0]} == {sizes[1]}",
                because="Caffe, src/caffe/layers/euclidean_loss_layer.cpp",
            )

    def loss(self, steps: Steps, arrays: Sequence[Array], bottom: Blobs) -> Array:
        a, b = arrays
        distance = steps.apply(Function.ADD, a, steps.shaped(b, a.shape), z_scale=-1.0)
        return steps.run(sum_plan(bottom[0].dtype, 0.5 / max(a.shape[0], 1), total=Total.SUMSQ), distance)
