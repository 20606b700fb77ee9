"""Pixels as Caffe's data layers have them: bytes (C, H, W), blue first, decoded from files and from databases' records."""

from __future__ import annotations

import io
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ModelFileError
from .images import MAX_PIXELS, opened
from .opencv_resize import bilinear

Pixels = npt.NDArray[np.uint8]


def read_pixels(path: str | PathLike[str], *, color: bool = True, size: tuple[int, int] | None = None) -> Pixels:
    """An image file as bytes (C, H, W): blue, green, red, or one grey channel; at `size` (height, width) if given.

    Resized as OpenCV does it, bilinearly. Raises ModelFileError as `load_image` does.
    """
    with opened(path) as picture:
        pixels = _as_bytes(picture, color)
    if size is not None and pixels.shape[1:] != size:
        pixels = resize_pixels(pixels, size)
    return pixels


def resize_pixels(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """Bytes (C, H, W) at another size (height, width), as OpenCV's bilinear resize gives them."""
    height, width = size
    return np.ascontiguousarray(bilinear(pixels.transpose(1, 2, 0), width, height).transpose(2, 0, 1))


def decode_pixels(data: bytes, *, color: bool | None = None) -> Pixels:
    """An encoded image as bytes (C, H, W), blue first: of three channels or of one if `color` says so, else as it is.

    Grey of a coloured image is Pillow's, which may differ from OpenCV's by one. Raises ModelFileError: no image.
    """
    from PIL import Image as pillow

    try:
        with pillow.open(io.BytesIO(data)) as picture:
            if picture.width * picture.height > MAX_PIXELS:
                raise ModelFileError(
                    "an encoded image is too large",
                    given={"width": picture.width, "height": picture.height},
                    required=f"width * height <= {MAX_PIXELS}: {picture.width * picture.height}",
                )
            return _as_bytes(picture, picture.mode not in ("1", "L", "LA") if color is None else color)
    except (OSError, SyntaxError, ValueError, pillow.DecompressionBombError, pillow.DecompressionBombWarning) as error:
        raise ModelFileError(
            "an encoded record is no image that can be read", because=str(error), hint="encode images as JPEG or PNG"
        ) from error


def _as_bytes(picture: Any, color: bool) -> Pixels:
    pixels = np.asarray(picture.convert("RGB" if color else "L"), dtype=np.uint8)
    return np.ascontiguousarray(pixels[:, :, ::-1].transpose(2, 0, 1)) if color else pixels[None]
