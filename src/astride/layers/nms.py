"""Nms: the peaks of OpenPose's maps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..backends.protocol import Array
from ..errors import ArgumentError, UnsupportedError
from ._resampling import four_axes
from .layer import Blobs, Layer

SOURCE = "OpenPose's Caffe, caffe_rtpose, src/caffe/layers/nms_layer.cu"


class Nms(Layer):
    """Places greater than their neighbours and than `threshold`, in each of the first `parts` maps.

    Bottoms    maps (N, C, H, W), C >= parts
    Tops       (N, parts, most + 1, 3): first how many peaks there are, 0, 0; then x, y and value of each, row by row, as many as
               fit, and zeros
    Options    neighbours: 8, of places two or more from the left and upper border and off the others; or 4, of all places,
               where 0 lies beyond the border
    Gradient   none
    Quirks     the count goes on where the table ends. Rows without a peak are what memory held, in OpenPose. The text's num_peak
               means the older layer: one map, 4 neighbours
    Source     OpenPose's Caffe, caffe_rtpose, src/caffe/layers/nms_layer.cpp and .cu
    """

    type = "Nms"
    silent = frozenset({0})

    def __init__(self, *, threshold: float = 0.5, most: int = 20, parts: int = 15, neighbours: int = 8) -> None:
        super().__init__()
        if most < 1 or parts < 1 or neighbours not in (4, 8):
            raise ArgumentError(
                "there is at least a map with a peak",
                given={"max_peaks": most, "num_parts": parts, "neighbours": neighbours},
                required="max_peaks >= 1, num_parts >= 1, neighbours of 4 or 8",
                because=SOURCE,
                hint="nms_param { max_peaks: 20 num_parts: 15 }",
            )
        self.threshold, self.most, self.parts, self.neighbours = threshold, most, parts, neighbours

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        shape = bottom[0].shape
        four_axes(shape, SOURCE)
        if shape[1] < self.parts:
            raise ArgumentError(
                "there are fewer maps than parts",
                given={"bottom": shape, "num_parts": self.parts},
                required=f"channels >= num_parts: {shape[1]} >= {self.parts}",
                because=SOURCE,
            )
        top[0].reshape(shape[0], self.parts, self.most + 1, 3)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        x = bottom[0].data[:, : self.parts]
        peaks = (x > x.dtype.type(self.threshold)) & self._greatest(x)
        table = top[0].data
        table[...] = 0
        for n, part in np.ndindex(*peaks.shape[:2]):
            rows, columns = np.nonzero(peaks[n, part])
            table[n, part, 0, 0] = rows.size
            rows, columns = rows[: self.most], columns[: self.most]
            found = np.stack([columns, rows, x[n, part, rows, columns]], axis=1)
            table[n, part, 1 : 1 + len(found)] = found

    def _greatest(self, x: Array) -> Array:
        """Where a value is greater than all its neighbours."""
        h, w = x.shape[2:]
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        greatest = np.ones(x.shape, bool)
        for dy, dx in np.ndindex(3, 3):
            if (dy, dx) != (1, 1) and (self.neighbours == 8 or dy == 1 or dx == 1):
                greatest &= x > padded[:, :, dy : dy + h, dx : dx + w]
        if self.neighbours == 8:
            inside = np.zeros((h, w), bool)
            inside[2 : h - 1, 2 : w - 1] = True
            greatest &= inside
        return greatest

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if any(want):
            raise UnsupportedError("peaks pass no gradient", because=SOURCE, hint="propagate_down: false")

    def allow_force_backward(self, index: int) -> bool:
        return False
