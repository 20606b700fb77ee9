"""Image files to arrays and to a wanted size. Pillow is imported when a function is called, not before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ArgumentError, ArrayError, ModelFileError

Image = npt.NDArray[np.float32]

MAX_PIXELS = 100_000_000
"""A file may claim to be larger than memory; more pixels than this are refused before anything is decoded."""


def load_image(path: str | PathLike[str], *, color: bool = True) -> Image:
    """An image file as float32 (C, H, W) from 0 to 1: red, green, blue, or one grey channel with `color=False`.

    Transparency is put on white and the camera's rotation is applied. Raises ModelFileError for a file that is missing, is
    no image, is cut off, or has more than MAX_PIXELS pixels.
    """
    from PIL import Image as pillow
    from PIL import ImageOps

    with opened(path) as file:
        picture = ImageOps.exif_transpose(file)
        if "A" in picture.getbands() or "transparency" in picture.info:
            layer = picture.convert("RGBA")
            picture = pillow.alpha_composite(pillow.new("RGBA", layer.size, "white"), layer)
        return _normalised(picture, color)


@contextmanager
def opened(path: str | PathLike[str]) -> Iterator[Any]:
    """An image file as Pillow has it. Whatever goes wrong while it is open is a ModelFileError, as `load_image` lists them."""
    from PIL import Image as pillow

    file = Path(path)
    try:
        with pillow.open(file) as picture:
            if picture.width * picture.height > MAX_PIXELS:
                raise ModelFileError(
                    "the image is too large",
                    given={"path": str(file), "width": picture.width, "height": picture.height},
                    required=f"width * height <= {MAX_PIXELS}: {picture.width * picture.height}",
                    hint="make it smaller with an image program",
                )
            yield picture
    except FileNotFoundError as error:
        raise ModelFileError("there is no such image file", given={"path": str(file)}, hint="check the path") from error
    except (OSError, SyntaxError, ValueError, pillow.DecompressionBombError, pillow.DecompressionBombWarning) as error:
        raise ModelFileError(
            "not an image that can be read", given={"path": str(file)}, because=str(error), hint="a PNG or JPEG file"
        ) from error


def _normalised(picture: Any, color: bool) -> Image:
    """Pixels from 0 to 1. Grey files of 16 bits keep all of them; everything else has 8 bits a channel."""
    if picture.mode.startswith("I"):
        grey = np.asarray(picture, dtype=np.float32)[None] / np.float32(65535)
        return np.repeat(grey, 3, axis=0) if color else grey
    pixels = np.asarray(picture.convert("RGB" if color else "L"), dtype=np.float32) / np.float32(255)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)) if color else pixels[None]


def resize(image: Image, size: tuple[int, int], *, method: str = "bilinear") -> Image:
    """An image (C, H, W) at `size` (height, width), any value range; shrinking averages, so nothing flickers.

    `method` is nearest, bilinear, bicubic or lanczos.
    """
    from PIL import Image as pillow

    methods = {name: getattr(pillow.Resampling, name.upper()) for name in ("nearest", "bilinear", "bicubic", "lanczos")}
    if image.ndim != 3:
        raise ArrayError("one image is resized at a time", given={"image": image}, required=f"(C, H, W): {image.ndim} axes")
    if method not in methods or min(size) < 1:
        raise ArgumentError(
            "no such way to resize",
            given={"size": size, "method": method},
            required=f"size >= 1 on both axes, method one of {' '.join(methods)}",
            hint='size=(224, 224), method="bilinear"',
        )
    if image.shape[1:] == tuple(size):
        return image.astype(np.float32)
    height, width = size
    planes = [pillow.fromarray(np.ascontiguousarray(plane, dtype=np.float32)) for plane in image]
    return np.stack([np.asarray(plane.resize((width, height), methods[method]), dtype=np.float32) for plane in planes])
