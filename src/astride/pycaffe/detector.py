"""Detector: a classifier of windows of images, as R-CNN has it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, UnsupportedError
from . import io
from ._calls import Array, Arrays, FilePath
from .classifier import transformer
from .proto import caffe_pb2
from .pycaffe import Net


class Detector(Net):
    """A network in use that is given windows of images, warped to its input's size.

    `context_pad` is how many pixels of the input, on each side, show what surrounds the window; where the image ends, the mean.
    """

    def __init__(
        self,
        model_file: FilePath,
        pretrained_file: FilePath,
        mean: Any = None,
        input_scale: float | None = None,
        raw_scale: float | None = None,
        channel_swap: Any = None,
        context_pad: int | None = None,
    ) -> None:
        super().__init__(model_file, caffe_pb2.TEST, weights=pretrained_file)
        self.transformer = transformer(self, mean, input_scale, raw_scale, channel_swap)
        self.configure_crop(context_pad)

    def detect_windows(self, images_windows: Iterable[tuple[str, Any]]) -> list[dict[str, Any]]:
        """Predictions for windows (ymin, xmin, ymax, xmax) of image files: dicts of window, prediction and filename."""
        name = self.inputs[0]
        crops, found = [], []
        for filename, windows in images_windows:
            image = io.load_image(filename)
            for window in windows:
                crops.append(self.transformer.preprocess(name, self.crop(image, np.asarray(window))))
                found.append({"window": window, "filename": filename})
        if not crops:
            return []
        batch: Arrays = {name: np.stack(crops)}
        predictions = self.forward_all(**batch)[self.outputs[0]]
        return [each | {"prediction": prediction} for each, prediction in zip(found, predictions, strict=True)]

    def detect_selective_search(self, image_fnames: Sequence[str]) -> list[dict[str, Any]]:
        """Not here: the proposals were made by a MATLAB program."""
        raise UnsupportedError(
            "selective search is another program, which this package does not bring",
            given={"images": len(image_fnames)},
            hint="windows of any other source, by detect_windows([(filename, windows), ...])",
        )

    def configure_crop(self, context_pad: int | None) -> None:
        """How much of the surroundings a crop shows; the mean is put where there is no image."""
        name = self.inputs[0]
        channels, height, width = self.blobs[name].shape[1:]
        self.crop_dims = np.array([height, width, channels])
        pad = context_pad or 0
        if pad and (height != width or not 0 <= 2 * pad < height):
            raise ArgumentError(
                "no room for surroundings in this input",
                given={"context_pad": pad, "input": (height, width)},
                required=f"a square input, and 2 * context_pad < size: {2 * pad} < {height}",
            )
        self.context_pad = pad
        self.crop_mean = np.zeros(self.crop_dims, np.float32)
        mean = self.transformer.mean.get(name)
        if mean is not None:
            # Back to an image as it is before the transformation: the mean's way through it, backwards.
            swap = self.transformer.channel_swap.get(name)
            whole = np.broadcast_to(mean, (channels, height, width))
            if swap is not None:
                whole = whole[np.argsort(swap)]
            self.crop_mean = (whole.transpose(1, 2, 0) / self.transformer.raw_scale.get(name, 1.0)).astype(np.float32)

    def crop(self, im: Array, window: Array) -> Array:
        """A window (ymin, xmin, ymax, xmax) of an image, with its surroundings where context_pad asks for them."""
        top, left, bottom, right = (int(edge) for edge in window)
        if not self.context_pad:
            return im[top:bottom, left:right]
        size = int(self.crop_dims[0])
        scale = size / (size - 2 * self.context_pad)
        half = np.array([bottom - top + 1, right - left + 1]) / 2
        center = np.array([top, left]) + half
        begin, end = np.round(center - scale * half), np.round(center + scale * half)
        factor = size / (end - begin + 1)
        limit = np.array(im.shape[:2])
        pad = np.round(np.maximum(0, -begin) * factor).astype(int)
        begin, end = np.clip(begin, 0, limit), np.clip(end, 0, limit)
        wanted = np.minimum(np.round((end - begin + 1) * factor).astype(int), size - pad)
        piece = im[int(begin[0]) : int(end[0]), int(begin[1]) : int(end[1])]
        if min(*piece.shape[:2], *wanted) < 1:
            raise ArgumentError("the window lies outside the image", given={"window": tuple(window), "im": im})
        made = self.crop_mean.copy()
        made[pad[0] : pad[0] + wanted[0], pad[1] : pad[1] + wanted[1]] = io.resize_image(piece, wanted)
        return made


__all__ = ["Detector"]
