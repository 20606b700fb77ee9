"""FlowWarp: an image moved along a field of displacements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ..backends.protocol import Array
from ..errors import ArgumentError
from .layer import Blobs, Layer, nothing_kept

SOURCE = "FlowNet's Caffe, src/caffe/layers/flow_warp_layer.cpp"
Corner = tuple[Array, Array, Array]


class FlowWarp(Layer):
    """Each pixel of the top is the image at (x + flow x, y + flow y), interpolated bilinearly; `fill` where that is outside.

    Bottoms     the image (N, C, H, W); the flow (N, 2, H, W), first along the rows, then along the columns
    Edges       inside is 0 <= x < W, and behind the last pixel it is repeated; a displacement that is not finite is outside
    Gradient    to both; none from outside
    Source      FlowNet's Caffe, src/caffe/layers/flow_warp_layer.cpp
    """

    type = "FlowWarp"
    bottoms: ClassVar[tuple[int, int | None]] = (2, 2)

    def __init__(self, *, fill: float = 0.0) -> None:
        super().__init__()
        self.fill = fill
        self._kept: tuple[Array, Array, list[Corner], Array, Array] | None = None

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        image, flow = bottom[0].shape, bottom[1].shape
        if len(image) != 4 or flow != (*image[:1], 2, *image[2:]):
            raise ArgumentError(
                "the flow does not fit the image",
                given={"image": image, "flow": flow},
                required="(N, C, H, W) and (N, 2, H, W)",
                because=SOURCE,
            )
        top[0].reshape(*image)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        image, flow = bottom[0].data, bottom[1].data
        h, w = image.shape[2:]
        x, y = flow[:, 0] + np.arange(w, dtype=flow.dtype), flow[:, 1] + np.arange(h, dtype=flow.dtype)[:, None]
        inside = (x >= 0) & (y >= 0) & (x < w) & (y < h)
        x, y = np.where(inside, x, 0), np.where(inside, y, 0)
        left, above = x.astype(np.int64), y.astype(np.int64)
        right, below = np.minimum(left + 1, w - 1), np.minimum(above + 1, h - 1)
        alpha, beta = x - left, y - above
        corners: list[Corner] = [
            (above, left, (1 - alpha) * (1 - beta)),
            (above, right, alpha * (1 - beta)),
            (below, left, (1 - alpha) * beta),
            (below, right, alpha * beta),
        ]
        image = image.copy() if self.keep else image
        total = sum(weight[:, None] * self._at(image, row, column) for row, column, weight in corners)
        top[0].data[...] = np.where(inside[:, None], total, self.fill)
        self._kept = (image, inside, corners, alpha, beta) if self.keep else None

    @staticmethod
    def _at(image: Array, row: Array, column: Array) -> Array:
        """(N, C, H, W): the image at these places (N, H, W)."""
        images = np.arange(image.shape[0])[:, None, None]
        taken: Array = image.transpose(0, 2, 3, 1)[images, row, column].transpose(0, 3, 1, 2)
        return taken

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if self._kept is None:
            raise nothing_kept()
        image, inside, corners, alpha, beta = self._kept
        dy = np.where(inside[:, None], top[0].diff, 0)
        if want[0]:
            gradient = np.zeros_like(image)
            images = np.arange(image.shape[0])[:, None, None]
            for row, column, weight in corners:
                np.add.at(gradient.transpose(0, 2, 3, 1), (images, row, column), (weight[:, None] * dy).transpose(0, 2, 3, 1))
            bottom[0].diff[...] = gradient
        if want[1]:
            tl, tr, bl, br = (self._at(image, row, column) for row, column, _ in corners)
            a, b = alpha[:, None], beta[:, None]
            slopes = (1 - b) * (tr - tl) + b * (br - bl), (1 - a) * (bl - tl) + a * (br - tr)
            for k, slope in enumerate(slopes):
                bottom[1].diff[:, k] = (dy * slope).sum(1)


NOT_A_NUMBER = math.nan
"""The other fill that the fork knows."""
