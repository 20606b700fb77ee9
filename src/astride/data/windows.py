"""Windows cut out of images, with objects in a part of them: what R-CNN learns from."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike

import numpy as np
import numpy.typing as npt

from ..errors import ArgumentError, ModelFileError
from ..plan import Shape
from .image_list import read_lines
from .pixels import Pixels, read_pixels, resize_pixels
from .samples import Array

SOURCE = "Caffe, src/caffe/layers/window_data_layer.cpp"
Mean = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Window:
    """A box (x1, y1, x2, y2) in an image, both corners inside; label 0 is background."""

    image: int
    label: int
    box: tuple[int, int, int, int]


@dataclass(frozen=True)
class Cut:
    """Where a box, with its surroundings, comes to lie: pixels `box` of the image, warped to `size` and put at `place`."""

    box: tuple[int, int, int, int]
    size: tuple[int, int]
    place: tuple[int, int]


def cut(box: tuple[int, int, int, int], image: tuple[int, int], crop: int, context: int, square: bool, mirror: bool) -> Cut:
    """How a box of an image (height, width) becomes crop x crop pixels, `context` of them around it on every side."""
    x1, y1, x2, y2 = box
    if context == 0 and not square:
        return Cut(box, (crop, crop), (0, 0))
    scale = crop / (crop - 2 * context)
    half_h, half_w = (y2 - y1 + 1) / 2, (x2 - x1 + 1) / 2
    center_x, center_y = x1 + half_w, y1 + half_h
    if square:
        half_h = half_w = max(half_h, half_w)
    x1, x2 = _round(center_x - half_w * scale), _round(center_x + half_w * scale)
    y1, y2 = _round(center_y - half_h * scale), _round(center_y + half_h * scale)
    wide, high = x2 - x1 + 1, y2 - y1 + 1
    left, above = max(0, -x1), max(0, -y1)
    right, below = max(0, x2 - image[1] + 1), max(0, y2 - image[0] + 1)
    x1, x2, y1, y2 = x1 + left, x2 - right, y1 + above, y2 - below
    scale_x, scale_y = crop / wide, crop / high
    pad_w = _round((right if mirror else left) * scale_x)
    pad_h = _round(above * scale_y)
    width, height = _round((x2 - x1 + 1) * scale_x), _round((y2 - y1 + 1) * scale_y)
    return Cut((x1, y1, x2, y2), (min(height, crop - pad_h), min(width, crop - pad_w)), (pad_h, pad_w))


def _round(value: float) -> int:
    """C's round: halves away from zero."""
    return int(np.floor(abs(value) + 0.5)) * (-1 if value < 0 else 1)


class WindowSource:
    """Batches of windows drawn by chance: first background, then a share `foreground` of objects.

    A window whose overlap with an object is `above` or more is one; one below `below` is background; others are left out.
    The mean is subtracted where it lies under the window's middle; what is outside the image stays 0.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        crop: int,
        above: float = 0.5,
        below: float = 0.5,
        foreground: float = 0.25,
        context: int = 0,
        square: bool = False,
        mirror: bool = False,
        scale: float = 1.0,
        mean: Mean | None = None,
        root: str = "",
        keep: bool = False,
    ) -> None:
        if crop < 1 or crop - 2 * context < 1 or not 0 <= foreground <= 1:
            raise ArgumentError(
                "windows have no such size",
                given={"crop_size": crop, "context_pad": context, "fg_fraction": foreground},
                required=f"crop_size - 2 * context_pad >= 1: {crop - 2 * context}; 0 <= fg_fraction <= 1",
                because=SOURCE,
                hint="crop_size: 227 context_pad: 16",
            )
        self.crop, self.foreground, self.context, self.square = crop, foreground, context, square
        self.mirror, self.scale, self.mean, self.root, self.keep = mirror, scale, mean, root, keep
        self.images, self.channels, windows = read_windows(path)
        self.objects = [w for w, overlap in windows if overlap >= above]
        self.background = [Window(w.image, 0, w.box) for w, overlap in windows if overlap < min(below, above)]
        self.position, self.seed = 0, 0
        self._kept: dict[int, Pixels] = {}

    def reseed(self, seed: int) -> None:
        """Let chance follow from another seed."""
        self.seed = seed

    def shapes(self) -> tuple[Shape, ...]:
        return (self.channels, self.crop, self.crop), ()

    def reset(self, position: int = 0) -> None:
        self.position = position

    def batch(self, size: int) -> tuple[Array, ...]:
        random = np.random.default_rng([self.seed, self.position])
        self.position += size
        objects = int(np.float32(size) * np.float32(self.foreground))
        chosen = [*self._drawn(self.background, size - objects, random), *self._drawn(self.objects, objects, random)]
        images = np.stack([self.window(w, bool(self.mirror and random.integers(2))) for w in chosen])
        return images, np.array([w.label for w in chosen], np.float32)

    def _drawn(self, windows: list[Window], count: int, random: np.random.Generator) -> list[Window]:
        if count and not windows:
            raise ArgumentError(
                "there are no windows of a kind that is to be drawn",
                given={"objects": len(self.objects), "background": len(self.background)},
                required="at least one of each, for 0 < fg_fraction < 1",
                because=SOURCE,
            )
        return [windows[int(i)] for i in random.integers(len(windows), size=count)] if count else []

    def window(self, window: Window, mirrored: bool) -> Array:
        """A window's pixels (C, crop, crop), prepared."""
        pixels = self._image(window.image)
        laid = cut(window.box, pixels.shape[1:], self.crop, self.context, self.square, mirrored)
        x1, y1, x2, y2 = laid.box
        if not (0 <= x1 <= x2 < pixels.shape[2] and 0 <= y1 <= y2 < pixels.shape[1]):
            raise ModelFileError(
                "a window lies outside its image",
                given={"image": self.images[window.image], "x1, y1, x2, y2": laid.box, "height, width": pixels.shape[1:]},
                required="0 <= x1 <= x2 < width, 0 <= y1 <= y2 < height",
                because=SOURCE,
            )
        warped = resize_pixels(pixels[:, y1 : y2 + 1, x1 : x2 + 1], laid.size).astype(np.float32)
        if mirrored:
            warped = warped[:, :, ::-1]
        down, right = laid.place
        height, width = laid.size
        if self.mean is not None:
            warped = warped - self._mean(down, right, height, width)
        result = np.zeros((self.channels, self.crop, self.crop), np.float32)
        result[:, down : down + height, right : right + width] = warped * np.float32(self.scale)
        return result

    def _mean(self, down: int, right: int, height: int, width: int) -> Mean:
        assert self.mean is not None
        if self.mean.shape[1:] == (1, 1):
            return self.mean
        off = (self.mean.shape[2] - self.crop) // 2
        part = self.mean[:, off + down : off + down + height, off + right : off + right + width]
        if off < 0 or part.shape[1:] != (height, width):
            raise ArgumentError(
                "the mean is smaller than a window",
                given={"mean": self.mean.shape, "crop_size": self.crop},
                required=f"a square of at least {self.crop} pixels",
                because=SOURCE,
            )
        return part

    def _image(self, index: int) -> Pixels:
        if index in self._kept:
            return self._kept[index]
        pixels = read_pixels(self.root + self.images[index], color=self.channels != 1)
        if self.keep:
            self._kept[index] = pixels
        return pixels


def read_windows(path: str | PathLike[str]) -> tuple[list[str], int, list[tuple[Window, float]]]:
    """A window file: the images' names, their channels, and each window with its overlap.

    For every image: `# index`, the file, channels, height, width, the number of windows, and for each of them
    class, overlap, x1, y1, x2, y2. Raises ModelFileError where it is otherwise.
    """
    words = iter(word for line in read_lines(path, "window file") for word in line.split())
    images: list[str] = []
    windows: list[tuple[Window, float]] = []
    channels = 3
    try:
        for word in words:
            if word != "#" or int(next(words)) != len(images):
                raise ValueError(f"image {len(images)} does not begin with # {len(images)}")
            images.append(next(words))
            channels, _, _, count = (int(next(words)) for _ in range(4))
            for _ in range(count):
                label, overlap = int(next(words)), float(next(words))
                x1, y1, x2, y2 = (int(next(words)) for _ in range(4))
                windows.append((Window(len(images) - 1, label, (x1, y1, x2, y2)), overlap))
    except (ValueError, StopIteration, RuntimeError) as error:
        raise ModelFileError(
            "not a window file", given={"path": str(path), "images read": len(images)}, because=str(error) or "it ends early"
        ) from error
    if not images or channels not in (1, 3):
        raise ModelFileError(
            "a window file has images of one or three channels",
            given={"path": str(path), "images": len(images), "channels": channels},
            because=SOURCE,
        )
    return images, channels, windows
