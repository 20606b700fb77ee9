"""DetectionEvaluate: which detections are right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ..backends.protocol import Array
from ..errors import ArgumentError, ArrayError, UnsupportedError
from ._boxes import areas, best_first, label_shape, overlaps
from .layer import Blobs, Layer

SOURCE = "the SSD fork of Caffe, src/caffe/layers/detection_evaluate_layer.cpp"


class DetectionEvaluate(Layer):
    """Each detection compared with the truth: right if it overlaps a box of its label enough that no better one has found.

    Bottoms    detections (1, 1, found, 7) of DetectionOutput; the truth (1, 1, boxes, 8): image, label, instance, xmin, ymin,
               xmax, ymax, difficult. Rows of image -1 fill the tables up
    Tops       (1, 1, classes + found, 5). First for each class but the background: -1, label, how many boxes it has, -1, -1.
               Then for each detection: image, label, score, 1 where right, 1 where wrong; by image and label, the best first
    Options    classes: how many, the background among them
               background: its label; -1 where there is none
               overlap: how much is enough
               difficult: whether boxes marked so count. Where they do not, what finds one is neither right nor wrong
               sizes: height and width of the images in the order they come, to compare in pixels; then again from the first
    Edges      rows of image -1 leave as many rows of zeros at the end
    Gradient   none
    Quirks     a box found twice is wrong the second time. Labels without truth keep the order they came in. In pixels sides
               have one added, and boxes that do not touch share one pixel
    Source     the SSD fork of Caffe, src/caffe/layers/detection_evaluate_layer.cpp
    """

    type = "DetectionEvaluate"
    bottoms: ClassVar[tuple[int, int | None]] = (2, 2)

    def __init__(
        self,
        classes: int,
        *,
        background: int = 0,
        overlap: float = 0.5,
        difficult: bool = True,
        sizes: Sequence[tuple[int, int]] = (),
    ) -> None:
        super().__init__()
        if not overlap > 0:
            raise ArgumentError(
                "an overlap that is enough is positive",
                given={"overlap_threshold": overlap},
                required=f"overlap_threshold > 0: {overlap:g}",
                because=SOURCE,
            )
        self.classes = classes
        self.background = background
        self.overlap = overlap
        self.difficult = difficult
        self.sizes = tuple(sizes)
        self.stateful = bool(sizes)
        self.seen = 0
        """How many images have come so far, of those whose sizes are known."""

    def labels(self) -> list[int]:
        """Every class but the background."""
        return [label for label in range(self.classes) if label != self.background]

    def forget(self) -> None:
        self.seen = 0

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        label_shape("detections", bottom[0].shape, 7)
        label_shape("truth", bottom[1].shape, 8)
        labels = self.classes - (1 if 0 <= self.background < self.classes else 0)
        top[0].reshape(1, 1, labels + bottom[0].shape[2], 5)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        found, truth = (_real(blob.data[0, 0], self.background) for blob in bottom)
        rows = top[0].data[0, 0]
        rows.fill(0)
        counted = truth if self.difficult else truth[truth[:, 7] == 0]
        labels = self.labels()
        for row, label in zip(rows, labels, strict=False):
            row[:] = -1, label, np.count_nonzero(counted[:, 1] == label), -1, -1
        at = len(labels)
        for image in np.unique(found[:, 0]):
            of_image, boxes = found[found[:, 0] == image], truth[truth[:, 0] == image]
            for label in np.unique(of_image[:, 1]):
                mine, theirs = of_image[of_image[:, 1] == label], boxes[boxes[:, 1] == label]
                mine = mine[best_first(mine[:, 2])] if len(theirs) else mine
                rows[at : at + len(mine), :3] = mine[:, :3]
                rows[at : at + len(mine), 3:] = self._judged(mine, theirs)
                at += len(mine)
            if self.sizes:
                self.seen = (self.seen + 1) % len(self.sizes)

    def _judged(self, found: Array, truth: Array) -> Array:
        """Right and wrong, (n, 2), of one label's detections, the best first."""
        marks = np.zeros((len(found), 2), found.dtype)
        if not len(truth):
            marks[:, 1] = 1
            return marks
        shared = self._overlaps(found[:, 3:7], truth[:, 3:7])
        taken = np.zeros(len(truth), bool)
        for mark, own in zip(marks, shared, strict=True):
            best = int(own.argmax())
            if own[best] < self.overlap:
                mark[1] = 1
            elif self.difficult or truth[best, 7] == 0:
                mark[int(taken[best])] = 1
                taken[best] = True
        return marks

    def _overlaps(self, a: Array, b: Array) -> Array:
        if not self.sizes:
            return overlaps(a[:, None], b[None])
        height, width = self.sizes[self.seen]
        whole = np.array([width, height, width, height], a.dtype)
        a, b = (a * whole)[:, None], (b * whole)[None]
        pixel = 1.0 if max(width, height) > 1 else 0.0
        apart = (b[..., :2] > a[..., 2:]).any(axis=-1) | (b[..., 2:] < a[..., :2]).any(axis=-1)
        one = 1 / (areas(a, pixel=pixel) + areas(b, pixel=pixel) - 1)
        return np.where(apart, one, overlaps(a, b, pixel=pixel)) if pixel else overlaps(a, b)

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if any(want):
            raise UnsupportedError("an evaluation has no gradient", because=SOURCE)

    def allow_force_backward(self, index: int) -> bool:
        return False


def _real(rows: Array, background: int) -> Array:
    """The rows that are of an image, with images and labels whole. Raises ArrayError for the background's label."""
    if not np.isfinite(rows).all():
        raise ArrayError("a table has numbers that are not finite", given={"rows": rows}, because=SOURCE)
    rows = rows.copy()
    rows[:, :2] = np.trunc(rows[:, :2])
    rows = rows[rows[:, 0] != -1]
    if (rows[:, 1] == background).any():
        raise ArrayError(
            "a row has the label of the background",
            given={"label": background},
            required=f"label != {background}",
            because=SOURCE,
            hint="background_label_id: -1 where there is none",
        )
    return rows
