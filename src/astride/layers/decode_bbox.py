"""DecodeBBox: the regions that one stage of Cascade R-CNN leaves to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ..backends.protocol import Array
from ..errors import ArgumentError, ArrayError, UnsupportedError
from .layer import Blobs, Layer

SOURCE = "Cascade R-CNN's Caffe, src/caffe/layers/decode_bbox_layer.cpp"


class DecodeBBox(Layer):
    """Each region moved and resized as predicted: the centre by x, y of its sizes, its sizes times exp(w), exp(h).

    Predictions are those of the second class, any object's, times `std` plus `mean`; sizes are counted in whole pixels.

    Bottoms    predictions (N, 8): background's x, y, w, h, then any object's; regions (N, 5): image, x1, y1, x2, y2; in training,
               if given, (N, k), of which the last number says how much the region overlaps what is there
    Tops       (kept, 5, 1, 1); until forward has run as many as the regions
    Options    mean, std: of x, y, w, h
               training: leave out boxes turned inside out, and regions that overlap by `most` or more
    Edges      nothing left is an error
    Gradient   none
    Source     Cascade R-CNN's Caffe, src/caffe/layers/decode_bbox_layer.cpp and src/caffe/util/bbox_util.cpp
    """

    type = "DecodeBBox"
    bottoms: ClassVar[tuple[int, int | None]] = (2, 3)
    silent = frozenset({0})

    def __init__(
        self,
        *,
        mean: Sequence[float] = (0.0, 0.0, 0.0, 0.0),
        std: Sequence[float] = (1.0, 1.0, 1.0, 1.0),
        training: bool = False,
        most: float = 0.95,
    ) -> None:
        super().__init__()
        if len(mean) != 4 or len(std) != 4 or min(std) <= 0:
            raise ArgumentError(
                "a box has four numbers, which differ",
                given={"bbox_mean": tuple(mean), "bbox_std": tuple(std)},
                required="4 of each, bbox_std > 0",
                because=SOURCE,
                hint="bbox_mean: [0, 0, 0, 0] bbox_std: [0.1, 0.1, 0.2, 0.2]",
            )
        self.mean, self.std, self.training, self.most = tuple(mean), tuple(std), training, most

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        rows = [(blob.shape[0], blob.count // blob.shape[0]) if blob.shape and blob.shape[0] else (0, 0) for blob in bottom]
        widths = [row[1] for row in rows]
        if widths[:2] != [8, 5] or not all(widths) or any(row[0] != rows[0][0] for row in rows):
            raise ArgumentError(
                "predictions and regions do not belong together",
                given={"bottoms": tuple(blob.shape for blob in bottom)},
                required="(N, 8), (N, 5) and, if given, (N, k)",
                because=SOURCE,
            )
        if len(bottom) > 2 and not self.training:
            raise ArgumentError(
                "what is there is known in training only",
                given={"bottoms": 3},
                required="2 bottoms in the phase TEST",
                because=SOURCE,
                hint="include { phase: TRAIN }",
            )
        top[0].reshape(rows[0][0], 5, 1, 1)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        regions = bottom[1].data.reshape(-1, 5)
        boxes = self._decoded(bottom[0].data.reshape(-1, 8)[:, 4:], regions[:, 1:])
        kept = np.ones(len(boxes), bool)
        if self.training:
            kept &= (boxes[:, :2] <= boxes[:, 2:]).all(axis=1)
        if len(bottom) > 2:
            kept &= bottom[2].data.reshape(len(boxes), -1)[:, -1] < self.most
        if not kept.any():
            raise ArrayError(
                "no region is left",
                given={"regions": len(boxes)},
                required="one that is no box turned inside out",
                because=SOURCE,
            )
        top[0].reshape(int(kept.sum()), 5, 1, 1)
        top[0].data[...] = np.concatenate([regions[kept, :1], boxes[kept]], axis=1)[..., None, None]

    def _decoded(self, moves: Array, regions: Array) -> Array:
        moves = moves * np.array(self.std, moves.dtype) + np.array(self.mean, moves.dtype)
        size = regions[:, 2:] - regions[:, :2] + 1
        middle = moves[:, :2] * size + (regions[:, 2:] + regions[:, :2]) / 2
        with np.errstate(over="ignore"):
            size = size * np.exp(moves[:, 2:])
        low = middle - (size - 1) / 2
        return np.concatenate([low, low + size - 1], axis=1)

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if any(want):
            raise UnsupportedError("decoded regions pass no gradient", because=SOURCE, hint="propagate_down: false, twice")

    def allow_force_backward(self, index: int) -> bool:
        return False
