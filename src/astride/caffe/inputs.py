"""The older ways to say a network's inputs, brought to Input layers; and data layers that a given source feeds."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import ArgumentError, PrototxtError
from ..layers import Source, layer_class
from ..layers.memory_data import MemoryData
from ..net import Node
from ..proto import Message
from .translate import place
from .translate_data import FirstParts

EVERY = "*"
"""In a mapping of sources: for every data layer that is not named."""

DATA_LAYERS = {
    "AnnotatedData": "data_param",
    "Data": "data_param",
    "DenseImageData": "dense_image_data_param",
    "HDF5Data": "hdf5_data_param",
    "ImageData": "image_data_param",
    "MemoryData": "memory_data_param",
    "WindowData": "window_data_param",
}
"""Data layer type -> the message that has its batch_size."""


def input_layer(message: Message) -> Message | None:
    """The Input layer that stands for the top-level `input` fields, or None where there are none."""
    names = list(message.input)
    if not names:
        return None
    shapes = [list(shape.dim) for shape in message.input_shape]
    if not shapes:
        dims = list(message.input_dim)
        if len(dims) != 4 * len(names):
            raise PrototxtError(
                "each input needs four input_dim, or an input_shape",
                given={"input": names, "input_dim": dims},
                required=f"len(input_dim) == 4 * {len(names)}: {len(dims)}",
                because="Caffe, src/caffe/util/upgrade_proto.cpp",
                hint="input_shape { dim: 1 dim: 3 dim: 224 dim: 224 }",
            )
        shapes = [dims[4 * i : 4 * i + 4] for i in range(len(names))]
    if len(shapes) != len(names):
        raise PrototxtError(
            "each input needs its input_shape",
            given={"input": names, "input_shape": shapes},
            required=f"{len(names)} shapes: {len(shapes)}",
            hint="one input_shape for each input, in the same order",
        )
    layer: Message = type(message)().layer.add()
    layer.name, layer.type = "input", "Input"
    layer.top.extend(names)
    for shape in shapes:
        layer.input_param.shape.add().dim.extend(shape)
    return layer


def fed_layer(message: Message, source: Source, line: int | None) -> Node:
    """A data layer of whatever kind, drawing from the given source instead of what its text names."""
    if message.type not in DATA_LAYERS:
        raise ArgumentError(
            "a source is for a data layer",
            given={"layer": message.name, "type": message.type},
            required=f"one of {', '.join(DATA_LAYERS)}",
        )
    if len(source.shapes()) > len(message.top):
        source = FirstParts(source, len(message.top))
    shapes = source.shapes()
    if message.type == "MemoryData":
        # Its text has the sizes, which the samples must have.
        parameters = message.memory_data_param
        shapes = ((parameters.channels, parameters.height, parameters.width), ())[: len(message.top)]
    made = layer_class(message.type)
    assert issubclass(made, MemoryData)
    return place(message, made(getattr(message, DATA_LAYERS[message.type]).batch_size, shapes, source), line)


def source_of(message: Message, sources: Mapping[str, Source]) -> Source | None:
    """Where this layer is to draw from, if that is given."""
    found = sources.get(message.name)
    return sources.get(EVERY) if found is None and message.type in DATA_LAYERS else found


def check_sources(sources: Mapping[str, Source], names: list[str]) -> None:
    """Raise ArgumentError for a source that no layer of this network takes."""
    lost = [name for name in sources if name not in names and name != EVERY]
    if lost:
        raise ArgumentError(
            "a source is given for a layer that this network does not have",
            given={"sources": lost},
            required=f"one of {', '.join(names) or 'no layer'}",
        )
