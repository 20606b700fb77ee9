"""Proposal: regions where there may be something, from scores and moves of anchors."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import ClassVar

import numpy as np

from ..backends.protocol import Array
from ..errors import ArgumentError, ArrayError
from ._anchors import anchors, everywhere, inside, regressed
from ._boxes import best_first, suppressed
from .layer import Blobs, Layer

SOURCE = "py-faster-rcnn, lib/rpn/proposal_layer.py"
MOST_ANCHORS = 2**22
"""Of all cells of a map."""


class Small(StrEnum):
    """What becomes of regions narrower or lower than the least."""

    LEFT_OUT = "left_out"  # py-faster-rcnn
    LAST = "last"  # their scores become 0: PVANet's Caffe


class Proposal(Layer):
    """Anchors at every cell, moved as predicted, clipped, the best of them, and of those that overlap all but the best.

    Bottoms    scores (1, 2 * anchors, H, W), those of there being something last; moves (1, 4 * anchors, H, W); and the
               image's height, width and scale (1, 3), or heights' and widths' scale (1, 4 or more)
    Tops       regions (R, 5): 0, x1, y1, x2, y2, the best first; if asked for, their scores, (R, 1), or (R,) as PVANet has
               them. Until forward has run there is room for as many as there may be
    Options    stride: pixels from cell to cell
               base: the side of the square that anchors are made of
               ratios: heights over widths
               scales: factors
               least: the least side of a region, in pixels of the image before it was scaled
               before: how many of the best are looked at (not positive: all)
               after: how many stay (not positive: all)
               threshold: overlap allowed
               small: what becomes of those that are smaller
    Edges      one image at a time. Nothing left: no regions
    Gradient   none
    Quirks     sides are counted in whole pixels, last minus first plus one. Of equal scores the earlier cell, and there the
               earlier anchor, comes first; NumPy's and PVANet's sorting leave their order open
    Source     py-faster-rcnn, lib/rpn/proposal_layer.py; PVANet's Caffe, src/caffe/layers/proposal_layer.cpp
    """

    type = "Proposal"
    bottoms: ClassVar[tuple[int, int | None]] = (3, 3)
    tops: ClassVar[tuple[int, int | None]] = (1, 2)

    def __init__(
        self,
        *,
        stride: float = 16,
        base: float = 16,
        ratios: Sequence[float] = (0.5, 1.0, 2.0),
        scales: Sequence[float] = (8.0, 16.0, 32.0),
        least: float = 16,
        before: int = 6000,
        after: int = 300,
        threshold: float = 0.7,
        small: Small = Small.LEFT_OUT,
    ) -> None:
        super().__init__()
        for name, values in {
            "feat_stride": (stride,),
            "base_size": (base,),
            "ratio": tuple(ratios),
            "scale": tuple(scales),
        }.items():
            if not values or not all(np.isfinite(value) and value > 0 for value in values):
                raise ArgumentError(f"{name} is positive", given={name: values}, required=f"{name} > 0", because=SOURCE)
        self.stride, self.base, self.ratios, self.scales = stride, base, tuple(ratios), tuple(scales)
        self.least, self.before, self.after, self.threshold, self.small = least, before, after, threshold, small

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        scores, moves, image = (blob.shape for blob in bottom)
        count = len(self.ratios) * len(self.scales)
        fits = len(scores) == 4 and scores[:2] == (1, 2 * count) and moves == (1, 4 * count, *scores[2:])
        if not fits or bottom[2].count < 3:
            raise ArgumentError(
                "scores, moves and the image do not belong together",
                given={"scores": scores, "moves": moves, "image": image},
                required=f"(1, {2 * count}, H, W), (1, {4 * count}, H, W) and at least 3 numbers, for {count} anchors a cell",
                because=SOURCE,
            )
        if count * scores[2] * scores[3] > MOST_ANCHORS:
            raise ArgumentError(
                "the map has more anchors than any image", given={"scores": scores}, required=f"<= {MOST_ANCHORS}"
            )
        most = min([count * scores[2] * scores[3], *(limit for limit in (self.before, self.after) if limit > 0)])
        top[0].reshape(most, 5)
        if len(top) > 1:
            top[1].reshape(*self._score_shape(most))

    def _score_shape(self, rows: int) -> tuple[int, ...]:
        return (rows, 1) if self.small is Small.LEFT_OUT else (rows,)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        boxes, scores = self._candidates(bottom)
        order = best_first(scores, top_k=self.before if self.before > 0 else -1)
        boxes, scores = boxes[order], scores[order]
        kept = suppressed(boxes, self.threshold, pixel=1.0, most=self.after if self.after > 0 else -1)
        top[0].reshape(kept.size, 5)
        top[0].data[:, 0] = 0
        top[0].data[:, 1:] = boxes[kept]
        if len(top) > 1:
            top[1].reshape(*self._score_shape(kept.size))
            top[1].data[...] = scores[kept].reshape(top[1].shape)

    def _candidates(self, bottom: Blobs) -> tuple[Array, Array]:
        """Every anchor as it is moved and clipped, and its score: rows of cells first, anchors of a cell last."""
        height, width, *scale = bottom[2].data.reshape(-1)[:4]
        if not np.isfinite([height, width, *scale]).all() or height < 1 or width < 1:
            raise ArrayError(
                "this is no size of an image",
                given={"image": [float(n) for n in (height, width, *scale)]},
                required="height >= 1, width >= 1, and scales",
                because=SOURCE,
            )
        size = bottom[0].shape[2:]
        own = anchors(self.base, self.ratios, self.scales, even=self.small is Small.LEFT_OUT)
        at = everywhere(own, (size[0], size[1]), self.stride).astype(bottom[0].dtype)
        moves = bottom[1].data[0].transpose(1, 2, 0).reshape(-1, 4)
        scores = bottom[0].data[0, len(own) :].transpose(1, 2, 0).reshape(-1)
        boxes = inside(regressed(at, moves), float(height), float(width))
        sides = boxes[:, 2:] - boxes[:, :2] + 1
        least = sides.dtype.type(self.least) * np.array([scale[-1], scale[0]], sides.dtype)
        large = (sides >= least).all(axis=1)
        if self.small is Small.LEFT_OUT:
            return boxes[large], scores[large]
        return boxes, np.where(large, scores, scores.dtype.type(0))

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        """Nothing flows through: py-faster-rcnn's passes, and networks that are trained have it within them."""
        for blob, wanted in zip(bottom, want, strict=True):
            if wanted:
                blob.diff.fill(0)
