"""PriorBox: the boxes that predictions are measured from, at every place of a map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ..backends.protocol import Array
from ..errors import ArgumentError
from .layer import Blobs, Layer

SOURCE = "the SSD fork of Caffe, src/caffe/layers/prior_box_layer.cpp"
SAME = 1e-6
"""Aspect ratios that differ by less are one."""


class PriorBox(Layer):
    """Boxes of several sizes and shapes around the centre of each cell of a map, as parts of the image, and their variances.

    Bottoms    the map, and the image; only their heights and widths matter
    Tops       (1, 2, H * W * boxes * 4): xmin, ymin, xmax, ymax of each box, rows of cells first; then the variances of each
    Options    min_sizes: in pixels. Each gives a square of that size; one of the geometric mean with its maximum, where
               there are max_sizes; and for each aspect ratio a rectangle of the minimum's area, in this order
               aspect_ratios: width over height; with flip the inverse of each besides. A ratio of 1, or one that is there
               already, counts nothing
               clip: coordinates are kept in [0, 1]
               variances: four, or one for all
               image: height and width of the image, in place of the second bottom's
               step: height and width of a cell in pixels; the image's size over the map's where it is not given
               offset: where in its cell the centre is
    Gradient   0: the bottoms' values do not matter
    Quirks     sizes are cut to whole pixels before they are used, as SSD keeps them in an int: 35.84 is 35.
               OpenCV's reader of Caffe files does not cut them
    Source     the SSD fork of Caffe, src/caffe/layers/prior_box_layer.cpp
    """

    type = "PriorBox"
    bottoms: ClassVar[tuple[int, int | None]] = (2, 2)

    def __init__(
        self,
        min_sizes: Sequence[float],
        *,
        max_sizes: Sequence[float] = (),
        aspect_ratios: Sequence[float] = (),
        flip: bool = True,
        clip: bool = False,
        variances: Sequence[float] = (0.1,),
        image: tuple[int, int] | None = None,
        step: tuple[float, float] | None = None,
        offset: float = 0.5,
    ) -> None:
        super().__init__()
        self.min_sizes = tuple(min_sizes)
        self.max_sizes = tuple(max_sizes)
        self.variances = tuple(variances)
        self.image = image
        self.step = step
        self.clip = clip
        self.offset = offset
        self._check(aspect_ratios)
        self.aspect_ratios = ratios(aspect_ratios, flip)

    def _check(self, aspect_ratios: Sequence[float]) -> None:
        counted = {"min_size": self.min_sizes, "max_size": self.max_sizes, "aspect_ratio": tuple(aspect_ratios)}
        counted |= {"variance": self.variances, "img_h, img_w": self.image or (), "step_h, step_w": self.step or ()}
        for name, values in counted.items():
            if not all(np.isfinite(value) and value > 0 for value in values):
                raise ArgumentError(f"{name} is not positive", given={name: values}, required=f"{name} > 0", because=SOURCE)
        if not self.min_sizes:
            raise ArgumentError("a prior box has a size", given={"min_size": ()}, hint="min_size: 30", because=SOURCE)
        if len(self.max_sizes) not in (0, len(self.min_sizes)):
            raise ArgumentError(
                "there is a greatest size for each least one, or none",
                given={"min_size": self.min_sizes, "max_size": self.max_sizes},
                required=f"0 or {len(self.min_sizes)} of max_size: {len(self.max_sizes)}",
                because=SOURCE,
            )
        for least, most in zip(self.min_sizes, self.max_sizes, strict=False):
            if most <= least:
                raise ArgumentError(
                    "a greatest size is not greater than its least one",
                    given={"min_size": least, "max_size": most},
                    required=f"max_size > min_size: {most:g} > {least:g}",
                    because=SOURCE,
                )
        if len(self.variances) not in (1, 4):
            raise ArgumentError(
                "there are four variances, or one for all",
                given={"variance": self.variances},
                required=f"1 or 4 of variance: {len(self.variances)}",
                because=SOURCE,
            )

    def sides(self) -> Array:
        """Width and height in pixels of the boxes of one cell, in their order: (boxes, 2) float32."""
        found: list[tuple[float, float]] = []
        for i, least in enumerate(int(size) for size in self.min_sizes):
            found.append((least, least))
            if self.max_sizes:
                found.append((np.sqrt(least * int(self.max_sizes[i])),) * 2)
            found += [(least * np.sqrt(ratio), least / np.sqrt(ratio)) for ratio in self.aspect_ratios]
        return np.array(found).astype(np.float32)

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        cells = bottom[0].height * bottom[0].width
        if not cells or not (self.image or bottom[1].height * bottom[1].width):
            raise ArgumentError(
                "there is no cell to put a box in, or no image",
                given={"map": bottom[0].shape, "image": bottom[1].shape},
                required="heights and widths >= 1",
                because=SOURCE,
            )
        each = len(self.min_sizes) * (1 + len(self.aspect_ratios)) + len(self.max_sizes)
        top[0].reshape(1, 2, cells * each * 4)

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        size = (bottom[0].height, bottom[0].width)
        image = self.image or (bottom[1].height, bottom[1].width)
        step = self.step or tuple(float(np.float32(whole) / np.float32(n)) for whole, n in zip(image, size, strict=True))
        # float32 up to the centre and the sides, double from there on: as C++ reads SSD's formula
        y, x = (self._centers(n, s) for n, s in zip(size, step, strict=True))
        half = self.sides().astype(np.float64) / 2
        boxes = np.empty((*size, len(half), 4))
        boxes[..., 0] = (x[None, :, None] - half[:, 0]) / image[1]
        boxes[..., 1] = (y[:, None, None] - half[:, 1]) / image[0]
        boxes[..., 2] = (x[None, :, None] + half[:, 0]) / image[1]
        boxes[..., 3] = (y[:, None, None] + half[:, 1]) / image[0]
        rows = top[0].data.reshape(2, -1, 4)
        rows[0] = boxes.reshape(-1, 4)
        if self.clip:
            np.clip(rows[0], 0, 1, out=rows[0])
        rows[1] = self.variances

    def _centers(self, count: int, step: float) -> Array:
        at = np.arange(count, dtype=np.float32) + np.float32(self.offset)
        return (at * np.float32(step)).astype(np.float64)

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        for blob, wanted in zip(bottom, want, strict=True):
            if wanted:
                blob.diff.fill(0)


def ratios(given: Sequence[float], flip: bool) -> tuple[float, ...]:
    """The aspect ratios that give boxes of their own, in order, each float32; the inverse after each with `flip`."""
    known = [np.float32(1)]
    for ratio in np.asarray(given, np.float32):
        if all(abs(float(ratio) - float(other)) >= SAME for other in known):
            known += [ratio, np.float32(1 / np.float64(ratio))] if flip else [ratio]
    return tuple(float(ratio) for ratio in known[1:])
