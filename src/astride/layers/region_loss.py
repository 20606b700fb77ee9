"""RegionLoss: what YOLO v2 learns from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..backends.protocol import Array
from ..errors import ArgumentError, ArrayError, UnsupportedError
from .layer import Blobs, Layer, nothing_kept
from .yolov3_detection_output import HEAD, sigmoid

SOURCE = "the YOLO ports of Caffe, src/caffe/layers/region_loss_layer.cpp"
COLUMNS = 5
"""Of a label: class, and the box's x, y, width and height."""
SEEN, PULL = 12800, 0.01
"""How many images boxes are pulled to their anchors, and how strongly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scales:
    """How much each part of the loss counts."""

    object: float = 1.0
    nothing: float = 0.5
    classes: float = 1.0
    coords: float = 5.0


class RegionLoss(Layer):
    """sum(delta^2) / N, where delta says what is wrong with each number of YOLO v2's map: Darknet's region layer.

    Objectness is 0 where no label's box overlaps the predicted one by more than `threshold`. Each label is given to the anchor
    most like it, in the place of its middle: there the box is to be the label's, the class its, and the objectness the overlap,
    or 1 without `rescore`. For the first 12800 images all other boxes are pulled to their anchors a little.

    Bottoms     the map (N, boxes (5 + classes), side, side); labels (N, ..., 5): class from 0 on, x, y, width, height as parts of
                the image, up to the first row of zeros
    Tops        the loss, one number
    Options     anchors: (width, height) in places of the map
                match_anchors: a label's anchor is the most like it; else the one whose predicted size is
                rescore: as above; without it boxes count 2 - width height times more, too
                scales: what each part counts
    Gradient    delta / N, as in Darknet: not the derivative of the loss, which is for looking at
    Quirks      the count of images is this layer's; the ports count passes of all layers together, in both phases.
                Of ports under this name the one of YOLO9000 differs: it reads SSD's labels, (1, 1, n, 8), and cuts distances at 1
    Source      the YOLO ports of Caffe, src/caffe/layers/region_loss_layer.cpp in eric612/MobileNet-YOLO; Darknet,
                src/region_layer.c
    """

    type = "RegionLoss"
    bottoms: ClassVar[tuple[int, int | None]] = (2, 2)
    is_loss = True

    def __init__(
        self,
        *,
        classes: int,
        boxes: int,
        anchors: Sequence[tuple[float, float]],
        scales: Scales | None = None,
        threshold: float = 0.2,
        match_anchors: bool = True,
        rescore: bool = True,
    ) -> None:
        super().__init__()
        if classes < 1 or boxes < 1 or len(anchors) < boxes or min(min(a) for a in anchors) <= 0:
            raise ArgumentError(
                "each box has an anchor with sides, and a class",
                given={"num_class": classes, "num": boxes, "anchors": tuple(anchors)},
                required=f"num_class >= 1, 1 <= num <= anchors: {boxes} <= {len(anchors)}, sides > 0",
                because=SOURCE,
                hint="biases: [width, height, ...], two for each num",
            )
        self.classes, self.boxes, self.anchors = classes, boxes, np.array(anchors, np.float64)[:boxes]
        self.scales, self.threshold = scales or Scales(), threshold
        self.match_anchors, self.rescore = match_anchors, rescore
        self.stateful = True
        self.seen = 0
        """Images of all passes."""
        self._delta: Array | None = None

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        shape, labels = bottom[0].shape, bottom[1].shape
        channels = self.boxes * (HEAD + self.classes)
        fits = len(shape) == 4 and shape[1] == channels and shape[2] == shape[3] and shape[0] > 0
        if not fits or len(labels) < 2 or labels[0] != shape[0] or labels[-1] != COLUMNS:
            raise ArgumentError(
                "map and labels do not belong together",
                given={"bottoms": (shape, labels), "num": self.boxes, "num_class": self.classes},
                required=f"(N, {channels}, side, side) and (N, ..., {COLUMNS})",
                because=SOURCE,
            )
        top[0].reshape()

    def forget(self) -> None:
        self.seen = 0

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        x = bottom[0].data
        n, _, side, _ = x.shape
        values = x.reshape(n, self.boxes, -1, side, side).transpose(0, 3, 4, 1, 2).astype(np.float64)
        labels = bottom[1].data.reshape(n, -1, COLUMNS).astype(np.float64)
        pulled = self.seen < SEEN // n * n  # whole passes, as the ports count
        delta = np.stack([self._image(v, rows, pulled) for v, rows in zip(values, labels, strict=True)])
        self.seen += n
        self._delta = delta.transpose(0, 3, 4, 1, 2).reshape(x.shape).astype(x.dtype) if self.keep else None
        top[0].data[...] = (delta**2).sum() / n

    def _image(self, values: Array, labels: Array, pulled: bool) -> Array:
        """What is wrong with each number of one image: (side, side, boxes, 5 + classes)."""
        labels = labels[: next((i for i, row in enumerate(labels) if not row[3]), len(labels))]
        self._check(labels)
        side = len(values)
        likely = np.exp(values[..., HEAD:] - values[..., HEAD:].max(axis=-1, keepdims=True))
        likely /= likely.sum(axis=-1, keepdims=True)
        xy, sure = sigmoid(values[..., :2]), sigmoid(values[..., 4])
        places = np.stack(np.meshgrid(np.arange(side), np.arange(side)), axis=-1)[:, :, None]  # column, row
        predicted = np.concatenate([(places + xy) / side, np.exp(values[..., 2:4]) * self.anchors / side], axis=-1)
        delta = np.zeros(values.shape)
        overlaps = [overlap(predicted, row[1:]) for row in labels]
        free = ~(np.max([np.zeros(sure.shape), *overlaps], axis=0) > self.threshold)
        delta[..., 4] = self.scales.nothing * sure * sure * (1 - sure) * free
        if pulled:
            delta[..., :2] = PULL * (xy - 0.5) * xy * (1 - xy)
            delta[..., 2:4] = PULL * values[..., 2:4]
        for row, shared in zip(labels, overlaps, strict=True):
            j, i = int(row[2] * side), int(row[1] * side)
            sizes = self.anchors / side if self.match_anchors else predicted[j, i, :, 2:]
            alike = np.concatenate([np.zeros(sizes.shape), sizes], axis=1)
            box = int(overlap(alike, np.array([0, 0, *row[3:]])).argmax())
            at = (j, i, box)
            weight = self.scales.coords * (1 if self.rescore else 2 - row[3] * row[4])
            inside = row[1:3] * side - np.array([i, j])
            delta[at][:2] = weight * (xy[at] - inside) * xy[at] * (1 - xy[at])
            delta[at][2:4] = weight * (values[at][2:4] - np.log(row[3:] * side / self.anchors[box]))
            wanted = shared[at] if self.rescore else 1.0
            delta[at][4] = self.scales.object * (sure[at] - wanted) * sure[at] * (1 - sure[at])
            delta[at][HEAD:] = self.scales.classes * (likely[at] - (np.arange(self.classes) == int(row[0])))
        return delta

    def _check(self, labels: Array) -> None:
        bad = ~np.isfinite(labels).all(axis=1) | (labels[:, 0] < 0) | (labels[:, 0] >= self.classes)
        bad |= (labels[:, 1:3] < 0).any(axis=1) | (labels[:, 1:3] >= 1).any(axis=1) | (labels[:, 3:] <= 0).any(axis=1)
        if bad.any():
            raise ArrayError(
                "a label is no box in the image",
                given={"label": [float(v) for v in labels[bad][0]]},
                required=f"class from 0 to {self.classes - 1}, 0 <= x, y < 1, width and height > 0",
                because=SOURCE,
            )

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if want[1]:
            raise UnsupportedError("labels have no gradient", because=SOURCE)
        if want[0]:
            if self._delta is None:
                raise nothing_kept()
            bottom[0].diff[...] = self._delta * (top[0].diff / bottom[0].shape[0])

    def allow_force_backward(self, index: int) -> bool:
        return index == 0


def overlap(boxes: Array, box: Array) -> Array:
    """Intersection over union of rows of x, y, width, height with one such."""
    sides = np.minimum(boxes[..., :2] + boxes[..., 2:] / 2, box[:2] + box[2:] / 2)
    sides = sides - np.maximum(boxes[..., :2] - boxes[..., 2:] / 2, box[:2] - box[2:] / 2)
    common = np.where((sides < 0).any(axis=-1), 0, sides[..., 0] * sides[..., 1])
    return np.asarray(common / (boxes[..., 2] * boxes[..., 3] + box[2] * box[3] - common))
