"""DetectionOutput: what an SSD found, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ..backends.protocol import Array
from ..errors import ArgumentError, UnsupportedError
from ._boxes import LOWEST, Code, best_first, check_predictions, decoded, priors_of, suppressed
from .layer import Blobs, Layer

SOURCE = "the SSD fork of Caffe, src/caffe/layers/detection_output_layer.cpp"


class DetectionOutput(Layer):
    """Predictions decoded to boxes, those of low score left out, and of those that overlap all but the best.

    Bottoms    places (N, priors * 4), or (N, priors * classes * 4) where locations are not shared; scores (N, priors *
               classes); priors (1, 2, priors * 4) of PriorBox. RefineDet has two more: scores (N, priors * 2) of there being
               something at all, and places (N, priors * 4) that move the priors first
    Tops       (1, 1, found, 7): image, label, score, xmin, ymin, xmax, ymax, parts of the image's size, not clipped. Images
               in order; in each its labels in order; in each the best first. Until forward has run there is one row
    Options    classes: how many, the background among them
               background: its label; -1 where there is none
               shared: one place for all classes, or one each
               code: how places say boxes
               in_target: whether the variances are already in the places
               confidence: scores not greater count nothing; without it all do
               threshold: overlap that the suppression in each class allows
               top_k: how many of a class's best scores are looked at (-1: all)
               eta: what a threshold above 0.5 is multiplied by for every box that stays
               keep_top_k: how many boxes of an image are left, the best of all classes (-1: all)
               objectness: scores of RefineDet's fourth bottom below it say there is nothing
    Edges      nothing found in any image: a row for each image, its number and then -1
    Gradient   none
    Quirks     of equal scores the earlier prior comes first; SSD leaves their order to std::sort after keep_top_k
    Source     the SSD fork of Caffe, src/caffe/layers/detection_output_layer.cpp and src/caffe/util/bbox_util.cpp;
               RefineDet's, src/caffe/layers/detection_output_layer.cpp
    """

    type = "DetectionOutput"
    bottoms: ClassVar[tuple[int, int | None]] = (3, 5)

    def __init__(
        self,
        classes: int,
        *,
        shared: bool = True,
        background: int = 0,
        code: Code = Code.CORNER,
        in_target: bool = False,
        confidence: float = LOWEST,
        threshold: float = 0.3,
        top_k: int = -1,
        eta: float = 1.0,
        keep_top_k: int = -1,
        objectness: float = 0.01,
    ) -> None:
        super().__init__()
        if classes < 1:
            raise ArgumentError("there is at least one class", given={"num_classes": classes}, required="num_classes >= 1")
        if not threshold >= 0:
            raise ArgumentError(
                "the overlap allowed is negative",
                given={"nms_threshold": threshold},
                required=f"nms_threshold >= 0: {threshold:g}",
                because=SOURCE,
            )
        if not 0 < eta <= 1:
            raise ArgumentError("eta makes a threshold no greater", given={"eta": eta}, required="0 < eta <= 1", because=SOURCE)
        self.classes = classes
        self.shared = shared
        self.background = background
        self.code = code
        self.in_target = in_target
        self.confidence = confidence
        self.threshold = threshold
        self.top_k = top_k
        self.eta = eta
        self.keep_top_k = keep_top_k
        self.objectness = objectness

    def setup(self, bottom: Blobs, top: Blobs) -> None:
        if len(bottom) == 4:
            raise ArgumentError(
                "the scores of there being something come with the places that move the priors",
                given={"bottoms": 4},
                required="3 or 5 bottoms: 4",
                because="RefineDet's Caffe, src/caffe/layers/detection_output_layer.cpp",
            )

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        check_predictions(bottom, self.classes, 1 if self.shared else self.classes)
        if len(bottom) == 5:
            check_predictions([bottom[4], bottom[3], bottom[2]], 2, 1)
        top[0].reshape(1, 1, 1, 7)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        priors, variances = priors_of(bottom[2].data)
        images, count = bottom[0].shape[0], len(priors)
        places = bottom[0].data.reshape(images, count, -1, 4)
        scores = bottom[1].data.reshape(images, count, self.classes)
        if len(bottom) == 5:
            something = bottom[3].data.reshape(images, count, 2)[..., 1] >= self.objectness
            scores = np.where(something[..., None], scores, np.eye(1, self.classes, dtype=scores.dtype))
            priors = self._decoded(bottom[4].data.reshape(images, count, 4), priors, variances)
        else:
            priors = np.broadcast_to(priors, (images, count, 4))
        tables = [self._found(i, places[i], scores[i], priors[i], variances) for i in range(images)]
        rows = np.concatenate([np.empty((0, 7), scores.dtype), *tables])
        if not len(rows):
            rows = np.full((images, 7), -1, scores.dtype)
            rows[:, 0] = np.arange(images)
        top[0].reshape(1, 1, *rows.shape)
        top[0].data[0, 0] = rows

    def _found(self, image: int, places: Array, scores: Array, priors: Array, variances: Array) -> Array:
        """The rows of one image: places (P, 1 or classes, 4), scores (P, classes)."""
        tables = []
        shared = self._decoded(places[:, 0], priors, variances) if self.shared else None
        for label in range(self.classes):
            if label == self.background:
                continue
            boxes = self._decoded(places[:, label], priors, variances) if shared is None else shared
            order = best_first(scores[:, label], above=self.confidence, top_k=self.top_k)
            kept = order[suppressed(boxes[order], self.threshold, eta=self.eta)]
            table = np.empty((kept.size, 7), scores.dtype)
            table[:, 0], table[:, 1], table[:, 2], table[:, 3:] = image, label, scores[kept, label], boxes[kept]
            tables.append(table)
        rows = np.concatenate([np.empty((0, 7), scores.dtype), *tables])
        if -1 < self.keep_top_k < len(rows):
            best = rows[best_first(rows[:, 2], top_k=self.keep_top_k)]
            rows = best[np.argsort(best[:, 1], kind="stable")]
        return rows

    def _decoded(self, places: Array, priors: Array, variances: Array) -> Array:
        return decoded(places, priors, variances, self.code, in_target=self.in_target)

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if any(want):
            raise UnsupportedError("detections have no gradient", because=SOURCE)

    def allow_force_backward(self, index: int) -> bool:
        return False
