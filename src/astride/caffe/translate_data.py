"""The layers that read and write files: Caffe's messages to layers and to the sources they draw from."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np

from ..data import Transformer, load_mean
from ..data.annotated import AnnotatedSource, Changes, Interpolation, Warp
from ..data.boxes import Emit, Patches
from ..data.colours import Distortion
from ..data.databases import LMDB, LevelDB
from ..data.hdf5 import HDF5Source, write_hdf5
from ..data.image_list import ImageListSource, PairListSource
from ..data.records import RecordSource
from ..data.windows import WindowSource
from ..errors import ArgumentError, AstrideError, UnsupportedError
from ..layers import Layer, Source
from ..layers.annotated_data import AnnotatedData
from ..layers.data import Data
from ..layers.dense_image_data import DenseImageData
from ..layers.hdf5_data import HDF5Data
from ..layers.hdf5_output import HDF5Output
from ..layers.image_data import ImageData
from ..layers.memory_data import MemoryData
from ..layers.window_data import WindowData
from ..net import Phase
from ..proto import Message, Schema
from .fields import known
from .state import enum_name

ListedT = TypeVar("ListedT", ImageListSource, PairListSource)

TRANSFORMER = "Caffe, src/caffe/data_transformer.cpp"


def transformer(p: Message, phase: Phase) -> Transformer:
    """What a TransformationParameter does to each image. Crops are left to chance in training, coins always."""
    crop = (p.crop_size, p.crop_size) if p.crop_size else None
    return Transformer(
        mean=mean_of(p), crop=crop, mirror=p.mirror, scale=p.scale, random=phase is Phase.TRAIN and crop is not None, coin=True
    )


def mean_of(p: Message) -> Any:
    """The mean that a TransformationParameter names, or None."""
    if p.HasField("mean_file") and len(p.mean_value):
        raise ArgumentError(
            "a mean is given twice",
            given={"mean_file": p.mean_file, "mean_value": list(p.mean_value)},
            required="mean_file or mean_value",
            because=TRANSFORMER,
            hint="one of them",
        )
    if p.HasField("mean_file"):
        return load_mean(p.mean_file)
    return load_mean(np.array(p.mean_value, np.float32)) if len(p.mean_value) else None


def color_of(p: Message) -> bool | None:
    """How many channels encoded images are to have: True three, False one, None as they have."""
    if p.force_color and p.force_gray:
        raise ArgumentError(
            "images cannot be forced to colour and to grey",
            given={"force_color": True, "force_gray": True},
            required="one of them",
            because=TRANSFORMER,
        )
    return True if p.force_color else False if p.force_gray else None


def _left_to_chance(transform: Message, phase: Phase, *others: bool) -> bool:
    return bool(transform.mirror or (transform.crop_size and phase is Phase.TRAIN) or any(others))


def _fed(kind: type[MemoryData], message: Message, size: int, source: Source, *, random: bool) -> MemoryData:
    """A data layer over a source, of as many parts as there are tops."""
    try:
        shapes = source.shapes()
    except AstrideError as error:
        error.hint = error.hint or f'load_caffe(..., sources={{"{message.name}": source}}) draws from something else'
        raise
    if len(message.top) < len(shapes):
        source, shapes = FirstParts(source, len(message.top)), shapes[: len(message.top)]
    return kind(size, shapes, source, random=random)


class FirstParts:
    """A source of which only the first parts are wanted: images without their labels."""

    def __init__(self, source: Source, parts: int) -> None:
        self.source = source
        self.parts = parts

    def shapes(self) -> Any:
        """The first parts' shapes."""
        return self.source.shapes()[: self.parts]

    def batch(self, size: int) -> Any:
        """The first parts of the next samples."""
        return self.source.batch(size)[: self.parts]

    def reset(self, position: int = 0) -> None:
        """As the whole source."""
        self.source.reset(position)

    def reseed(self, seed: int) -> None:
        """As the whole source, if it leaves anything to chance."""
        reseed = getattr(self.source, "reseed", None)
        if reseed is not None:
            reseed(seed)


def database(p: Message) -> LMDB | LevelDB:
    """The database that a DataParameter names."""
    if not p.source:
        raise ArgumentError("the data layer names no database", required="source", hint='data_param { source: "train_lmdb" }')
    return LMDB(p.source) if enum_name(p, "backend") == "LMDB" else LevelDB(p.source)


def _data(message: Message, phase: Phase) -> Layer:
    p, t = message.data_param, message.transform_param
    shuffle = bool(known(p, "shuffle").get("shuffle", False))
    color = color_of(t)
    source = RecordSource(
        database(p),
        transform=transformer(t, phase),
        color=True if p.force_encoded_color else color,
        shuffle=shuffle,
        rand_skip=p.rand_skip,
    )
    return _fed(Data, message, p.batch_size, source, random=_left_to_chance(t, phase, shuffle, p.rand_skip > 0))


def _annotated_data(message: Message, phase: Phase) -> Layer:
    p, t, a = message.data_param, message.transform_param, message.annotated_data_param
    changes = changes_of(t, phase, tuple(_patches(each) for each in a.batch_sampler if each.use_original_image))
    source = AnnotatedSource(
        database(p),
        Schema.of(message).message("AnnotatedDatum"),
        changes=changes,
        color=True if p.force_encoded_color else color_of(t),
        rand_skip=p.rand_skip,
    )
    return _fed(AnnotatedData, message, p.batch_size, source, random=True)


SSD_TRANSFORMER = "SSD's Caffe, src/caffe/data_transformer.cpp"


def _given(t: Message, name: str) -> bool:
    """Whether a part is there. Raises UnsupportedError: another fork has a list of that name, which means something else."""
    if t.DESCRIPTOR.fields_by_name[name].has_presence:
        return bool(t.HasField(name))
    if len(getattr(t, name)):
        raise UnsupportedError(
            "this is another fork's field of that name",
            given={name: len(getattr(t, name))},
            hint=f"no {name}, or the other --dialect",
        )
    return False


def changes_of(t: Message, phase: Phase, patches: tuple[Patches, ...]) -> Changes:
    """What SSD's TransformationParameter and its samplers do to each image and its boxes."""
    if _given(t, "noise_param") and t.noise_param.prob > 0:
        raise UnsupportedError("noise is not added to images here", given={"noise_param": "prob > 0"}, hint="no noise_param")
    crop = (t.crop_h or t.crop_size, t.crop_w or t.crop_size)
    e = t.expand_param
    return Changes(
        distort=_distortion(t.distort_param) if _given(t, "distort_param") else None,
        expand=(e.prob, e.max_expand_ratio) if _given(t, "expand_param") else None,
        patches=patches,
        warp=_warp(t.resize_param) if _given(t, "resize_param") else None,
        crop=crop if min(crop) else None,
        random_crop=phase is Phase.TRAIN,
        mirror=t.mirror,
        mean=mean_of(t),
        scale=t.scale,
        emit=_emit(t.emit_constraint) if _given(t, "emit_constraint") else None,
    )


def _distortion(p: Message) -> Distortion:
    return Distortion(
        brightness=(p.brightness_prob, p.brightness_delta),
        contrast=(p.contrast_prob, p.contrast_lower, p.contrast_upper),
        saturation=(p.saturation_prob, p.saturation_lower, p.saturation_upper),
        hue=(p.hue_prob, p.hue_delta),
        order=p.random_order_prob,
    )


def _warp(p: Message) -> Warp:
    if enum_name(p, "resize_mode") != "WARP" or p.height < 1 or p.width < 1:
        raise UnsupportedError(
            "images are resized by WARP only",
            given={"resize_mode": enum_name(p, "resize_mode"), "height": p.height, "width": p.width},
            required="resize_mode: WARP with height >= 1 and width >= 1",
            because=SSD_TRANSFORMER,
            hint="resize_param { resize_mode: WARP height: 300 width: 300 }",
        )
    values = p.DESCRIPTOR.fields_by_name["interp_mode"].enum_type.values_by_number
    ways = tuple(Interpolation(values[number].name.lower()) for number in p.interp_mode)
    return Warp((p.height, p.width), ways or (Interpolation.LINEAR,), p.prob)


def _emit(p: Message) -> Emit:
    return Emit(p.emit_overlap if enum_name(p, "emit_type") == "MIN_OVERLAP" else None)


def _patches(p: Message) -> Patches:
    """What a BatchSampler draws: without any fields the whole image."""
    s, c = p.sampler, p.sample_constraint

    def limits(name: str) -> tuple[float | None, float | None]:
        given = known(c, f"min_{name}", f"max_{name}")
        return given.get(f"min_{name}"), given.get(f"max_{name}")

    return Patches(
        scale=(s.min_scale, s.max_scale),
        aspect=(s.min_aspect_ratio, s.max_aspect_ratio),
        overlap=limits("jaccard_overlap"),
        sample_coverage=limits("sample_coverage"),
        object_coverage=limits("object_coverage"),
        most=p.max_sample if p.HasField("max_sample") else None,
        trials=p.max_trials,
    )


def _listed(kind: type[ListedT], p: Message, t: Message, phase: Phase) -> ListedT:
    """The source of a layer that reads a list of images."""
    return kind(
        p.source,
        root=p.root_folder,
        size=(p.new_height, p.new_width) if p.new_height else None,
        color=p.is_color,
        transform=transformer(t, phase),
        shuffle=p.shuffle,
        rand_skip=p.rand_skip,
    )


def _image_data(message: Message, phase: Phase) -> Layer:
    p, t = message.image_data_param, message.transform_param
    if (p.new_height > 0) != (p.new_width > 0):
        raise ArgumentError(
            "images are resized along both axes",
            given={"new_height": p.new_height, "new_width": p.new_width},
            required="both or none",
            because="Caffe, src/caffe/layers/image_data_layer.cpp",
            hint="new_height: 256 new_width: 256",
        )
    source = _listed(ImageListSource, p, t, phase)
    return _fed(ImageData, message, p.batch_size, source, random=_left_to_chance(t, phase, p.shuffle, p.rand_skip > 0))


def _dense_image_data(message: Message, phase: Phase) -> Layer:
    p, t = message.dense_image_data_param, message.transform_param
    if t.mirror or t.crop_size or (p.new_height > 0) != (p.new_width > 0):
        raise ArgumentError(
            "images with labels for their pixels are not mirrored or cropped, and resized along both axes",
            given={"mirror": t.mirror, "crop_size": t.crop_size, "new_height": p.new_height, "new_width": p.new_width},
            required="no mirror, no crop_size; new_height and new_width both or none",
            because="SegNet's Caffe, src/caffe/layers/dense_image_data_layer.cpp",
            hint="new_height: 360 new_width: 480",
        )
    source = _listed(PairListSource, p, t, phase)
    return _fed(DenseImageData, message, p.batch_size, source, random=p.shuffle or p.rand_skip > 0)


def _hdf5_data(message: Message, phase: Phase) -> Layer:
    p = message.hdf5_data_param
    if message.HasField("transform_param"):
        raise ArgumentError(
            "HDF5 data is not transformed",
            given={"transform_param": str(message.transform_param).replace("\n", " ")},
            required="no transform_param",
            because="Caffe, src/caffe/layers/hdf5_data_layer.cpp",
            hint="prepare the arrays before they are written",
        )
    source = HDF5Source.listed(p.source, list(message.top), shuffle=p.shuffle)
    return _fed(HDF5Data, message, p.batch_size, source, random=p.shuffle)


def _hdf5_output(message: Message, phase: Phase) -> Layer:
    name = message.hdf5_output_param.file_name
    if not name:
        raise ArgumentError("the file has no name", required="file_name", hint='hdf5_output_param { file_name: "features.h5" }')
    return HDF5Output(partial(write_hdf5, name))


def _window_data(message: Message, phase: Phase) -> Layer:
    p, t = message.window_data_param, message.transform_param
    if p.crop_mode not in ("warp", "square"):
        raise ArgumentError(
            "windows are warped or made square",
            given={"crop_mode": p.crop_mode},
            required="warp or square",
            because="Caffe, src/caffe/layers/window_data_layer.cpp",
            hint='crop_mode: "warp"',
        )
    source = WindowSource(
        p.source,
        crop=t.crop_size or p.crop_size,
        above=p.fg_threshold,
        below=p.bg_threshold,
        foreground=p.fg_fraction,
        context=p.context_pad,
        square=p.crop_mode == "square",
        mirror=t.mirror,
        scale=t.scale,
        mean=mean_of(t),
        root=p.root_folder,
        keep=p.cache_images,
    )
    return _fed(WindowData, message, p.batch_size, source, random=True)


DATA: dict[str, Callable[[Message, Phase], Layer]] = {
    "AnnotatedData": _annotated_data,
    "Data": _data,
    "DenseImageData": _dense_image_data,
    "HDF5Data": _hdf5_data,
    "HDF5Output": _hdf5_output,
    "ImageData": _image_data,
    "WindowData": _window_data,
}
