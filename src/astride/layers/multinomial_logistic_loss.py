"""MultinomialLogisticLoss: how unlikely the right classes are, from probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .. import ops
from ..backends.protocol import Array
from ..plan import ElementwisePlan
from ..plan.dense import Function
from ._loss import Loss, sum_plan
from ._steps import Steps
from .layer import Blobs, check_classes, integers

FLOOR = 1e-20
"""Caffe's kLOG_THRESHOLD: no logarithm of anything smaller is taken."""


class MultinomialLogisticLoss(Loss):
    """-sum log p[label] / samples, where p are probabilities, not scores: SoftmaxWithLoss is the better one for those.

    Bottoms    probabilities (samples, ...), everything behind the first axis a class; one label a sample, without gradient
    Tops       the loss, one number
    Options    floor: a smaller probability counts as this one
    Gradient   -1 / (p samples) at the label, 0 elsewhere
    Quirks     as in Caffe a probability below the floor has the gradient of the floor itself, not 0
    Source     Caffe, src/caffe/layers/multinomial_logistic_loss_layer.cpp
    """

    type = "MultinomialLogisticLoss"
    source = "src/caffe/layers/multinomial_logistic_loss_layer.cpp"

    def __init__(self, *, floor: float = FLOOR) -> None:
        super().__init__()
        self.floor = floor

    def check(self, bottom: Blobs) -> None:
        self.one_label_each(bottom)

    def loss(self, steps: Steps, arrays: Sequence[Array], bottom: Blobs) -> Array:
        shape, dtype = bottom[0].shape, bottom[0].dtype
        samples, classes = shape[0], math.prod(shape[1:])
        labels = integers(bottom[1], "labels").reshape(-1)
        check_classes(labels, classes)
        flat = steps.shaped(arrays[0], (samples * classes,))
        picked = steps.take(flat, np.arange(samples) * classes + labels)
        floor = ElementwisePlan(dtype=dtype, function=Function.CLIP, low=self.floor, high=math.inf)
        raised = steps.note("floor", picked, ops.forward(floor, picked)[0], lambda gradients, want: gradients)
        return steps.run(sum_plan(dtype, -1 / max(samples, 1)), steps.apply(Function.LOG, raised))
