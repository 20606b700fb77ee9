"""caffe.io: images, blobs and data as arrays and as messages, and what lies between an image and a network's input.

Sizes and orders are Caffe's: an image is (H, W, K), red before blue, from 0 to 1; a network's input is (K, H, W).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from ..data.images import opened
from ..errors import ArgumentError, ArrayError
from ._resize import resize
from .proto import caffe_pb2

Array = npt.NDArray[Any]
LEGACY = ("num", "channels", "height", "width")


# Messages


def blobproto_to_array(blob: Any, return_diff: bool = False) -> Array:
    """A BlobProto's data, or its diff, as float64: four axes where it has the old sizes, else the shape it says."""
    single, double = (blob.diff, blob.double_diff) if return_diff else (blob.data, blob.double_data)
    values = np.array(double if len(double) else single, dtype=np.float64)
    old = any(blob.HasField(name) for name in LEGACY)
    return _shaped(values, [getattr(blob, name) for name in LEGACY] if old else blob.shape.dim)


def _shaped(values: Array, shape: Iterable[int]) -> Array:
    """Numbers in the shape that a message says. Raises ValueError where it has another count."""
    sizes = tuple(int(size) for size in shape)
    count = 1
    for size in sizes:
        count *= size
    if min(sizes, default=0) < 0 or values.size != count:
        raise ArgumentError(
            "the message has another number of values than its shape",
            given={"shape": sizes, "values": values.size},
            required=f"as many values: {values.size} == {count}",
        )
    return values.reshape(sizes)


def array_to_blobproto(arr: Any, diff: Any = None) -> Any:
    """A BlobProto of an array of any shape, with a diff of the same shape if one is given."""
    array = np.asarray(arr)
    blob = caffe_pb2.BlobProto()
    blob.shape.dim.extend(array.shape)
    blob.data.extend(array.astype(float).ravel().tolist())
    if diff is not None:
        gradient = np.asarray(diff)
        if gradient.shape != array.shape:
            raise ArrayError("a blob's diff has the shape of its data", given={"arr": array, "diff": gradient})
        blob.diff.extend(gradient.astype(float).ravel().tolist())
    return blob


def arraylist_to_blobprotovector_str(arraylist: Iterable[Any]) -> bytes:
    """Arrays as a serialised BlobProtoVector."""
    vector = caffe_pb2.BlobProtoVector()
    vector.blobs.extend([array_to_blobproto(array) for array in arraylist])
    return bytes(vector.SerializeToString())


arraylist_to_blobprotovecor_str = arraylist_to_blobprotovector_str
"""The name it had for years."""


def blobprotovector_str_to_arraylist(string: bytes) -> list[Array]:
    """The arrays of a serialised BlobProtoVector."""
    return [blobproto_to_array(blob) for blob in caffe_pb2.BlobProtoVector.FromString(string).blobs]


def array_to_datum(arr: Any, label: int | None = None) -> Any:
    """A Datum of an array (K, H, W): bytes where it is uint8, else numbers. Raises ValueError for other shapes."""
    array = np.asarray(arr)
    if array.ndim != 3:
        raise ArgumentError("Incorrect array shape.", given={"arr": array}, required=f"(K, H, W): {array.ndim} axes")
    datum = caffe_pb2.Datum()
    datum.channels, datum.height, datum.width = array.shape
    if array.dtype == np.uint8:
        datum.data = array.tobytes()
    else:
        datum.float_data.extend(array.astype(float).ravel().tolist())
    if label is not None:
        datum.label = int(label)
    return datum


def datum_to_array(datum: Any) -> Array:
    """A Datum's array (K, H, W): uint8 where it holds bytes, else float64. The label is datum.label."""
    shape = (datum.channels, datum.height, datum.width)
    if len(datum.data):
        if datum.encoded:
            raise ArgumentError(
                "the datum holds an image file, not its pixels",
                given={"encoded": True},
                hint="PIL.Image.open(io.BytesIO(datum.data))",
            )
        return _shaped(np.frombuffer(datum.data, dtype=np.uint8), shape).copy()
    return _shaped(np.array(datum.float_data, dtype=np.float64), shape)


# From an image to a network's input


class Transformer:
    """Steps from an image to an input, set one by one for each input:

    resize to the input's size, transpose, channel_swap, raw_scale, mean, input_scale, in this order; `deprocess` undoes all but
    the size. `inputs` has the shape (N, K, H, W) of each input blob. Images are never modified.
    """

    def __init__(self, inputs: Mapping[str, Sequence[int]]) -> None:
        self.inputs = {name: tuple(shape) for name, shape in inputs.items()}
        self.transpose: dict[str, tuple[int, ...]] = {}
        self.channel_swap: dict[str, tuple[int, ...]] = {}
        self.raw_scale: dict[str, float] = {}
        self.mean: dict[str, Array] = {}
        self.input_scale: dict[str, float] = {}

    def _check(self, in_: str) -> tuple[int, ...]:
        if in_ not in self.inputs:
            raise ArgumentError(f"{in_} is not one of the net inputs: {list(self.inputs)}", given={"in_": in_})
        return self.inputs[in_]

    def preprocess(self, in_: str, data: Any) -> Array:
        """An image (H', W', K) as the input (K, H, W), float32."""
        size = self._check(in_)[2:]
        made = np.array(data, dtype=np.float32)
        if made.shape[:2] != size:
            made = resize_image(made, size)
        if in_ in self.transpose:
            made = made.transpose(self.transpose[in_])
        if in_ in self.channel_swap:
            made = made[list(self.channel_swap[in_])]
        if in_ in self.raw_scale:
            made = made * np.float32(self.raw_scale[in_])
        if in_ in self.mean:
            made = made - self.mean[in_].astype(np.float32)
        if in_ in self.input_scale:
            made = made * np.float32(self.input_scale[in_])
        return made

    def deprocess(self, in_: str, data: Any) -> Array:
        """The image (H, W, K) that an input (K, H, W) came from."""
        self._check(in_)
        made = np.array(data).squeeze()
        if in_ in self.input_scale:
            made = made / made.dtype.type(self.input_scale[in_])
        if in_ in self.mean:
            made = made + self.mean[in_].astype(made.dtype)
        if in_ in self.raw_scale:
            made = made / made.dtype.type(self.raw_scale[in_])
        if in_ in self.channel_swap:
            made = made[np.argsort(self.channel_swap[in_])]
        if in_ in self.transpose:
            made = made.transpose([int(axis) for axis in np.argsort(self.transpose[in_])])
        return made

    def set_transpose(self, in_: str, order: Sequence[int]) -> None:
        """The order of axes: (2, 0, 1) makes (K, H, W) of an image."""
        axes = len(self._check(in_)) - 1
        if len(order) != axes:
            raise ArgumentError(
                "Transpose order needs to have the same number of dimensions as the input.",
                given={"order": tuple(order)},
                required=f"{axes} axes: {len(order)}",
                hint="(2, 0, 1)",
            )
        self.transpose[in_] = tuple(order)

    def set_channel_swap(self, in_: str, order: Sequence[int]) -> None:
        """The order of channels, after the transpose: (2, 1, 0) makes BGR of RGB."""
        channels = self._check(in_)[1]
        if len(order) != channels:
            raise ArgumentError(
                "Channel swap needs to have the same number of dimensions as the input channels.",
                given={"order": tuple(order)},
                required=f"{channels} channels: {len(order)}",
                hint="(2, 1, 0)",
            )
        self.channel_swap[in_] = tuple(order)

    def set_raw_scale(self, in_: str, scale: float) -> None:
        """A factor before the mean is subtracted: 255 for networks trained on bytes, as images here go from 0 to 1."""
        self._check(in_)
        self.raw_scale[in_] = scale

    def set_mean(self, in_: str, mean: Any) -> None:
        """What is subtracted: one number a channel, or an image of the input's size. Raises ValueError for other shapes."""
        shape = self._check(in_)[1:]
        array = np.asarray(mean)
        if array.ndim == 1:
            if array.shape[0] != shape[0]:
                raise ArgumentError(
                    "Mean channels incompatible with input.",
                    given={"mean": array, "input": shape},
                    required=f"channels: {array.shape[0]} == {shape[0]}",
                )
            array = array[:, None, None]
        else:
            sizes = (1, *array.shape) if array.ndim == 2 else array.shape
            if len(sizes) != 3 or sizes != shape:
                raise ArgumentError(
                    "Mean shape invalid" if len(sizes) != 3 else "Mean shape incompatible with input shape.",
                    given={"mean": array, "input": shape},
                    required=f"{shape} or {shape[:1]}: {array.shape}",
                    because="Caffe, python/caffe/io.py",
                    hint=_better_mean(array, shape),
                )
        self.mean[in_] = array

    def set_input_scale(self, in_: str, scale: float) -> None:
        """A factor after all else."""
        self._check(in_)
        self.input_scale[in_] = scale


def _better_mean(mean: Array, shape: tuple[int, ...]) -> str:
    """What to do about a mean of another size than the input, seen from its shape."""
    if mean.ndim == 4 and mean.shape[0] == 1:
        return "mean[0], the blob without its first axis"
    if mean.ndim == 3 and mean.shape[2:] == shape[:1] and mean.shape[0] != shape[0]:
        return "mean.transpose(2, 0, 1), as the mean is stored (H, W, K)"
    if mean.ndim == 3 and mean.shape[:1] == shape[:1]:
        return "mean.mean((1, 2)) subtracts one number a channel; resize_image(mean.transpose(1, 2, 0), size) makes it fit"
    return "a mean of the network's channels"


# Images


def load_image(filename: str | PathLike[str], color: bool = True) -> Array:
    """An image file as float32 (H, W, 3) from 0 to 1, red first; with color=False (H, W, 1).

    As Caffe's: transparency is dropped, a camera's rotation is not applied, grey images are repeated. Raises ModelFileError: no
    such file, or no image.
    """
    with opened(filename) as picture:
        if picture.mode == "F":
            pixels = np.asarray(picture, np.float32)[:, :, None]
        elif picture.mode.startswith("I"):
            pixels = np.asarray(picture).astype(np.float32)[:, :, None] / np.float32(65535)
        else:
            grey = picture.mode in ("1", "L", "LA")
            pixels = np.asarray(picture.convert("L" if grey else "RGB"), np.float32) / np.float32(255)
            pixels = pixels.reshape(picture.height, picture.width, -1)
    if color:
        return np.repeat(pixels, 3, axis=2) if pixels.shape[2] == 1 else pixels
    if pixels.shape[2] == 1:
        return pixels
    weights = np.array([0.2125, 0.7154, 0.0721], np.float32)  # scikit-image's rgb2gray
    return (pixels @ weights)[:, :, None]


def resize_image(im: Any, new_dims: Sequence[int] | Array, interp_order: int = 1) -> Array:
    """An image (H, W, K) at new_dims (height, width), float32, as Caffe resized with scikit-image and SciPy.

    One or three channels: pixel centres at halves, and beyond the border is the image's least value (scikit-image's `resize` of
    Caffe's time, no smoothing when shrinking). Other channel numbers: corners stay corners (SciPy's `zoom`).
    interp_order 0 takes the nearest pixel, 1 (the default) is bilinear, 3 bicubic (Keys, -0.5).
    """
    image = np.asarray(im)
    if image.ndim != 3 or len(new_dims) != 2 or min(*new_dims, *image.shape) < 1:
        raise ArgumentError(
            "an image has height, width and channels",
            given={"im": image, "new_dims": tuple(new_dims)},
            required=f"(H, W, K) and (height, width), all at least 1: {image.shape}, {tuple(new_dims)}",
        )
    size = (int(new_dims[0]), int(new_dims[1]))
    return resize(image, size, interp_order, centred=image.shape[2] in (1, 3))


def oversample(images: Sequence[Array], crop_dims: Sequence[int] | Array) -> Array:
    """Ten crops of each image (H, W, K): four corners and the centre, then the same mirrored: (10 N, height, width, K)."""
    height, width = (int(size) for size in crop_dims)
    rows, columns, channels = images[0].shape
    if height > rows or width > columns:
        raise ArgumentError(
            "the crop is larger than the image", given={"crop_dims": (height, width)}, required=f"at most {(rows, columns)}"
        )
    corners = [(y, x) for y in (0, rows - height) for x in (0, columns - width)]
    # Halves are cut off after they are added, as in Caffe.
    places = [*corners, (int(rows / 2 - height / 2), int(columns / 2 - width / 2))]
    crops = np.empty((10 * len(images), height, width, channels), np.float32)
    for i, image in enumerate(images):
        for j, (y, x) in enumerate(places):
            piece = image[y : y + height, x : x + width]
            crops[10 * i + j] = piece
            crops[10 * i + 5 + j] = piece[:, ::-1]
    return crops


__all__ = [
    "Transformer",
    "array_to_blobproto",
    "array_to_datum",
    "arraylist_to_blobprotovecor_str",
    "arraylist_to_blobprotovector_str",
    "blobproto_to_array",
    "blobprotovector_str_to_arraylist",
    "datum_to_array",
    "load_image",
    "oversample",
    "resize_image",
]
