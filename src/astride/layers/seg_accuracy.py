"""SegAccuracy: how well a segmentation fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ..errors import ArgumentError, UnsupportedError
from .layer import Blobs, Layer, check_classes, integers

SOURCE = "DeepLab's and PSPNet's Caffe, src/caffe/layers/seg_accuracy_layer.cpp"
HALF = 0.5
"""What a single channel must exceed to mean the second of two classes."""


class SegAccuracy(Layer):
    """The share of right pixels, the mean recall of classes, and the mean intersection over union of classes.

    Bottoms    scores (N, classes, H, W), labels (N, 1, H, W). A single channel stands for two classes: above 1/2 the second
    Tops       (1, 1, 1, 3): those three; for each of `shown`, if given, its precision, recall and intersection over union
    Options    ignore: pixels with these labels count nothing
               reset: whether a pass begins anew; if not, pixels of all passes count
    Edges      recall is the mean over classes that labels name, 0 without any. The union's is over all classes, 1 for one that is
               neither named nor found. A shown class never found has precision NaN, one never named recall NaN
    Gradient   none
    Quirks     among equal scores the first class; DeepLab leaves it to a sort. A copy of DeepLab's counts Dice's coefficients
               under the same name
    Source     DeepLab's and PSPNet's Caffe, src/caffe/layers/seg_accuracy_layer.cpp and src/caffe/util/confusion_matrix.cpp
    """

    type = "SegAccuracy"
    bottoms: ClassVar[tuple[int, int | None]] = (2, 2)
    tops: ClassVar[tuple[int, int | None]] = (1, None)
    silent = frozenset({0})

    def __init__(self, *, ignore: Sequence[int] = (), shown: Sequence[int] = (), reset: bool = True) -> None:
        super().__init__()
        self.ignore, self.shown, self.reset = tuple(ignore), tuple(shown), reset
        self.stateful = not reset
        self.counts = np.zeros((0, 0), np.int64)
        """Pixels by label and by what was found."""

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        scores, labels = (blob.shape for blob in bottom)
        if len(scores) != 4 or labels != (scores[0], 1, *scores[2:]) or not scores[1]:
            raise ArgumentError(
                "scores and labels do not belong together",
                given={"bottoms": (scores, labels)},
                required="(N, classes, H, W) and (N, 1, H, W)",
                because=SOURCE,
            )
        classes = max(scores[1], 2)
        if len(top) != 1 + len(self.shown) or any(not 0 <= label < classes for label in self.shown):
            raise ArgumentError(
                "there is a top for all classes and one for each that is shown",
                given={"tops": len(top), "output_label": self.shown},
                required=f"1 + {len(self.shown)} tops, output_label from 0 to {classes - 1}",
                because=SOURCE,
            )
        if self.counts.shape != (classes, classes):
            self.counts = np.zeros((classes, classes), np.int64)
        for blob in top:
            blob.reshape(1, 1, 1, 3)

    def forget(self) -> None:
        self.counts[...] = 0

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        x = bottom[0].data
        found = (x[:, 0] > HALF).astype(np.int64) if x.shape[1] == 1 else x.argmax(axis=1)
        labels = integers(bottom[1], "labels")[:, 0]
        counted = ~np.isin(labels, self.ignore)
        labels, found, classes = labels[counted], found[counted], len(self.counts)
        check_classes(labels, classes)
        if self.reset:
            self.forget()
        self.counts += np.bincount(labels * classes + found, minlength=classes**2).reshape(classes, classes)
        right, named, seen = np.diag(self.counts), self.counts.sum(axis=1), self.counts.sum(axis=0)
        union = named + seen - right
        with np.errstate(divide="ignore", invalid="ignore"):
            precision, recall = right / seen, right / named
            overlap = np.where(union == right, 1.0, right / union)
        share = right.sum() / max(self.counts.sum(), 1)
        top[0].data[...] = share, recall[named > 0].mean() if named.any() else 0, overlap.mean()
        for blob, label in zip(top[1:], self.shown, strict=True):
            blob.data[...] = precision[label], recall[label], overlap[label]

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if any(want):
            raise UnsupportedError("accuracy has no gradient", because=SOURCE)

    def allow_force_backward(self, index: int) -> bool:
        return False
