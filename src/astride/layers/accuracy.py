"""Accuracy: the share of places whose right class is among the best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ..errors import ArgumentError, UnsupportedError
from .layer import Blobs, Layer, canonical_axis, check_classes, integers


class Accuracy(Layer):
    """The share of places whose right class is among the `top_k` best.

    A place is right where fewer than `top_k` other classes score as high as the right one or higher: a tie counts
    against it, and so does a NaN. Nothing counted gives 0. It counts rather than computes, so it asks no backend.

    Bottoms     scores (*outer, classes, *inner), and a label for each place, of as many elements in any shape
    Tops        the accuracy, one number; if asked for, that of each class (classes,), 0 for one that no label names
    Options     top_k: how many guesses count
                axis: of the classes
                ignore_label: places with this label count nothing
    Quirks      a class that ties with the right one counts as better, whichever comes first
    Source      Caffe, src/caffe/layers/accuracy_layer.cpp; golden layers/accuracy, accuracy_ties, accuracy_top2
    """

    type = "Accuracy"
    bottoms: ClassVar[tuple[int, int | None]] = (2, 2)
    tops: ClassVar[tuple[int, int | None]] = (1, 2)
    silent = frozenset({0, 1})

    def __init__(self, *, top_k: int = 1, axis: int = 1, ignore_label: int | None = None) -> None:
        super().__init__()
        if top_k < 1:
            raise ArgumentError("top_k counts from 1", given={"top_k": top_k}, required=f"top_k >= 1: {top_k}", hint="top_k: 1")
        self.top_k = top_k
        self.axis = axis
        self.ignore_label = ignore_label

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        x, labels = bottom
        axis = canonical_axis(self.axis, x.shape)
        classes = x.shape[axis]
        places = x.count // classes if classes else 0
        if labels.count != places:
            raise ArgumentError(
                "there must be one label for each prediction",
                given={"scores": x.shape, "labels": labels.shape},
                required=f"labels.count == scores.count / classes: {labels.count} == {places}",
                because="Caffe, src/caffe/layers/accuracy_layer.cpp",
                hint="accuracy_param { axis: ... } names the axis of the classes",
            )
        if self.top_k > classes:
            raise ArgumentError(
                "top_k is more than there are classes",
                given={"top_k": self.top_k},
                required=f"top_k <= classes: {self.top_k} <= {classes}",
                hint="top_k: 1",
            )
        top[0].reshape()
        if len(top) > 1:
            top[1].reshape(classes)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        x, labels = bottom
        axis = canonical_axis(self.axis, x.shape)
        classes = x.shape[axis]
        scores = np.moveaxis(x.data, axis, -1).reshape(-1, classes)
        truth = integers(labels, "labels").reshape(-1)
        counted = np.ones(truth.shape, bool) if self.ignore_label is None else truth != self.ignore_label
        scores, truth = scores[counted], truth[counted]
        check_classes(truth, classes)
        own = np.take_along_axis(scores, truth[:, None], axis=1)
        right = ((scores >= own).sum(axis=1) - 1 < self.top_k) & ~np.isnan(own[:, 0])
        top[0].data[...] = right.mean() if right.size else 0
        if len(top) > 1:
            every = np.bincount(truth, minlength=classes)
            top[1].data[...] = np.bincount(truth, right, minlength=classes) / np.maximum(every, 1)

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if any(want):
            raise UnsupportedError("accuracy has no gradient", because="Caffe, src/caffe/layers/accuracy_layer.hpp")

    def allow_force_backward(self, index: int) -> bool:
        return False
