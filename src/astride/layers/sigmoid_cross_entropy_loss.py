"""SigmoidCrossEntropyLoss: how unlikely independent yes-or-no targets are, from scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..plan.dense import Function, Normalization
from ._loss import Loss, divisor, sum_plan
from ._steps import Steps
from .layer import Blobs, integers


class SigmoidCrossEntropyLoss(Loss):
    """-sum (t log p + (1 - t) log (1 - p)) over the normalization, p = sigmoid(x): computed as log(1 + exp(x)) - t x.

    Bottoms    scores x, targets t of as many elements, normally 0 to 1, which have no gradient
    Tops       the loss, one number
    Options    ignore_label: targets whose whole part is this number count nothing
               normalization: what the sum is divided by, at least by 1: full (every element), valid (those that count),
               batch_size (samples), none
    Edges      large scores overflow nowhere; what x holds at ignored places does not matter
    Gradient   (p - t) / normalization, 0 at ignored places
    Quirks     Caffe normalizes by batch_size here unless told otherwise, while SoftmaxWithLoss does by valid
    Source     Caffe, src/caffe/layers/sigmoid_cross_entropy_loss_layer.cpp; golden layers/sceloss, sceloss_ignore
    """

    type = "SigmoidCrossEntropyLoss"
    source = "src/caffe/layers/sigmoid_cross_entropy_loss_layer.cpp"

    def __init__(self, *, ignore_label: int | None = None, normalization: Normalization = Normalization.BATCH_SIZE) -> None:
        super().__init__()
        self.ignore_label = ignore_label
        self.normalization = normalization

    def check(self, bottom: Blobs) -> None:
        if bottom[0].count != bottom[1].count:
            raise ArgumentError(
                "there must be one target for each score",
                given={"scores": bottom[0].shape, "targets": bottom[1].shape},
                required=f"equal counts: {bottom[0].count} == {bottom[1].count}",
                because=f"Caffe, {self.source}",
            )

    def loss(self, steps: Steps, arrays: Sequence[Array], bottom: Blobs) -> Array:
        x, target = (steps.shaped(a, (a.size,)) for a in arrays)
        if self.ignore_label is not None:
            counted = np.flatnonzero(integers(bottom[1], "targets").reshape(-1) != self.ignore_label)
            x, target = steps.take(x, counted), steps.take(target, counted)
        terms = steps.apply(Function.ADD, steps.apply(Function.BNLL, x), steps.apply(Function.MULTIPLY, x, target), z_scale=-1.0)
        return steps.run(sum_plan(bottom[0].dtype, 1 / divisor(self.normalization, bottom[0], x.size)), terms)
