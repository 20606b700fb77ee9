"""HingeLoss: how far the right class's score is from the right side of the margin, and the others' from theirs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from ..backends.protocol import Array
from ..plan.dense import Function
from ..plan.reduce import Total
from ._loss import Loss, sum_plan
from ._steps import Steps
from .layer import Blobs, check_classes, integers


class Norm(StrEnum):
    """How the margins' excess is summed."""

    L1 = "L1"  # as it is
    L2 = "L2"  # squared


class HingeLoss(Loss):
    """sum max(0, 1 - s x) / samples, or of the squares: s is 1 for the right class and -1 for every other (one against all).

    Bottoms    scores x (samples, ...), everything behind the first axis a class; one label a sample, without gradient
    Tops       the loss, one number
    Options    norm: L1 or L2, the sum of the excess or of its square
    Edges      a label that names no class is an error, where Caffe writes outside the blob
    Gradient   -s / samples where the margin is exceeded (L1), -2 s max(0, 1 - s x) / samples (L2); 0 exactly on the margin
    Source     Caffe, src/caffe/layers/hinge_loss_layer.cpp
    """

    type = "HingeLoss"
    source = "src/caffe/layers/hinge_loss_layer.cpp"

    def __init__(self, *, norm: Norm = Norm.L1) -> None:
        super().__init__()
        self.norm = norm

    def check(self, bottom: Blobs) -> None:
        self.one_label_each(bottom)

    def loss(self, steps: Steps, arrays: Sequence[Array], bottom: Blobs) -> Array:
        shape = bottom[0].shape
        samples, classes = shape[0], math.prod(shape[1:])
        labels = integers(bottom[1], "labels").reshape(-1)
        check_classes(labels, classes)
        signs = np.ones((samples, classes), bottom[0].dtype)
        signs[np.arange(samples), labels] = -1
        x = steps.shaped(arrays[0], (samples, classes))
        beyond = steps.apply(Function.POWER, steps.apply(Function.MULTIPLY, x, signs), shift=1.0)
        total = Total.SUM if self.norm is Norm.L1 else Total.SUMSQ
        return steps.run(sum_plan(bottom[0].dtype, 1 / max(samples, 1), total=total), steps.apply(Function.RELU, beyond))
