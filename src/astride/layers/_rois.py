"""Regions of interest: rows of image number, x1, y1, x2, y2, in pixels of the image that a map was made from.

Source: Fast R-CNN's Caffe, src/caffe/layers/roi_pooling_layer.cpp
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ..backends.protocol import Array
from ..errors import ArgumentError, ArrayError, UnsupportedError
from .layer import Blobs, Layer

MOST_BINS = 2**12
"""Of a region along one axis; no network has more."""

FARTHEST = 2.0**30
"""Coordinates beyond it are as good as there: C's int would overflow."""


class Regions(Layer):
    """What layers over regions share: a map and rows of regions, one top entry a region; regions have no gradient."""

    bottoms: ClassVar[tuple[int, int | None]] = (2, 2)
    source: ClassVar[str] = ""

    def __init__(self, pooled: tuple[int, int], scale: float) -> None:
        super().__init__()
        for name, size in zip(("pooled_h", "pooled_w"), pooled, strict=True):
            if not 1 <= size <= MOST_BINS:
                raise ArgumentError(
                    "a region is cut into bins", given={name: size}, required=f"1 <= {name} <= {MOST_BINS}", because=self.source
                )
        if not (np.isfinite(scale) and scale > 0):
            raise ArgumentError(
                "the map's scale is positive",
                given={"spatial_scale": scale},
                required="spatial_scale > 0",
                because=self.source,
                hint="spatial_scale: 0.0625 for a map of 16 pixels a cell",
            )
        self.pooled = pooled
        self.scale = scale

    def check(self, bottom: Blobs) -> None:
        """Raise ArgumentError unless the bottoms are a map (N, C, H, W) and regions (R, 5)."""
        x, regions = (blob.shape for blob in bottom)
        if len(x) != 4 or not regions or bottom[1].count != 5 * regions[0]:
            raise ArgumentError(
                "these are no map and regions",
                given={"map": x, "regions": regions},
                required="(N, C, H, W) and (R, 5)",
                because=self.source,
            )

    def regions(self, bottom: Blobs) -> tuple[Array, Array]:
        """The image of each region, and its corners x1, y1, x2, y2 in the blob's dtype.

        Raises ArrayError: one that is not finite, or of no image.
        """
        rows = bottom[1].data.reshape(-1, 5)
        images = bottom[0].shape[0]
        if not np.isfinite(rows).all():
            raise ArrayError(
                "a region is not finite", given={"regions": bottom[1].data}, required="finite numbers", because=self.source
            )
        number = np.trunc(rows[:, 0])
        bad = (number < 0) | (number >= images)
        if bad.any():
            raise ArrayError(
                "a region is of an image that is not there",
                given={"region": int(np.flatnonzero(bad)[0]), "image": float(number[bad][0])},
                required=f"0 <= image < {images}",
                because=self.source,
            )
        return number.astype(np.int64), rows[:, 1:]

    def backward_of_map(self, top: Blobs, bottom: Blobs) -> None:
        """Overwrite the map's gradient."""
        raise NotImplementedError

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        if want[1]:
            raise UnsupportedError(
                "regions have no gradient", because=self.source, hint="propagate_down: true propagate_down: false"
            )
        if want[0]:
            self.backward_of_map(top, bottom)

    def allow_force_backward(self, index: int) -> bool:
        return index == 0


def half_away(values: Array) -> Array:
    """C's round: the nearest whole number, halves away from zero."""
    whole = np.trunc(values)
    return np.asarray(whole + np.where(np.abs(values - whole) >= 0.5, np.sign(values), 0).astype(values.dtype))


def bins(start: Array, size: Array, parts: int, limit: int, *, whole_start: bool) -> tuple[Array, Array]:
    """Where the bins of each region begin and end along an axis, (R, parts), clipped to [0, limit].

    start, size    of the regions in cells of the map; the bins are `size / parts`, from their floor to their ceiling.
    whole_start    regions begin at whole cells: the start is added after rounding, otherwise before
    """
    each = (size / size.dtype.type(parts))[:, None]
    at = np.arange(parts + 1, dtype=size.dtype)
    low, high = at[:-1] * each, at[1:] * each
    shift = np.clip(start, -FARTHEST, FARTHEST)[:, None]
    if whole_start:
        low, high = np.floor(low) + shift, np.ceil(high) + shift
    else:
        low, high = np.floor(low + shift), np.ceil(high + shift)
    return np.clip(low, 0, limit).astype(np.int64), np.clip(high, 0, limit).astype(np.int64)


__all__ = ["Regions", "bins", "half_away"]
