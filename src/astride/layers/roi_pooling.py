"""ROIPooling: regions of any size pooled to one size, each bin by its maximum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import ops
from ..backends.protocol import Array, Saved
from ..plan import ExplicitAxis, PoolPlan
from ..plan.kinds import Empty, Nan, Reduce, Start, Tie, Unpicked
from ._rois import Regions, bins, half_away
from .layer import Blobs, nothing_kept


@dataclass(frozen=True, slots=True)
class _Pooled:
    """One region's pooling: its image, the part of the map where its bins lie, and what was kept."""

    row: int
    image: int
    box: tuple[slice, slice]
    plan: PoolPlan
    saved: Saved


class ROIPooling(Regions):
    """The greatest value of each of pooled_h by pooled_w bins of each region.

    Bottoms    a map (N, C, H, W), and regions (R, 5): image, x1, y1, x2, y2 in pixels of the image
    Tops       (R, C, pooled_h, pooled_w)
    Options    pooled: bins down and across
               scale: cells of the map for a pixel
    Edges      corners are scaled and rounded to whole cells, halves away from zero, and both are part of the region, which has
               one cell at least. Bins reach from their floor to their ceiling, so that neighbours may share cells, and end
               at the map's border; a bin without cells is 0
    Gradient   to the first of equal values, as Caffe's pooling; to nothing from a bin without cells. Regions have none
    Source     Fast R-CNN's Caffe, src/caffe/layers/roi_pooling_layer.cpp
    """

    type = "ROIPooling"
    source = "Fast R-CNN's Caffe, src/caffe/layers/roi_pooling_layer.cpp"

    def __init__(self, pooled: tuple[int, int], *, scale: float = 1.0) -> None:
        super().__init__(pooled, scale)
        self._pooled: list[_Pooled] | None = None

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        self.check(bottom)
        top[0].reshape(bottom[1].shape[0], bottom[0].shape[1], *self.pooled)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        images, corners = self.regions(bottom)
        cells = half_away(corners * corners.dtype.type(self.scale))
        spans = []
        for axis, (parts, limit) in enumerate(zip(self.pooled, bottom[0].shape[2:], strict=True)):
            first, last = cells[:, 1 - axis], cells[:, 3 - axis]
            size = np.maximum(last - first + 1, 1)
            spans.append(bins(first, size, parts, limit, whole_start=True))
        self._pooled = [] if self.keep else None
        for i, image in enumerate(images):
            self._pool(i, int(image), [(low[i], high[i]) for low, high in spans], bottom, top)

    def _pool(self, row: int, image: int, spans: list[tuple[Array, Array]], bottom: Blobs, top: Blobs) -> None:
        """One region: a pooling whose windows are its bins, of the part of the map where they lie."""
        y, x = (slice(int(low.min()), int(max(high.max(), low.min()))) for low, high in spans)
        axes = []
        for (low, high), part in zip(spans, (y, x), strict=True):
            ends = np.maximum(high, low) - part.start
            axes.append(ExplicitAxis(part.stop - part.start, _ints(low - part.start), _ints(ends)))
        if not all(axis.size for axis in axes):
            top[0].data[row] = 0
            return
        plan = PoolPlan(
            dtype=bottom[0].dtype,
            axes=tuple(axes),
            reduce=Reduce.MAX,
            start=Start.FINITE,
            nan=Nan.COMPARED,
            tie=Tie.FIRST,
            unpicked=Unpicked.NOWHERE,
            empty=Empty.ZERO,
            accumulate=bottom[0].dtype,
        )
        saved = self.compute(plan, bottom[0].data[image : image + 1, :, y, x], top=top[0].data[row : row + 1])
        if saved is not None and self._pooled is not None:
            self._pooled.append(_Pooled(row, image, (y, x), plan, saved))

    def backward_of_map(self, top: Blobs, bottom: Blobs) -> None:
        if self._pooled is None:
            raise nothing_kept()
        bottom[0].diff.fill(0)
        for one in self._pooled:
            dx = ops.backward(one.plan, top[0].diff[one.row : one.row + 1], one.saved, want=(True, False))[0]
            bottom[0].diff[one.image : one.image + 1, :, one.box[0], one.box[1]] += dx


def _ints(values: Array) -> tuple[int, ...]:
    return tuple(int(n) for n in values)
