"""Interp: images at another size, linearly, corner to corner."""

from __future__ import annotations

from typing import ClassVar

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..plan import Shape
from ._composed import Composed
from ._resampling import corners_aligned, four_axes, resample
from ._steps import Steps
from .layer import Blobs

SOURCE = "DeepLab's Caffe, src/caffe/layers/interp_layer.cpp"


class Interp(Composed):
    """Bilinear: the corner pixels of the top are those of the bottom, and between them the distances are equal.

    The bottom is first cut by `crop_begin` rows and columns at the beginning and `crop_end` at the end. The top's size n
    is, of what is left, (n - 1) / shrink + 1 and then n + (n - 1) (zoom - 1); or `size`; or that of a second bottom. With
    `nearest` each pixel is the nearest one at the same place, the later of two.

    Edges       a top of one row or column is the bottom's first. The gradient is the exact adjoint; a second bottom has none
    Source      DeepLab's and PSPNet's Caffe, src/caffe/layers/interp_layer.cpp and src/caffe/util/interp.cpp
    """

    type = "Interp"
    bottoms: ClassVar[tuple[int, int | None]] = (1, 2)

    def __init__(
        self,
        *,
        size: tuple[int, int] | None = None,
        shrink: int = 1,
        zoom: int = 1,
        crop_begin: int = 0,
        crop_end: int = 0,
        nearest: bool = False,
    ) -> None:
        super().__init__()
        if shrink < 1 or zoom < 1 or (size is not None and min(size) < 1):
            raise ArgumentError(
                "sizes and factors count from 1",
                given={"shrink_factor": shrink, "zoom_factor": zoom, "height, width": size},
                required="each >= 1",
                because=SOURCE,
                hint="zoom_factor: 8, or height: 65 width: 65",
            )
        if crop_begin < 0 or crop_end < 0:
            raise ArgumentError(
                "interpolation cuts, it does not pad",
                given={"pad_beg": -crop_begin, "pad_end": -crop_end},
                required="pad_beg <= 0 and pad_end <= 0",
                because=SOURCE,
            )
        self.size, self.shrink, self.zoom = size, shrink, zoom
        self.crop_begin, self.crop_end, self.nearest = crop_begin, crop_end, nearest

    def top_size(self, left: tuple[int, ...]) -> tuple[int, ...]:
        """The size of what is made of an image of this size."""
        if self.size is not None:
            return self.size
        shrunk = tuple((n - 1) // self.shrink + 1 for n in left)
        return tuple(n + (n - 1) * (self.zoom - 1) for n in shrunk)

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        shape = bottom[0].shape
        four_axes(shape, SOURCE)
        left = self._left(shape)
        if len(bottom) > 1:
            four_axes(bottom[1].shape, SOURCE)
        size = bottom[1].shape[2:] if len(bottom) > 1 else self.top_size(left)
        top[0].reshape(*shape[:2], *size)
        self._top_size = size

    def _left(self, shape: Shape) -> tuple[int, ...]:
        left = tuple(n - self.crop_begin - self.crop_end for n in shape[2:])
        if min(left) < 1:
            raise ArgumentError(
                "nothing is left of the image",
                given={"bottom": shape, "pad_beg": -self.crop_begin, "pad_end": -self.crop_end},
                required=f"size + pad_beg + pad_end >= 1: {left}",
                because=SOURCE,
            )
        return left

    def compose(self, steps: Steps, *arrays: Array) -> Array:
        x = arrays[0]
        pairs = zip(self._left(x.shape), self._top_size, strict=True)
        return resample(steps, x, [corners_aligned(n, out, first=self.crop_begin, nearest=self.nearest) for n, out in pairs])

    def allow_force_backward(self, index: int) -> bool:
        return index == 0
