"""YoloDetectionOutput: what YOLO v2's map says is where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ..backends.protocol import Array
from ..errors import ArgumentError, UnsupportedError
from .layer import Blobs, Layer
from .yolov3_detection_output import HEAD, fill, sigmoid, surest

SOURCE = "the YOLO ports of Caffe, src/caffe/layers/yolo_detection_output_layer.cpp"


class YoloDetectionOutput(Layer):
    """Boxes of the likeliest class each that are sure enough, the surest first, without those that overlap a surer one.

    Each map has, for each of its anchors, x, y, width, height, objectness and a score for each class. A box's middle is
    (column + sigmoid x, row + sigmoid y), its sizes exp(w), exp(h) times the anchor's, all over the map's side. Its confidence
    is sigmoid(objectness) times the likeliest class's softmax; from `confidence` on it counts.

    anchors     (width, height) in places of the map; a second map has the same

    Bottoms     one map or two (N, boxes (5 + classes), side, side)
    Tops        (1, 1, found, 7): image, label from 1 on, confidence, xmin, ymin, xmax, ymax, as parts of the image; where nothing
                is found a row of each image's number and -1
    Options     overlap: from which on a box gives way
                early: as the first ports had it under the name DetectionOutput: labels from 0 on; x, y, width, height in place of
                corners; boxes in the order of rows, columns and anchors, each of which gives way to an earlier one
    Gradient    none
    Quirks      as in the ports boxes of every class and image suppress each other, and all rows say image 0; an image a pass is
                what this is for
    Source      the YOLO ports of Caffe, eric612/MobileNet-YOLO, src/caffe/layers/yolo_detection_output_layer.cpp, and
                BirdeeChen/caffe_yolo_v2, src/caffe/layers/detection_output_layer.cpp
    """

    type = "YoloDetectionOutput"
    bottoms: ClassVar[tuple[int, int | None]] = (1, 2)
    silent = frozenset({0})

    def __init__(
        self,
        *,
        classes: int,
        boxes: int,
        anchors: Sequence[tuple[float, float]],
        confidence: float = 0.01,
        overlap: float = 0.45,
        early: bool = False,
    ) -> None:
        super().__init__()
        if classes < 1 or boxes < 1 or len(anchors) < boxes:
            raise ArgumentError(
                "each box has an anchor, and a class",
                given={"num_classes": classes, "num_box": boxes, "anchors": len(anchors)},
                required=f"num_classes >= 1, 1 <= num_box <= anchors: {boxes} <= {len(anchors)}",
                because=SOURCE,
                hint="biases: [width, height, ...], two for each num_box",
            )
        self.classes, self.boxes, self.anchors = classes, boxes, np.array(anchors, np.float64)[:boxes]
        self.confidence, self.overlap, self.early = confidence, overlap, early

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        channels = self.boxes * (HEAD + self.classes)
        for shape in (blob.shape for blob in bottom):
            if len(shape) != 4 or shape[1] != channels or shape[2] != shape[3]:
                raise ArgumentError(
                    "a map has other channels or sides than the boxes need",
                    given={"bottom": shape, "num_box": self.boxes, "num_classes": self.classes},
                    required=f"(N, {channels}, side, side)",
                    because=SOURCE,
                )
        if self.early and bottom[0].shape[0] != 1:
            raise ArgumentError("there is one image", given={"bottom": bottom[0].shape}, required="N == 1", because=SOURCE)
        top[0].reshape(1, 1, 1, 7)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        found = np.concatenate([self._found(blob.data) for blob in bottom])
        if not self.early:
            found = found[np.argsort(-found[:, 0], kind="stable")]
        kept = found[surest(found[:, 2:], self.overlap)]
        middle, half = kept[:, 2:4], kept[:, 4:] / 2
        where = [kept[:, 2:]] if self.early else [middle - half, middle + half]
        fill(top[0], [kept[:, 1:2] + (0 if self.early else 1), kept[:, :1], *where], bottom[0].shape[0])

    def _found(self, x: Array) -> Array:
        """Rows of confidence, class, x, y, width, height, in the order the ports go through a map."""
        n, _, side, _ = x.shape
        x = x.reshape(n, self.boxes, HEAD + self.classes, side, side).transpose(0, 3, 4, 1, 2)
        row, column = np.arange(side)[:, None, None], np.arange(side)[None, :, None]
        scores = np.exp(x[..., HEAD:] - x[..., HEAD:].max(axis=-1, keepdims=True))
        label = scores.argmax(axis=-1)
        sure = sigmoid(x[..., 4]) / scores.sum(axis=-1)
        center = (column + sigmoid(x[..., 0])) / side, (row + sigmoid(x[..., 1])) / side
        with np.errstate(over="ignore"):
            size = [np.exp(x[..., 2 + k]) * self.anchors[:, k] / side for k in (0, 1)]
        parts = np.stack([np.asarray(p, x.dtype) for p in (sure, label, *center, *size)], axis=-1)
        return np.asarray(parts[sure >= self.confidence])

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if any(want):
            raise UnsupportedError("found boxes pass no gradient", because=SOURCE, hint="propagate_down: false")

    def allow_force_backward(self, index: int) -> bool:
        return False
