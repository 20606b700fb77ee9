"""Records of images with boxes, prepared for detectors as SSD prepares them.

Source: the SSD fork of Caffe, src/caffe/layers/annotated_data_layer.cpp and src/caffe/data_transformer.cpp
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ArgumentError
from ..plan import Shape
from .boxes import WHOLE, Annotation, Box, Emit, Patches, viewed
from .colours import Distortion, expanded
from .databases import Database
from .pixels import Pixels, resize_pixels
from .records import RecordSource, read_datum
from .samples import Array

Mean = npt.NDArray[np.float32]


class Interpolation(StrEnum):
    """How an image is resized: as OpenCV does it, linearly or to the nearest; by Pillow's own filters else."""

    LINEAR = "linear"
    NEAREST = "nearest"
    AREA = "area"
    CUBIC = "cubic"
    LANCZOS4 = "lanczos4"


@dataclass(frozen=True)
class Warp:
    """Resizing to (height, width), by one of these ways, drawn anew each time."""

    size: tuple[int, int]
    ways: tuple[Interpolation, ...] = (Interpolation.LINEAR,)
    probability: float = 1.0

    def __call__(self, pixels: Pixels, random: np.random.Generator) -> Pixels:
        """The image at that size."""
        if random.random() > self.probability:
            return pixels
        way = self.ways[int(random.integers(len(self.ways)))]
        if way is Interpolation.LINEAR:
            return resize_pixels(pixels, self.size)
        if way is Interpolation.NEAREST:
            rows, columns = (np.arange(out) * n // out for n, out in zip(pixels.shape[1:], self.size, strict=True))
            return pixels[:, rows[:, None], columns]
        from PIL import Image as pillow

        filters = {
            Interpolation.AREA: pillow.Resampling.BOX,
            Interpolation.CUBIC: pillow.Resampling.BICUBIC,
            Interpolation.LANCZOS4: pillow.Resampling.LANCZOS,
        }
        height, width = self.size
        planes = [np.asarray(pillow.fromarray(np.ascontiguousarray(p)).resize((width, height), filters[way])) for p in pixels]
        return np.stack(planes)


@dataclass(frozen=True)
class Changes:
    """What happens to every image and its boxes, from above to below; None and empty for nothing.

    expand      (probability, greatest ratio): space around the image, of the mean's colours
    patches     a part cut out, one of those that they draw
    crop        (height, width) cut out, by chance where `random_crop` is set, from the middle else
    mirror      left to right by a coin
    """

    distort: Distortion | None = None
    expand: tuple[float, float] | None = None
    patches: tuple[Patches, ...] = ()
    warp: Warp | None = None
    crop: tuple[int, int] | None = None
    random_crop: bool = False
    mirror: bool = False
    mean: Mean | None = None
    scale: float = 1.0
    emit: Emit | None = None

    def __call__(
        self, pixels: Pixels, annotations: Sequence[Annotation], random: np.random.Generator
    ) -> tuple[Array, list[Annotation]]:
        """The image as float32, and what is to be seen in it."""
        if self.distort is not None:
            pixels = self.distort(pixels, random)
        view = WHOLE
        if self.expand is not None and random.random() <= self.expand[0] and self.expand[1] > 1:
            fill = (
                self.mean
                if self.mean is not None and self.mean.shape[1:] == (1, 1)
                else np.zeros((len(pixels), 1, 1), np.float32)
            )
            pixels, view = expanded(pixels, random.uniform(1, self.expand[1]), fill, random)
        seen = viewed(annotations, view, None)
        patch = self._patch(seen, random)
        if patch is not None:
            pixels, seen = _cut(pixels, patch), viewed(seen, patch, self.emit)
        if self.warp is not None:
            pixels = self.warp(pixels, random)
        corner = self._corner(pixels.shape[1:], random)
        coin = bool(self.mirror and random.random() < 0.5)
        return self._prepared(pixels, corner, coin), viewed(seen, self._view(pixels.shape[1:], corner), self.emit, mirror=coin)

    def _patch(self, annotations: Sequence[Annotation], random: np.random.Generator) -> Box | None:
        boxes = [a.box for a in annotations]
        drawn = [box for each in self.patches for box in each.draw(boxes, random)]
        return drawn[int(random.integers(len(drawn)))] if drawn else None

    def _corner(self, size: Shape, random: np.random.Generator) -> tuple[int, int]:
        if self.crop is None:
            return (0, 0)
        spare = [n - c for n, c in zip(size, self.crop, strict=True)]
        if min(spare) < 0:
            raise ArgumentError(
                "the crop is larger than the image",
                given={"crop": self.crop, "image": size},
                required="crop <= size on each axis",
            )
        down, right = (int(random.integers(n + 1)) if self.random_crop else n // 2 for n in spare)
        return down, right

    def _view(self, size: Shape, corner: tuple[int, int]) -> Box:
        height, width = self.crop or size
        (down, right), (rows, columns) = corner, size
        return (right / columns, down / rows, (right + width) / columns, (down + height) / rows)

    def _prepared(self, pixels: Pixels, corner: tuple[int, int], mirror: bool) -> Array:
        (down, right), (height, width) = corner, self.crop or pixels.shape[1:]
        image = pixels.astype(np.float32)
        if self.mean is not None:
            if self.mean.shape[1:] not in ((1, 1), image.shape[1:]) or len(self.mean) not in (1, len(image)):
                raise ArgumentError(
                    "the mean does not fit the image",
                    given={"mean": self.mean.shape, "image": image.shape},
                    required="one number for each channel, or the image's size",
                    hint="mean_value",
                )
            image = image - self.mean
        image = image[:, down : down + height, right : right + width]
        return np.ascontiguousarray((image[:, :, ::-1] if mirror else image) * np.float32(self.scale))


def _cut(pixels: Pixels, patch: Box) -> Pixels:
    height, width = pixels.shape[1:]
    x1, y1, x2, y2 = (min(max(v, 0), 1) for v in patch)
    left, above = min(int(x1 * width), width - 1), min(int(y1 * height), height - 1)
    return pixels[:, above : above + max(int((y2 - y1) * height), 1), left : left + max(int((x2 - x1) * width), 1)]


class AnnotatedSource(RecordSource):
    """AnnotatedDatum records: images, and all boxes of a batch as one table (1, 1, boxes, 8).

    A row is image, label, instance, xmin, ymin, xmax, ymax, difficult; the single row of a batch without boxes is -1.
    `record` is the class of the message.
    """

    message = "AnnotatedDatum"

    def __init__(
        self,
        database: Database,
        record: type[Any],
        *,
        changes: Changes,
        color: bool | None = None,
        rand_skip: int = 0,
        shuffle: bool = False,
    ) -> None:
        super().__init__(database, color=color, rand_skip=rand_skip, shuffle=shuffle, record=record)
        self.changes = changes

    def shapes(self) -> tuple[Shape, ...]:
        return (self._at(0)[0].shape, (1, 1, 8))

    def batch(self, size: int) -> tuple[Array, ...]:
        images, tables = [], []
        for item in range(size):
            image, rows = self._at(self.position + item)
            images.append(image)
            tables.append(np.concatenate([np.full((len(rows), 1), item, np.float32), rows], axis=1))
        self.position += size
        table = np.concatenate(tables)
        return self.stacked(images), (table if len(table) else np.full((1, 8), -1, np.float32))[None, None]

    def parts(self, message: Any, random: np.random.Generator) -> Sequence[Array]:
        pixels = read_datum(message.datum, color=self.color)
        if pixels.dtype != np.uint8:
            pixels = np.clip(np.rint(pixels), 0, 255).astype(np.uint8)
        image, seen = self.changes(pixels, _annotations(message), random)
        rows = [(a.label, a.instance, *a.box, a.difficult) for a in seen]
        return image, np.array(rows, np.float32).reshape(-1, 7)


def _annotations(message: Any) -> list[Annotation]:
    return [
        Annotation(
            group.group_label,
            each.instance_id,
            (each.bbox.xmin, each.bbox.ymin, each.bbox.xmax, each.bbox.ymax),
            each.bbox.difficult,
        )
        for group in message.annotation_group
        for each in group.annotation
    ]
