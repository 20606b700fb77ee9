"""Classifier: a network that takes images and gives probabilities, by ten crops or one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError
from . import io
from ._calls import Array, Arrays, FilePath
from .proto import caffe_pb2
from .pycaffe import Net


def first_input(net: Net) -> str:
    """The name of the network's first input. Raises ArgumentError: it has none, as a text for training."""
    if not net.inputs:
        raise ArgumentError(
            "the network has no input, but layers that read data",
            given={"layers": [layer.name for layer in net._net.layers[:3]]},
            required="an Input layer, or input: and input_shape in the text",
            hint='layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 ... } } } in their place',
        )
    return net.inputs[0]


def transformer(
    net: Net, mean: Any = None, input_scale: float | None = None, raw_scale: float | None = None, channel_swap: Any = None
) -> io.Transformer:
    """The way from images to the network's first input, (H, W, K) to (K, H, W), with what else is given."""
    name = first_input(net)
    made = io.Transformer({name: net.blobs[name].shape})
    made.set_transpose(name, (2, 0, 1))
    if mean is not None:
        made.set_mean(name, mean)
    if input_scale is not None:
        made.set_input_scale(name, input_scale)
    if raw_scale is not None:
        made.set_raw_scale(name, raw_scale)
    if channel_swap is not None:
        made.set_channel_swap(name, channel_swap)
    return made


class Classifier(Net):
    """A network in use whose first input is an image. Images are resized to `image_dims` (by default the input's size), cropped
    to the input's size and transformed.
    """

    def __init__(
        self,
        model_file: FilePath,
        pretrained_file: FilePath,
        image_dims: Sequence[int] | None = None,
        mean: Any = None,
        input_scale: float | None = None,
        raw_scale: float | None = None,
        channel_swap: Any = None,
    ) -> None:
        super().__init__(model_file, caffe_pb2.TEST, weights=pretrained_file)
        self.transformer = transformer(self, mean, input_scale, raw_scale, channel_swap)
        self.crop_dims = np.array(self.blobs[self.inputs[0]].shape[2:])
        self.image_dims = self.crop_dims if image_dims is None else np.array(image_dims)

    def predict(self, inputs: Sequence[Array], oversample: bool = True) -> Array:
        """Probabilities (N, classes) of images (H, W, K): the mean over ten crops of each, or of the centre alone."""
        name = self.inputs[0]
        images = np.stack([io.resize_image(image, self.image_dims) for image in inputs])
        if oversample:
            images = io.oversample(list(images), self.crop_dims)
        else:
            # Halves are cut off after they are added, as in Caffe.
            begin = (self.image_dims / 2.0 - self.crop_dims / 2.0).astype(int)
            end = begin + self.crop_dims
            images = images[:, begin[0] : end[0], begin[1] : end[1]]
        prepared = np.stack([self.transformer.preprocess(name, image) for image in images])
        batch: Arrays = {name: prepared}
        predictions: Array = self.forward_all(**batch)[self.outputs[0]]
        if oversample:
            predictions = np.asarray(predictions.reshape(len(predictions) // 10, 10, -1).mean(1))
        return predictions


__all__ = ["Classifier", "transformer"]
