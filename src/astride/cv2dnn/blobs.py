"""Images to the blobs networks take, and back: `blobFromImage` and its relatives, with every flag."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..data.opencv_resize import bilinear
from ..errors import ArgumentError, ArrayError
from ..settings import free_memory, readable_bytes

Array = npt.NDArray[Any]
SOURCE = "OpenCV 4.14, modules/dnn/src/dnn_utils.cpp"

CV_8U, CV_32F = 0, 5
"""OpenCV's numbers of the two depths a blob may have."""
DNN_LAYOUT_UNKNOWN, DNN_LAYOUT_ND, DNN_LAYOUT_NCHW, DNN_LAYOUT_NCDHW, DNN_LAYOUT_NHWC, DNN_LAYOUT_NDHWC, DNN_LAYOUT_PLANAR = (
    range(7)
)
DNN_PMODE_NULL, DNN_PMODE_CROP_CENTER, DNN_PMODE_LETTERBOX = range(3)

MAX_SIDE = 1 << 16


@dataclass
class Image2BlobParams:
    """How images become a blob: out = (image - mean) * scalefactor, after resizing.

    scalefactor   one number, or one a channel
    size          (width, height); (0, 0) leaves the images at the size of the first
    mean          one number a channel, in the order of the blob's channels: red first where `swapRB`
    swapRB        exchange the first and the third channel
    ddepth        CV_32F (5, float32) or CV_8U (0, uint8: then no mean and no scale); NumPy's dtypes are understood too
    datalayout    DNN_LAYOUT_NCHW or DNN_LAYOUT_NHWC
    paddingmode   DNN_PMODE_NULL stretches; CROP_CENTER fills the size and cuts; LETTERBOX fits and adds a border
    borderValue   of the letterbox, one number a channel of the image
    """

    scalefactor: Any = (1.0, 1.0, 1.0, 1.0)
    size: Any = (0, 0)
    mean: Any = (0.0, 0.0, 0.0, 0.0)
    swapRB: bool = False
    ddepth: Any = CV_32F
    datalayout: int = DNN_LAYOUT_NCHW
    paddingmode: int = DNN_PMODE_NULL
    borderValue: Any = (0.0, 0.0, 0.0, 0.0)

    def blobRectToImageRect(self, rBlob: Sequence[float], size: Sequence[int]) -> tuple[int, int, int, int]:
        """A box (x, y, width, height) found in the blob, in the image of `size` (width, height) it was made from."""
        (boxes,) = self.blobRectsToImageRects([rBlob], size).tolist()
        return tuple(boxes)

    def blobRectsToImageRects(self, rBlob: Any, size: Sequence[int]) -> Array:
        """The same for several, (N, 4) int32."""
        boxes = np.asarray(rBlob, dtype=np.float64).reshape(-1, 4).astype(np.float32)
        image, blob = np.array(_size(size, "size"), np.float32), np.array(_size(self.size, "params.size"), np.float32)
        if (image == blob).all():
            return boxes.astype(np.int32)
        if self.paddingmode == DNN_PMODE_NULL:
            return (boxes * np.tile(image, 2) / np.tile(blob, 2)).astype(np.int32)
        # In float32, as OpenCV has it; only the corner of what was cut is float64 there.
        cuts = self.paddingmode == DNN_PMODE_CROP_CENTER
        growth = (blob / image).max() if cuts else (blob / image).min()
        sides = (boxes[:, 2:] / growth).astype(np.int32)
        if cuts:
            corners = (boxes[:, :2] + 0.5 * (image * growth - blob).astype(np.float64)) / float(growth)
        else:
            corners = (boxes[:, :2] - (blob - np.trunc(image * growth)) // 2) / growth
        return np.concatenate([corners.astype(np.int32), sides], axis=1)


def blobFromImage(
    image: Any,
    scalefactor: float = 1.0,
    size: Any = (0, 0),
    mean: Any = (0.0, 0.0, 0.0, 0.0),
    swapRB: bool = False,
    crop: bool = False,
    ddepth: Any = CV_32F,
) -> Array:
    """An image as a network takes it: resized, channels first, minus `mean`, times `scalefactor`.

    Shapes    image (H, W) or (H, W, C), C 1, 3 or 4 -> blob (1, C, height, width)
              size is (width, height), (0, 0) for the image's own
    Numbers   any real dtype -> float32, or uint8 by `ddepth=0`; bytes are resized in whole numbers
    Edges     `crop=True` keeps the image's proportions and cuts the centre; `mean` is in the blob's order, red first where
              `swapRB`; one number in it stands for the first channel alone, as in OpenCV
    Raises    ArrayError: no image of real numbers; ArgumentError: a size, depth or mean that cannot be
    Source    OpenCV 4.14, modules/dnn/src/dnn_utils.cpp; bytes give equal blobs (tests/live)
    """
    return blobFromImages([image], scalefactor, size, mean, swapRB, crop, ddepth)


def blobFromImages(
    images: Any,
    scalefactor: float = 1.0,
    size: Any = (0, 0),
    mean: Any = (0.0, 0.0, 0.0, 0.0),
    swapRB: bool = False,
    crop: bool = False,
    ddepth: Any = CV_32F,
) -> Array:
    """The same for several images: (N, C, height, width). Without a size all get that of the first."""
    mode = DNN_PMODE_CROP_CENTER if crop else DNN_PMODE_NULL
    factors = (scalefactor,) * 4
    return blobFromImagesWithParams(images, Image2BlobParams(factors, size, mean, swapRB, ddepth, DNN_LAYOUT_NCHW, mode))


def blobFromImageWithParams(image: Any, param: Image2BlobParams | None = None) -> Array:
    """One image by the parameters of an `Image2BlobParams`."""
    return blobFromImagesWithParams([image], param)


def blobFromImagesWithParams(images: Any, param: Image2BlobParams | None = None) -> Array:
    """Several images by the parameters of an `Image2BlobParams`: (N, C, H, W), or (N, H, W, C) by its layout."""
    param = param or Image2BlobParams()
    pictures = _images(images)
    wanted = _size(param.size, "size")
    if wanted == (0, 0):
        wanted = (pictures[0].shape[1], pictures[0].shape[0])
    channels = pictures[0].shape[2]
    factors, means = _scalar("scalefactor", param.scalefactor, channels), _scalar("mean", param.mean, channels)
    depth = _depth(param.ddepth)
    if param.datalayout not in (DNN_LAYOUT_NCHW, DNN_LAYOUT_NHWC):
        raise ArgumentError(
            "blobs have no such layout",
            given={"datalayout": param.datalayout},
            required=f"DNN_LAYOUT_NCHW ({DNN_LAYOUT_NCHW}) or DNN_LAYOUT_NHWC ({DNN_LAYOUT_NHWC})",
            because=SOURCE,
        )
    if depth == np.uint8 and ((factors != 1).any() or means.any()):
        raise ArgumentError(
            "bytes are neither scaled nor have a mean taken off",
            given={"ddepth": param.ddepth, "scalefactor": param.scalefactor, "mean": param.mean},
            required="scalefactor 1 and mean 0 for ddepth CV_8U",
            because=SOURCE,
            hint="ddepth=5 (CV_32F)",
        )
    _check_memory(len(pictures) * channels * wanted[0] * wanted[1] * 4)
    fitted = [_fit(picture, wanted, param) for picture in pictures]
    swap = [2, 1, 0, 3][:channels] if param.swapRB and channels > 2 else list(range(channels))
    blob = np.stack([_converted(picture, depth)[:, :, swap] for picture in fitted])
    if depth == np.float32:
        blob -= means.astype(np.float32)
        # Channels last are multiplied in float64, channels first in float32.
        blob = blob * factors if param.datalayout == DNN_LAYOUT_NHWC else blob * factors.astype(np.float32)
    if param.datalayout == DNN_LAYOUT_NCHW:
        blob = blob.transpose(0, 3, 1, 2)
    return np.ascontiguousarray(blob, dtype=depth)


def imagesFromBlob(blob_: Any) -> tuple[Array, ...]:
    """The images of a blob (N, C, H, W) float32: arrays (H, W, C), or (H, W) where C is 1. Nothing else is undone."""
    blob = np.asarray(blob_)
    if blob.ndim != 4 or blob.dtype != np.float32:
        raise ArrayError(
            "no blob of images", given={"blob": blob}, required=f"(N, C, H, W) float32: {blob.ndim} axes, {blob.dtype}"
        )
    images = np.ascontiguousarray(blob.transpose(0, 2, 3, 1))
    return tuple(image[:, :, 0] if image.shape[2] == 1 else image for image in images)


# Steps


def _fit(image: Array, size: tuple[int, int], param: Image2BlobParams) -> Array:
    """The image at the blob's size, stretched, cut or with a border."""
    (width, height), (rows, columns) = size, image.shape[:2]
    if (columns, rows) == size:
        return image
    if param.paddingmode == DNN_PMODE_NULL:
        return bilinear(image, width, height)
    grows = np.float32(width) / np.float32(columns), np.float32(height) / np.float32(rows)
    if param.paddingmode == DNN_PMODE_CROP_CENTER:
        growth = float(max(grows))
        grown = bilinear(image, round(columns * growth), round(rows * growth), growth)
        top, left = int(0.5 * (grown.shape[0] - height)), int(0.5 * (grown.shape[1] - width))
        return grown[top : top + height, left : left + width]
    if param.paddingmode != DNN_PMODE_LETTERBOX:
        raise ArgumentError(
            "there is no such padding mode",
            given={"paddingmode": param.paddingmode},
            required=f"DNN_PMODE_NULL, CROP_CENTER or LETTERBOX: one of {(0, 1, 2)}",
            because=SOURCE,
        )
    growth32 = min(grows)
    inner = max(int(np.float32(columns) * growth32), 1), max(int(np.float32(rows) * growth32), 1)
    framed = np.empty((height, width, image.shape[2]), image.dtype)
    framed[...] = _scalar("borderValue", param.borderValue, image.shape[2])
    top, left = (height - inner[1]) // 2, (width - inner[0]) // 2
    framed[top : top + inner[1], left : left + inner[0]] = bilinear(image, *inner)
    return framed


def _converted(image: Array, depth: np.dtype[Any]) -> Array:
    if depth == np.uint8 and image.dtype != np.uint8 and image.size and not (image.min() >= 0 and image.max() <= 255):
        raise ArgumentError(
            "values do not fit bytes",
            given={"image": image, "least": float(image.min()), "greatest": float(image.max())},
            required="0 <= value <= 255 for ddepth CV_8U",
            hint="ddepth=5 (CV_32F)",
        )
    return image.astype(depth)


# What callers hand in


def _check_memory(count: int) -> None:
    """Refuse what cannot be held: the blob is made from a copy of its size."""
    free = free_memory()
    if free is not None and 2 * count > free:
        raise ArgumentError(
            "the blob needs more memory than is free",
            given={"bytes": readable_bytes(count), "free": readable_bytes(free)},
            required=f"2 * bytes <= free: {2 * count} <= {free}",
            hint="a smaller size=, fewer images at a time",
        )


def _images(images: Any) -> list[Array]:
    if isinstance(images, np.ndarray) and images.ndim < 3:
        images = [images]
    pictures = [_image(image) for image in images]
    if not pictures or len({picture.shape[2] for picture in pictures}) > 1:
        raise ArrayError(
            "a blob is made of at least one image, all with as many channels",
            given={"images": [picture.shape for picture in pictures]},
            required="shapes (H, W, C) of one C",
            because=SOURCE,
        )
    return pictures


def _image(image: Any) -> Array:
    if image is None:
        raise ArrayError(
            "there is no image",
            given={"image": None},
            because="cv2.imread gives None for a file it cannot read",
            hint="check the path",
        )
    try:
        picture = np.asarray(image)
    except ValueError:  # rows of several lengths
        picture = np.asarray(None)
    if picture.ndim == 2:
        picture = picture[:, :, None]
    if picture.ndim != 3 or picture.shape[2] not in (1, 3, 4) or picture.dtype.kind not in "iuf" or not picture.size:
        raise ArrayError(
            "not an image",
            given={"image": picture if isinstance(image, np.ndarray) else type(image).__name__},
            required="(H, W) or (H, W, C) of real numbers, C 1, 3 or 4, no side 0",
            because=SOURCE,
        )
    return picture


def _size(size: Any, name: str) -> tuple[int, int]:
    """(width, height); nothing and (0, 0) say that it is left as it is."""
    try:
        width, height = (0, 0) if size is None else size
        given = int(width), int(height)
        whole = given == (width, height)
    except (TypeError, ValueError):
        whole, given = False, (-1, -1)
    if not whole or (given != (0, 0) and not all(1 <= side <= MAX_SIDE for side in given)):
        raise ArgumentError(
            f"{name} is no size",
            given={name: size},
            required=f"(width, height), whole numbers from 1 to {MAX_SIDE}, or (0, 0) for the image's own",
            hint=f"{name}=(300, 300)",
        )
    return given


def _scalar(name: str, value: Any, channels: int) -> Array:
    """OpenCV's scalar: up to four numbers, those not given are 0; a lone number is the first of them."""
    try:
        numbers = np.atleast_1d(np.asarray(value, dtype=np.float64)).reshape(-1)
    except (TypeError, ValueError):
        numbers = np.zeros(0)
    if not 1 <= len(numbers) <= 4 or not np.isfinite(numbers).all():
        raise ArgumentError(
            f"{name} is no scalar",
            given={name: value},
            required="one to four finite numbers",
            because=SOURCE,
            hint=f"{name}=(104, 117, 123)",
        )
    return np.concatenate([numbers, np.zeros(4 - len(numbers))])[:channels]


def _depth(ddepth: Any) -> np.dtype[Any]:
    depths: dict[Any, np.dtype[Any]] = {CV_8U: np.dtype(np.uint8), CV_32F: np.dtype(np.float32)}
    try:
        return depths[ddepth] if isinstance(ddepth, int) else {d: d for d in depths.values()}[np.dtype(ddepth)]
    except (KeyError, TypeError):
        raise ArgumentError(
            "a blob has no such depth",
            given={"ddepth": ddepth},
            required="CV_32F (5) or CV_8U (0)",
            because=SOURCE,
            hint="ddepth=5",
        ) from None
