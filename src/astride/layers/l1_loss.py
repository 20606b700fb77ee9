"""L1Loss: the distance of two blobs, or the size of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ..backends.protocol import Array
from ..errors import ArgumentError
from .layer import Blobs, Layer, nothing_kept

SOURCE = "FlowNet's Caffe, src/caffe/layers/l1loss_layer.cu"


class L1Loss(Layer):
    """sum |a - b| / samples, or sum |a| / samples of one bottom. NaN, and what is smaller than `plateau`, counts as 0.

    per_location       sum over pixels of sqrt(sum over channels of (a - b)^2 + eps) instead: the end-point error of a flow
    mean_of_channels   with per_location: the channels' mean in place of their sum
    by_entries         divide by the number of differences that are not NaN, over the channels, in place of the samples

    Bottoms     a and b of one shape (N, C, ...), or a alone
    Gradient    to both; of |0| it is that of -a, save where NaN or the plateau made it 0
    Source      FlowNet's Caffe, src/caffe/layers/l1loss_layer.cpp and l1loss_layer.cu
    """

    type = "L1Loss"
    bottoms: ClassVar[tuple[int, int | None]] = (1, 2)
    is_loss = True

    def __init__(
        self,
        *,
        per_location: bool = False,
        mean_of_channels: bool = False,
        by_entries: bool = False,
        eps: float = 1e-2,
        plateau: float = 0.0,
    ) -> None:
        super().__init__()
        self.per_location, self.mean_of_channels, self.by_entries = per_location, mean_of_channels, by_entries
        self.eps, self.plateau = eps, plateau
        self._slope: Array | None = None

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        shapes = [blob.shape for blob in bottom]
        if len(shapes[0]) < 2 or any(s != shapes[0] for s in shapes):
            raise ArgumentError(
                "the bottoms have no channels, or different shapes",
                given={"bottoms": shapes},
                required="equal shapes (N, C, ...)",
                because=SOURCE,
            )
        top[0].reshape()

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        difference = bottom[0].data - bottom[1].data if len(bottom) > 1 else bottom[0].data
        numbers = ~np.isnan(difference)
        difference = np.where(numbers, difference, 0)
        entries = numbers.sum() / difference.shape[1] if self.by_entries else difference.shape[0]
        scale = 1 / entries if entries else 0.0
        if self.per_location:
            part = 1 / difference.shape[1] if self.mean_of_channels else 1.0
            squares = part * (difference**2).sum(1, keepdims=True)
            counted = squares >= self.plateau**2
            root = np.sqrt(np.where(counted, squares, 0) + self.eps)
            loss, slope = root.sum(), part * difference * counted / np.where(root > 0, root, 1)
        else:
            counted = numbers & (np.abs(difference) >= self.plateau)
            loss = np.abs(difference[counted]).sum()
            slope = np.where(difference > 0, 1, -1) * counted
        top[0].data[...] = loss * scale
        self._slope = slope * scale if self.keep else None

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if self._slope is None:
            raise nothing_kept()
        for blob, w, sign in zip(bottom, want, (1, -1), strict=False):
            if w:
                blob.diff[...] = sign * top[0].diff * self._slope
