"""Region: YOLO v2's map, its logits turned to probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ArgumentError, UnsupportedError
from ..plan import Shape
from .layer import Blobs, Layer
from .yolov3_detection_output import sigmoid

SOURCE = "the YOLO v2 ports of Caffe, src/caffe/layers/region_layer.cpp"


class Region(Layer):
    """For each anchor the logistic function of x, y and objectness, and the softmax of its classes; width and height stay.

    What follows makes boxes of it: the middle at (column + x, row + y), its sizes exp(w), exp(h) times the anchor's.

    Bottoms    (N, boxes (coords + 1 + classes), H, W)
    Tops       of the same shape
    Options    boxes: anchors a place; coords: 4 numbers, or more, before the objectness
               rows: as Darknet first had it: values lie in the order rows, columns, anchors, numbers, whatever the shape says; x
               and y stay as they are; softmax only where `softmax`
    Gradient   none
    Quirks     the ports of this name differ. `rows` is caffe_yolo_v2's, known by boxes_of_each_grid; those with num have planes.
               A layer of two or three tops, which has boxes and losses too, is another's and is not here
    Source     the YOLO v2 ports of Caffe, src/caffe/layers/region_layer.cpp in openvinotoolkit/training_toolbox_caffe,
               sokeeffe/caffe_yolo and BirdeeChen/caffe_yolo_v2
    """

    type = "Region"

    def __init__(self, *, classes: int, boxes: int, coords: int = 4, rows: bool = False, softmax: bool = True) -> None:
        super().__init__()
        if classes < 1 or boxes < 1 or coords < 4:
            raise ArgumentError(
                "an anchor has four numbers or more, and a class",
                given={"classes": classes, "boxes": boxes, "coords": coords},
                required="classes >= 1, boxes >= 1, coords >= 4",
                because=SOURCE,
                hint="region_param { classes: 20 coords: 4 num: 5 }",
            )
        self.classes, self.boxes, self.coords, self.rows, self.softmax = classes, boxes, coords, rows, softmax

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        self._check(bottom[0].shape)
        top[0].reshape(*bottom[0].shape)

    def _check(self, shape: Shape) -> None:
        channels = self.boxes * (self.coords + 1 + self.classes)
        if len(shape) != 4 or shape[1] != channels:
            raise ArgumentError(
                "the map has other channels than the anchors need",
                given={"bottom": shape, "boxes": self.boxes, "coords": self.coords, "classes": self.classes},
                required=f"(N, {channels}, H, W)",
                because=SOURCE,
            )

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        x = bottom[0].data
        n, _, h, w = x.shape
        values = x.reshape(n, self.boxes, -1, h * w).transpose(0, 3, 1, 2).copy()
        squashed = [self.coords] if self.rows else [0, 1, self.coords]
        values[..., squashed] = sigmoid(values[..., squashed])
        if self.softmax:
            scores = values[..., self.coords + 1 :]
            likely = np.exp(scores - scores.max(axis=-1, keepdims=True))
            scores[...] = likely / likely.sum(axis=-1, keepdims=True)
        top[0].data[...] = (values if self.rows else values.transpose(0, 2, 3, 1)).reshape(x.shape)

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if any(want):
            raise UnsupportedError("this layer passes no gradient", because=SOURCE, hint="RegionLoss, or propagate_down: false")

    def allow_force_backward(self, index: int) -> bool:
        return False
