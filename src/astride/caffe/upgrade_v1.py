"""Caffe's middle layers (`layers { type: CONVOLUTION blobs_lr: 1 }`, 2013 to 2015) brought to the current format.

Source: Caffe, src/caffe/util/upgrade_proto.cpp, UpgradeNetDataTransformation and UpgradeV1LayerParameter.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..proto import Message
from .journal import Journal
from .state import enum_name

TYPES: Mapping[str, str] = MappingProxyType(
    {
        "NONE": "",
        "ABSVAL": "AbsVal",
        "ACCURACY": "Accuracy",
        "ARGMAX": "ArgMax",
        "BN": "BN",
        "BNLL": "BNLL",
        "CONCAT": "Concat",
        "CONTRASTIVE_LOSS": "ContrastiveLoss",
        "CONVOLUTION": "Convolution",
        "DATA": "Data",
        "DECONVOLUTION": "Deconvolution",
        "DROPOUT": "Dropout",
        "DUMMY_DATA": "DummyData",
        "ELTWISE": "Eltwise",
        "EUCLIDEAN_LOSS": "EuclideanLoss",
        "EXP": "Exp",
        "FLATTEN": "Flatten",
        "HDF5_DATA": "HDF5Data",
        "HDF5_OUTPUT": "HDF5Output",
        "HINGE_LOSS": "HingeLoss",
        "IM2COL": "Im2col",
        "IMAGE_DATA": "ImageData",
        "INFOGAIN_LOSS": "InfogainLoss",
        "INNER_PRODUCT": "InnerProduct",
        "LRN": "LRN",
        "MEMORY_DATA": "MemoryData",
        "MULTINOMIAL_LOGISTIC_LOSS": "MultinomialLogisticLoss",
        "MVN": "MVN",
        "POOLING": "Pooling",
        "POWER": "Power",
        "RELU": "ReLU",
        "SIGMOID": "Sigmoid",
        "SIGMOID_CROSS_ENTROPY_LOSS": "SigmoidCrossEntropyLoss",
        "SILENCE": "Silence",
        "SLICE": "Slice",
        "SOFTMAX": "Softmax",
        "SOFTMAX_LOSS": "SoftmaxWithLoss",
        "SPLIT": "Split",
        "TANH": "TanH",
        "THRESHOLD": "Threshold",
        "UNPOOLING": "Unpooling",
        "WINDOW_DATA": "WindowData",
    }
)
"""V1 layer type, of forks too -> the current name."""

PARAM_SPECS = (
    ("param", "name"),
    ("blob_share_mode", "share_mode"),
    ("blobs_lr", "lr_mult"),
    ("weight_decay", "decay_mult"),
)
"""V1's list, one value a parameter -> the field of today's `param { ... }`. The share modes have the same numbers."""

_COPIED = ("bottom", "top", "include", "exclude", "blobs", "loss_weight")
_TRANSFORMATIONS = ("scale", "mean_file", "crop_size", "mirror")
_PREPARES = MappingProxyType({"DATA": "data_param", "IMAGE_DATA": "image_data_param", "WINDOW_DATA": "window_data_param"})


def move_transformations(layer: Message, journal: Journal, index: int) -> Message:
    """The V1 layer with scale, mean_file, crop_size and mirror of its data in transform_param: itself if it has none."""
    param = _PREPARES.get(enum_name(layer, "type"))
    moved = [name for name in _TRANSFORMATIONS if param is not None and getattr(layer, param).HasField(name)]
    if param is None or not moved:
        return layer
    new: Message = type(layer)()
    new.CopyFrom(layer)
    source = getattr(new, param)
    for name in moved:
        setattr(new.transform_param, name, getattr(source, name))
        source.ClearField(name)
    journal.note(f'{", ".join(moved)} of "{layer.name}" moved from {param} to transform_param', index)
    return new


def layer_from_v1(old: Message, new: Message) -> Message:
    """Fill the empty current layer `new` with what a V1 layer says."""
    for name in _COPIED:
        getattr(new, name).extend(getattr(old, name))
    if old.HasField("name"):
        new.name = old.name
    if old.HasField("type"):
        new.type = TYPES[enum_name(old, "type")]
    for name, field in PARAM_SPECS:
        for index, value in enumerate(getattr(old, name)):
            while len(new.param) <= index:
                new.param.add()
            setattr(new.param[index], field, value)
    for descriptor, value in old.ListFields():
        if descriptor.name.endswith("_param"):
            getattr(new, descriptor.name).CopyFrom(value)
    return new
