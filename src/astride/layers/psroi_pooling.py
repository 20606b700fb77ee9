"""PSROIPooling: regions pooled to one size, each bin by the average of its own channels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..backends.protocol import Array
from ..errors import ArgumentError
from ._rois import Regions, bins, half_away
from .layer import Blobs

LEAST = 0.1
"""No region is narrower or lower, in cells of the map."""

Bin = tuple[int, int, int, int, slice, slice]
"""Region, image, bin down and across, and its cells."""


class PSROIPooling(Regions):
    """The average of each of group by group bins of each region, every bin over channels that are its own.

    Bottoms    a map (N, output_dim * group * group, H, W), and regions (R, 5): image, x1, y1, x2, y2 in pixels of the image
    Tops       (R, output_dim, group, group); the bin (i, j) of channel c is of the map's channel (c * group + i) * group + j
    Options    output_dim: channels of the top
               group: bins down and across
               scale: cells of the map for a pixel
    Edges      corners are rounded to whole pixels, halves away from zero, then scaled; the last pixel is part of the region,
               which is a tenth of a cell wide and high at least. Bins reach from their floor to their ceiling and end at
               the map's border; one without cells is 0
    Gradient   an equal share for each cell of a bin. Regions have none
    Source     R-FCN's Caffe, src/caffe/layers/psroi_pooling_layer.cpp and .cu
    """

    type = "PSROIPooling"
    source = "R-FCN's Caffe, src/caffe/layers/psroi_pooling_layer.cpp"

    def __init__(self, output_dim: int, group: int, *, scale: float) -> None:
        if group < 1 or output_dim < 1:
            raise ArgumentError(
                "there are outputs, and bins for each",
                given={"output_dim": output_dim, "group_size": group},
                required="output_dim >= 1, group_size >= 1",
                because=self.source,
            )
        super().__init__((group, group), scale)
        self.output_dim = output_dim
        self.group = group

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        self.check(bottom)
        channels = self.output_dim * self.group**2
        if bottom[0].shape[1] != channels:
            raise ArgumentError(
                "the map has another number of channels than the bins ask for",
                given={"map": bottom[0].shape},
                required=f"channels == output_dim * group_size^2: {bottom[0].shape[1]} == {channels}",
                because=self.source,
            )
        top[0].reshape(bottom[1].shape[0], self.output_dim, *self.pooled)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        x, y = self._by_bin(bottom[0].data), top[0].data
        y.fill(0)
        for row, image, i, j, down, across in self._bins(bottom):
            y[row, :, i, j] = x[image, :, i, j, down, across].mean(axis=(1, 2))

    def backward_of_map(self, top: Blobs, bottom: Blobs) -> None:
        dx, dy = self._by_bin(bottom[0].diff), top[0].diff
        dx.fill(0)
        for row, image, i, j, down, across in self._bins(bottom):
            cells = (down.stop - down.start) * (across.stop - across.start)
            dx[image, :, i, j, down, across] += (dy[row, :, i, j] / dy.dtype.type(cells))[:, None, None]

    def _by_bin(self, x: Array) -> Array:
        """(N, output_dim, bins down, bins across, H, W): a view."""
        return x.reshape(x.shape[0], self.output_dim, self.group, self.group, *x.shape[2:])

    def _bins(self, bottom: Blobs) -> Iterator[Bin]:
        """Every bin that has cells."""
        images, corners = self.regions(bottom)
        scale = corners.dtype.type(self.scale)
        spans = []
        for axis, limit in enumerate(bottom[0].shape[2:]):
            first = half_away(corners[:, 1 - axis]) * scale
            size = np.maximum((half_away(corners[:, 3 - axis]) + 1) * scale - first, corners.dtype.type(LEAST))
            spans.append(bins(first, size, self.group, limit, whole_start=False))
        (top, low), (left, right) = spans
        filled = (low > top)[:, :, None] & (right > left)[:, None, :]
        for row, i, j in np.argwhere(filled).tolist():
            down, across = slice(int(top[row, i]), int(low[row, i])), slice(int(left[row, j]), int(right[row, j]))
            yield row, int(images[row]), i, j, down, across
