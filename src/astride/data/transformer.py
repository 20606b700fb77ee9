"""From an image to a net's input: channel order, scales, mean, crop, mirror, in the order of Caffe's own tools.

`caffe.io.Transformer` and a data layer's `transform_param` are both said in these words: the first uses size, channel_swap,
raw_scale, mean and scale; the second mean, crop, mirror and scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ArgumentError, ArrayError
from .images import resize

Image = npt.NDArray[np.float32]
SOURCE = "Caffe, src/caffe/data_transformer.cpp and python/caffe/io.py"


@dataclass(frozen=True, eq=False)
class Transformer:
    """Steps from left to right, each only if asked for:

    resize to `size` (height, width), or so that the shorter side is `shorter_side`; reorder channels (`channel_swap=(2, 1, 0)`
    makes BGR of RGB); times `raw_scale` (255 for nets trained on bytes); minus `mean`; crop to `crop` (height, width) from
    the centre, or anywhere with `random=True`; mirror left-right (`mirror=True`, or by a coin with `random=True` or
    `coin=True`); times `scale`.

    `mean` is (C, 1, 1), (C, H, W) of the image before the crop, or of the crop; `load_mean` makes one. A mean larger than the
    image is an error unless `crop_mean=True`, which takes its centre.
    """

    size: tuple[int, int] | None = None
    shorter_side: int | None = None
    channel_swap: tuple[int, ...] | None = None
    raw_scale: float = 1.0
    mean: Image | None = None
    crop_mean: bool = False
    crop: tuple[int, int] | None = None
    mirror: bool = False
    scale: float = 1.0
    random: bool = False
    coin: bool = False

    def __call__(self, image: npt.NDArray[Any], rng: np.random.Generator | None = None) -> Image:
        """The net's input (C, H, W) of one image (C, H, W). `rng` is needed where something is left to chance."""
        if image.ndim != 3:
            required = f"(C, H, W): {image.ndim} axes"
            raise ArrayError(
                "one image is transformed at a time", given={"image": image}, required=required, hint="batch(images)"
            )
        by_coin = self.mirror and (self.random or self.coin)
        if (self.random or by_coin) and rng is None:
            raise ArgumentError(
                "chance needs a generator", given={"random": self.random, "coin": self.coin}, hint="rng=np.random.default_rng(0)"
            )
        image = self._resized(np.asarray(image, dtype=np.float32))
        if self.channel_swap is not None:
            image = self._swapped(image, self.channel_swap)
        image = image * np.float32(self.raw_scale)
        mean = self._fitting_mean(image.shape)
        cropped_first = mean is not None and self.crop == mean.shape[1:] != image.shape[1:]
        if mean is not None and not cropped_first:
            image = image - mean
        if self.crop is not None:
            image = _cropped(image, self.crop, rng if self.random else None)
        if mean is not None and cropped_first:
            image = image - mean
        if self.mirror and (not by_coin or (rng is not None and rng.random() < 0.5)):
            image = image[:, :, ::-1]
        return np.ascontiguousarray(image * np.float32(self.scale))

    def batch(self, images: npt.NDArray[np.float32], rng: np.random.Generator | None = None) -> npt.NDArray[np.float32]:
        """The same for each image of (N, C, H, W)."""
        return np.stack([self(image, rng) for image in images])

    def _resized(self, image: Image) -> Image:
        if self.size is not None:
            return resize(image, self.size)
        if self.shorter_side is not None:
            height, width = image.shape[1:]
            factor = self.shorter_side / min(height, width)
            return resize(image, (max(1, round(height * factor)), max(1, round(width * factor))))
        return image

    def _swapped(self, image: Image, order: tuple[int, ...]) -> Image:
        if sorted(order) != list(range(len(image))):
            raise ArgumentError(
                "channel_swap names each channel once",
                given={"channel_swap": order, "image": image},
                required=f"a permutation of {tuple(range(len(image)))}: {order}",
                hint="channel_swap=(2, 1, 0) for three channels",
            )
        return image[list(order)]

    def _fitting_mean(self, shape: tuple[int, ...]) -> Image | None:
        """The mean if it can be subtracted from an image of this shape or from its crop."""
        mean = self.mean
        if mean is None:
            return None
        fits = (shape[1:], (1, 1)) if self.crop is None else (shape[1:], (1, 1), tuple(self.crop))
        if len(mean) in (1, shape[0]):
            if mean.shape[1:] in fits:
                return mean
            wanted = self.crop or (shape[1], shape[2])
            if self.crop_mean and mean.shape[1] >= wanted[0] and mean.shape[2] >= wanted[1]:
                return _cropped(mean, wanted, None)
        raise ArrayError(
            "the mean does not fit the image",
            given={"mean": mean, "image": shape},
            required=f"one number per channel, or the image's own size: {mean.shape} against {shape}",
            because=SOURCE,
            hint="crop_mean=True takes the centre of the mean; mean.mean((1, 2), keepdims=True), or "
            "--mean 104,117,123 on the command line, one number per channel",
        )


def _cropped(image: Image, size: tuple[int, int], rng: np.random.Generator | None) -> Image:
    (height, width), (rows, columns) = image.shape[1:], size
    if not (0 < rows <= height and 0 < columns <= width):
        raise ArgumentError(
            "the crop is larger than the image",
            given={"crop": size, "image": image},
            required=f"0 < crop <= size, on axis H: {rows} <= {height}, on axis W: {columns} <= {width}",
            because=SOURCE,
            hint=f"crop=({min(rows, height)}, {min(columns, width)}), or a larger size=; on the command line --crop and --size",
        )
    down, right = height - rows, width - columns
    top, left = (down // 2, right // 2) if rng is None else (int(rng.integers(down + 1)), int(rng.integers(right + 1)))
    return image[:, top : top + rows, left : left + columns]
