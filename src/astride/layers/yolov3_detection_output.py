"""Yolov3DetectionOutput: what YOLO's feature maps say is where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ..backends.protocol import Array
from ..errors import ArgumentError, UnsupportedError
from ..plan import Shape
from .blob import Blob
from .layer import Blobs, Layer

SOURCE = "the YOLO ports of Caffe, src/caffe/layers/yolov3_detection_output_layer.cpp"
HEAD = 5
"""Channels of a box before its classes: x, y, width, height, whether something is there."""


class Yolov3DetectionOutput(Layer):
    """Boxes of all feature maps that are sure enough, the surest first, without those that overlap a surer one.

    Each map has, for each of its `boxes` anchors, x, y, width, height, objectness and a score for each class. A box's middle is
    (column + sigmoid x, row + sigmoid y) of the map's size, its width exp(w) times the anchor's over the image's, which is the
    map's times its `scale`. Its confidence in a class is sigmoid(objectness) sigmoid(score); above `confidence` it counts.

    anchors     (width, height) in pixels; `masks` says which of them each map has
    scales      how many pixels of the image a place of each map stands for

    Bottoms     a map (N, boxes (5 + classes), side, side) for each of the masks
    Tops        (1, 1, found, 7): image, label from 1 on, confidence, xmin, ymin, xmax, ymax, as parts of the image; where
                nothing is found a row of each image's number and -1
    Quirks      as in the ports boxes of every class and image suppress each other, and all rows say image 0; an image a pass
                is what this is for
    Source      the YOLO ports of Caffe, src/caffe/layers/yolov3_detection_output_layer.cpp
    """

    type = "Yolov3DetectionOutput"
    bottoms: ClassVar[tuple[int, int | None]] = (1, None)
    silent = frozenset({0})

    def __init__(
        self,
        *,
        classes: int,
        boxes: int,
        anchors: Sequence[tuple[float, float]],
        masks: Sequence[Sequence[int]],
        scales: Sequence[int],
        confidence: float = 0.01,
        overlap: float = 0.45,
    ) -> None:
        super().__init__()
        if not masks or len(scales) != len(masks) or any(len(m) < boxes or max(m) >= len(anchors) for m in masks):
            raise ArgumentError(
                "masks, scales and anchors do not belong together",
                given={"anchors": len(anchors), "masks": tuple(map(tuple, masks)), "anchors_scale": tuple(scales)},
                required=f"a scale for each mask, {boxes} anchors in each, all of them below {len(anchors)}",
                because=SOURCE,
                hint="mask_group_num: 2 mask: 3 mask: 4 mask: 5 mask: 0 mask: 1 mask: 2 anchors_scale: 32 anchors_scale: 16",
            )
        self.classes, self.boxes, self.anchors = classes, boxes, np.array(anchors, np.float64).reshape(-1, 2)
        self.masks, self.scales = [list(m) for m in masks], list(scales)
        self.confidence, self.overlap = confidence, overlap

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        if len(bottom) != len(self.masks):
            raise ArgumentError(
                "there is a mask for each feature map",
                given={"bottoms": len(bottom), "mask_group_num": len(self.masks)},
                required=f"bottoms == {len(self.masks)}: {len(bottom)}",
                because=SOURCE,
            )
        for blob in bottom:
            self._check(blob.shape)
        top[0].reshape(1, 1, 1, 7)

    def _check(self, shape: Shape) -> None:
        channels = self.boxes * (HEAD + self.classes)
        if len(shape) != 4 or shape[1] != channels or shape[2] != shape[3]:
            raise ArgumentError(
                "a feature map has other channels or sides than the boxes need",
                given={"bottom": shape, "num_box": self.boxes, "num_classes": self.classes},
                required=f"(N, {channels}, side, side)",
                because=SOURCE,
            )

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        maps = zip(bottom, self.masks, self.scales, strict=True)
        found = np.concatenate([self._found(x.data, mask, scale) for x, mask, scale in maps])
        found = found[np.argsort(-found[:, 0], kind="stable")]
        kept = found[surest(found[:, 2:], self.overlap)]
        middle, half = kept[:, 2:4], kept[:, 4:6] / 2
        fill(top[0], [kept[:, 1:2] + 1, kept[:, :1], middle - half, middle + half], bottom[0].shape[0])

    def _found(self, x: Array, mask: list[int], scale: int) -> Array:
        """Rows of confidence, class, x, y, width, height, in the order the ports go through a map."""
        n, _, side, _ = x.shape
        x = x.reshape(n, self.boxes, HEAD + self.classes, side, side).transpose(0, 3, 4, 1, 2)
        row, column = np.arange(side)[:, None, None], np.arange(side)[None, :, None]
        anchors = self.anchors[mask[: self.boxes]]
        wide, high = (np.exp(x[..., 2 + k]) * anchors[:, k] / (side * scale) for k in (0, 1))
        center = (column + sigmoid(x[..., 0])) / side, (row + sigmoid(x[..., 1])) / side
        scores = sigmoid(x[..., HEAD:]) * sigmoid(x[..., 4:5])
        places = np.nonzero(scores > self.confidence)
        parts = [scores[places], places[-1], *(v[places[:-1]] for v in (*center, wide, high))]
        return np.stack([np.asarray(p, x.dtype) for p in parts], axis=1)

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if any(want):
            raise UnsupportedError("found boxes pass no gradient", because=SOURCE, hint="propagate_down: false")

    def allow_force_backward(self, index: int) -> bool:
        return False


def fill(top: Blob, columns: Sequence[Array], images: int) -> None:
    """A table of what was found, all of image 0; where that is nothing a row of each image's number and -1."""
    if len(columns[0]):
        rows = np.concatenate([np.zeros((len(columns[0]), 1)), *columns], axis=1)
    else:
        rows = np.full((images, 7), -1.0)
        rows[:, 0] = np.arange(images)
    top.reshape(1, 1, *rows.shape)
    top.data[0, 0] = rows


def surest(boxes: Array, most: float) -> Array:
    """Which of these boxes (x, y, width, height), the surest first, overlap no surer one that stays by `most` or more."""
    low, high = boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2
    areas = boxes[:, 2] * boxes[:, 3]
    left = np.arange(len(boxes))
    kept: list[int] = []
    while left.size:
        first, left = int(left[0]), left[1:]
        kept.append(first)
        shared = np.minimum(high[left], high[first]) - np.maximum(low[left], low[first])
        common = np.where((shared < 0).any(1), 0, shared[:, 0] * shared[:, 1])
        union = areas[left] + areas[first] - common
        left = left[~(common >= most * np.where(union > 0, union, np.inf))]
    return np.array(kept, np.int64)


def sigmoid(x: Array) -> Array:
    """Without overflow for large negative values."""
    e = np.exp(-np.abs(x))
    y: Array = np.where(x >= 0, 1, e) / (1 + e)
    return y
