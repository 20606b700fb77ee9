"""BoxAnnotatorOHEM: the hardest regions of each image are taught, the others are not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ..errors import ArgumentError, ArrayError, UnsupportedError
from ._boxes import best_first
from .layer import Blobs, Layer

SOURCE = "R-FCN's Caffe, src/caffe/layers/box_annotator_ohem_layer.cu"


class BoxAnnotatorOHEM(Layer):
    """Labels and weights of those regions of each image whose loss is greatest; all others are ignored.

    Bottoms    regions (N, 5, H, W), image first; the loss of each, and its label, (N, 1, H, W); weights (N, C, H, W)
    Tops       labels like the third bottom, and weights like the fourth
    Options    count: how many regions an image keeps
               ignore_label: of those that are not kept, whose weights are 0
    Gradient   none
    Quirks     of equal losses the earlier region is kept; R-FCN leaves it to std::sort
    Source     R-FCN's Caffe, src/caffe/layers/box_annotator_ohem_layer.cpp and .cu
    """

    type = "BoxAnnotatorOHEM"
    bottoms: ClassVar[tuple[int, int | None]] = (4, 4)
    tops: ClassVar[tuple[int, int | None]] = (2, 2)

    def __init__(self, count: int, *, ignore_label: int = -1) -> None:
        super().__init__()
        if count < 1:
            raise ArgumentError(
                "an image keeps regions", given={"roi_per_img": count}, required="roi_per_img >= 1", because=SOURCE
            )
        self.count = count
        self.ignore_label = ignore_label

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        shapes = [(*blob.shape, 1, 1, 1)[: max(4, len(blob.shape))] for blob in bottom]
        rois, loss, labels, weights = shapes
        places = (rois[0], *rois[2:])
        if rois[1] != 5 or any(s[1] != 1 for s in (loss, labels)) or any((s[0], *s[2:]) != places for s in shapes):
            raise ArgumentError(
                "regions, losses, labels and weights do not belong together",
                given={"bottoms": tuple(blob.shape for blob in bottom)},
                required="(N, 5, H, W), (N, 1, H, W) twice, and (N, C, H, W)",
                because=SOURCE,
            )
        top[0].reshape(*labels)
        top[1].reshape(*weights)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        rois, weights = (blob.data.reshape(blob.shape[0], blob.shape[1], -1) for blob in (bottom[0], bottom[3]))
        image, loss = rois[:, 0].reshape(-1), bottom[1].data.reshape(-1)
        if not np.isfinite(image).all():
            raise ArrayError("a region's image is not finite", given={"regions": bottom[0].data}, because=SOURCE)
        kept = np.zeros(image.size, bool)
        for one in np.unique(np.trunc(image)):
            own = np.flatnonzero(np.trunc(image) == one)
            kept[own[best_first(loss[own], top_k=self.count)]] = True
        labels = np.where(kept, bottom[2].data.reshape(-1), self.ignore_label)
        top[0].data[...] = labels.reshape(top[0].shape)
        top[1].data[...] = (weights * kept.reshape(rois.shape[0], 1, -1)).reshape(top[1].shape)

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if any(want):
            raise UnsupportedError("what is taught has no gradient", because=SOURCE, hint="propagate_down: false, four times")

    def allow_force_backward(self, index: int) -> bool:
        return False
