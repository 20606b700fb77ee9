"""ROIAlign: regions sampled between the cells of a map, without rounding."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from ..backends.protocol import Array
from ..errors import ArgumentError
from ._rois import FARTHEST, Regions
from .layer import Blobs

MOST_POINTS = 2**20
"""Of a region along one axis; a region of more is no region of any image."""

Reads = tuple[slice, Array]
"""Along one axis: the cells that a region reads, and the weight of each in each bin, (bins, cells)."""


class Form(StrEnum):
    """Which of the layers of this name."""

    AVERAGE = "average"  # bins are averages of points in them: Mask R-CNN's
    GRID = "grid"  # one point at each corner of a bin, pooled by a layer behind: Cascade R-CNN's


class ROIAlign(Regions):
    """Each of pooled_h by pooled_w bins of each region is the average of points in it, each from the four cells around it.

    Bottoms    a map (N, C, H, W), and regions (R, 5): image, x1, y1, x2, y2 in pixels of the image
    Tops       (R, C, pooled_h, pooled_w); of the grid (R, C, pooled_h + 1, pooled_w + 1)
    Options    pooled: bins down and across
               scale: cells of the map for a pixel
               samples: points down and across a bin; where it is not positive as many as the bin has cells, rounded up
               form: average, or Cascade R-CNN's grid of the bins' corners
               padding: of the grid: how much a region grows on each side, in parts of its size
    Edges      average: nothing is rounded, a region is one cell high and wide at least, points more than a cell outside the
               map are 0, others outside are the border's. Grid: half a cell is taken off the corners; points more than
               half a cell outside are 0, and so is a region without height or width
    Gradient   to the cells around each point, as they took part. Regions have none
    Quirks     forks have many layers of this name. With `roi_align_param` it is read as the average, with
               `roi_pooling_param` as the grid
    Source     Cascade R-CNN's Caffe, src/caffe/layers/roi_align_layer.cpp, the grid; Mask R-CNN (He and others, 2017) as Caffe2
               and the forks with sampling_ratio compute it, without a shift of half a cell, the average
    """

    type = "ROIAlign"
    source = "Mask R-CNN's ROIAlign"

    def __init__(
        self,
        pooled: tuple[int, int],
        *,
        scale: float = 1.0,
        samples: int = -1,
        form: Form = Form.AVERAGE,
        padding: float = 0.0,
    ) -> None:
        super().__init__(pooled, scale)
        if form is Form.AVERAGE and padding:
            raise ArgumentError("only the grid pads its regions", given={"pad_ratio": padding}, required="pad_ratio: 0")
        self.samples = samples
        self.form = form
        self.padding = padding

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        self.check(bottom)
        more = 1 if self.form is Form.GRID else 0
        top[0].reshape(bottom[1].shape[0], bottom[0].shape[1], *(n + more for n in self.pooled))

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        images, corners = self.regions(bottom)
        for row, image in enumerate(images):
            (rows, down), (columns, across) = self._reads(corners[row], bottom[0].shape[2:])
            top[0].data[row] = _weighted(down, bottom[0].data[image, :, rows, columns], across)

    def backward_of_map(self, top: Blobs, bottom: Blobs) -> None:
        images, corners = self.regions(bottom)
        bottom[0].diff.fill(0)
        for row, image in enumerate(images):
            (rows, down), (columns, across) = self._reads(corners[row], bottom[0].shape[2:])
            bottom[0].diff[image, :, rows, columns] += _weighted(down.T, top[0].diff[row], across.T)

    def _reads(self, corners: Array, size: tuple[int, ...]) -> tuple[Reads, Reads]:
        """Down and across. A point is a mean of cells along one axis at a time, a bin an average of points, so that a
        region is two small matrices and its gradient their transposes."""
        far = np.clip(corners, -FARTHEST, FARTHEST)
        down, across = (self._points(far[1 - axis], far[3 - axis], self.pooled[axis]) for axis in (0, 1))
        reads = self._cells(down, size[0]), self._cells(across, size[1])
        if self.form is Form.GRID and (down[-1, 0] <= down[0, 0] or across[-1, 0] <= across[0, 0]):
            return tuple((cells, np.zeros_like(weights)) for cells, weights in reads)  # type: ignore[return-value]
        return reads

    def _points(self, low: Array, high: Array, parts: int) -> Array:
        """Where the points of each bin are along one axis, in cells of the map: (bins, points)."""
        real = low.dtype.type
        at = np.arange(parts + 1, dtype=low.dtype)[:, None]
        if self.form is Form.GRID:
            pad = (high - low + 1) * real(self.padding)
            start, end = ((c * real(self.scale)) - real(0.5) for c in (low - pad, high + pad))
            return np.asarray(start + at * ((end - start) / real(parts)))
        start, end = low * real(self.scale), high * real(self.scale)
        each = np.maximum(end - start, real(1)) / real(parts)
        counted = self.samples if self.samples > 0 else int(np.ceil(each))
        if counted * parts > MOST_POINTS:
            raise ArgumentError(
                "a region has more points than any image has cells",
                given={"region": (float(low), float(high)), "points": counted * parts},
                required=f"points <= {MOST_POINTS}",
                hint="sampling_ratio: 2",
            )
        inner = (np.arange(counted, dtype=low.dtype) + real(0.5)) * each / real(counted)
        return np.asarray(start + at[:-1] * each + inner)

    def _cells(self, points: Array, limit: int) -> Reads:
        least, most = (-0.5, limit - 0.5) if self.form is Form.GRID else (-1.0, float(limit))
        number, place = np.nonzero((points >= least) & (points <= most))
        if not number.size or not limit:
            return slice(0, 0), np.zeros((len(points), 0), points.dtype)
        at = np.clip(points[number, place], 0, limit - 1)
        low = np.floor(at).astype(np.int64)
        high = np.minimum(low + 1, limit - 1)
        part = (at - low).astype(points.dtype)
        first = int(low.min())
        weights = np.zeros((len(points), int(high.max()) + 1 - first), points.dtype)
        np.add.at(weights, (number, low - first), 1 - part)
        np.add.at(weights, (number, high - first), part)
        return slice(first, first + weights.shape[1]), weights / points.dtype.type(points.shape[1])


def _weighted(down: Array, x: Array, across: Array) -> Array:
    """down @ x @ across^T of every channel; a cell that is not finite reaches no bin that does not read it."""
    if np.isfinite(x).all():
        return np.asarray(down @ x @ across.T)
    y = np.zeros((len(x), len(down), len(across)), x.dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        for i, j in np.ndindex(*y.shape[1:]):
            rows, columns = np.flatnonzero(down[i]), np.flatnonzero(across[j])
            y[:, i, j] = down[i, rows] @ x[:, rows][:, :, columns] @ across[j, columns]
    return y
