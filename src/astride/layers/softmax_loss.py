"""SoftmaxWithLoss: how unlikely the right classes are, as one number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from .. import ops
from ..backends.protocol import Array
from ..errors import ArgumentError, UnsupportedError
from ..plan import SoftmaxLossPlan
from ..plan.dense import SMALLEST_NORMAL, Normalization
from .blob import Blob
from .layer import Blobs, Layer, canonical_axis, integers


class SoftmaxWithLoss(Layer):
    """-log softmax(x)[label], summed over the places that count, over the normalization.

    Bottoms     scores x (*outer, classes, *inner), and a label for each place, of as many elements in any shape
    Tops        the loss, one number; if asked for, the probabilities, of x's shape, and the loss of each place, (*outer, 1,
                *inner), before weights and normalization
    Options     axis: of the classes
                ignore_label: places with this label count nothing
                normalization: what the sum is divided by, at least by 1: full (every place), valid (those that count),
                batch_size (everything before `axis`), none
                divisor: a number in place of the normalization, at least 1 too
                class_weights: each place counts by the weight of its label; the normalization does not change
                by_frequency: each place counts by one over the number of labels like its own in the batch
    Edges       a probability below the smallest normal float32 counts as that; a label that names no class is an error
    Gradient    (p - [class = label]) / normalization, 0 at ignored places; labels have none
    Quirks      Caffe's older field `normalize` means valid or batch_size; `normalization`, where it is set, goes before it
    Source      Caffe, src/caffe/layers/softmax_loss_layer.cpp, SegNet's and R-FCN's of that name; golden layers/softmaxloss_*
    """

    type = "SoftmaxWithLoss"
    bottoms: ClassVar[tuple[int, int | None]] = (2, 2)
    tops: ClassVar[tuple[int, int | None]] = (1, 3)
    is_loss = True
    silent = frozenset({1, 2})

    def __init__(
        self,
        *,
        axis: int = 1,
        ignore_label: int | None = None,
        normalization: Normalization = Normalization.VALID,
        divisor: float | None = None,
        class_weights: Sequence[float] | None = None,
        by_frequency: bool = False,
    ) -> None:
        super().__init__()
        self.class_weights = None if class_weights is None else tuple(class_weights)
        self.by_frequency = by_frequency
        self._weights: Array | None = None
        self.axis = axis
        self.ignore_label = ignore_label
        self.normalization = Normalization.NONE if divisor is not None else normalization
        self.divisor = 1.0 if divisor is None else max(divisor, 1.0)

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        x, labels = bottom
        axis = canonical_axis(self.axis, x.shape)
        places = x.count // x.shape[axis] if x.shape[axis] else 0
        if labels.count != places:
            raise ArgumentError(
                "there must be one label for each prediction",
                given={"scores": x.shape, "labels": labels.shape},
                required=f"labels.count == scores.count / classes: {labels.count} == {places}",
                because="Caffe, src/caffe/layers/softmax_loss_layer.cpp",
                hint="softmax_param { axis: ... } names the axis of the classes",
            )
        if self.class_weights is not None and len(self.class_weights) != x.shape[axis]:
            raise ArgumentError(
                "there must be a weight for each class",
                given={"scores": x.shape, "class_weighting": self.class_weights},
                required=f"weights == classes: {len(self.class_weights)} == {x.shape[axis]}",
                because="SegNet's Caffe, src/caffe/layers/softmax_loss_layer.cpp",
            )
        top[0].reshape()
        if len(top) > 1:
            top[1].reshape(*x.shape)
        if len(top) > 2:
            top[2].reshape(*x.shape[:axis], 1, *x.shape[axis + 1 :])

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        x, labels = bottom
        weighted = self.class_weights is not None or self.by_frequency
        keep = self.keep or len(top) > 1 or weighted
        saved = self.compute(self._plan(x), x.data, integers(labels, "labels"), top=top[0].data, keep=keep)
        if weighted and saved is not None:
            top[0].data[...] = self._weighed(saved.extra["p"], integers(labels, "labels"))
        if self.divisor != 1:
            top[0].data[...] /= self.divisor
        if len(top) > 1 and saved is not None:
            top[1].data[...] = saved.extra["p"]
        if len(top) > 2 and saved is not None:
            top[2].data[...] = self._each(saved.extra["p"], integers(labels, "labels"))[0]
        self._saved = [saved]

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if want[1]:
            raise UnsupportedError("labels have no gradient", because="Caffe, src/caffe/layers/softmax_loss_layer.cpp")
        if want[0]:
            dy = top[0].diff if self.divisor == 1 else np.asarray(top[0].diff / top[0].diff.dtype.type(self.divisor))
            bottom[0].diff[...] = ops.backward(self._plan(bottom[0]), dy, self.kept(), want=(True, False))[0]
            if self._weights is not None:
                bottom[0].diff[...] *= self._weights

    def _weighed(self, p: Array, labels: Array) -> Array:
        """The loss in which each place has a weight; the weights are kept, with one place along the classes' axis."""
        axis = canonical_axis(self.axis, p.shape)
        each, known, counts = self._each(p, labels)
        if self.by_frequency:
            weights = 1 / np.maximum(np.bincount(known[counts], minlength=p.shape[axis]), 1).astype(p.dtype)
        else:
            weights = np.array(self.class_weights, p.dtype)
        self._weights = weights[known]
        divisors = {
            Normalization.FULL: known.size,
            Normalization.VALID: int(counts.sum()),
            Normalization.BATCH_SIZE: math.prod(p.shape[:axis]),
            Normalization.NONE: 1,
        }
        loss: Array = (each * self._weights).sum() / max(divisors[self.normalization], 1)
        return loss

    def _each(self, p: Array, labels: Array) -> tuple[Array, Array, Array]:
        """The loss of each place, 0 where it does not count; its label, 0 there too; and whether it counts."""
        axis = canonical_axis(self.axis, p.shape)
        labels = labels.reshape(*p.shape[:axis], 1, *p.shape[axis + 1 :])
        counts = labels != self.ignore_label if self.ignore_label is not None else np.ones(labels.shape, bool)
        known = np.where(counts, labels, 0)
        likely = np.maximum(np.take_along_axis(p, known, axis), p.dtype.type(SMALLEST_NORMAL))
        return -np.log(likely) * counts, known, counts

    def allow_force_backward(self, index: int) -> bool:
        return index == 0

    def _plan(self, blob: Blob) -> SoftmaxLossPlan:
        return SoftmaxLossPlan(
            dtype=blob.dtype,
            axis=canonical_axis(self.axis, blob.shape),
            ignore_label=self.ignore_label,
            normalization=self.normalization,
        )
