"""How images become a network's input: what its text, its neighbours and the custom of the model zoo say.

Each part of a recipe comes from the first of these that has it: the flags; a transform_param, in the network's own text or in a
training text beside it that has the same layers; a mean file beside it; the custom of networks of its name or build.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..data import load_mean
from ..errors import AstrideError, ModelFileError
from ..net import Net

IMAGENET = (104.0, 117.0, 123.0)
VGG = (103.939, 116.779, 123.68)
SHICAI = (103.94, 116.78, 123.68)
RBG = (102.9801, 115.9465, 122.7717)
FACES = (78.4263377603, 87.7689143744, 114.895847746)

MOST_FILES, MOST_BYTES = 10, 1 << 24
"""Neighbours of a kind that are looked at, and how large a text may be."""


@dataclass(slots=True)
class Recipe:
    """What is known, and from where; None is not known. `mean` is numbers (none of them: no mean), or the path of a file."""

    mean: Any = None
    scale: float | None = None
    raw_scale: float | None = None
    size: tuple[int, int] | None = None
    crop: tuple[int, int] | None = None
    sides: tuple[int, int] | None = None
    order: str | None = None
    labels: Any = None
    sources: dict[str, str] = field(default_factory=dict)

    def take(self, source: str, values: Mapping[str, Any]) -> None:
        """Fill what is not known yet, and note the source of it."""
        for name, value in values.items():
            if value is not None and getattr(self, name) is None:
                setattr(self, name, value)
                self.sources[name] = source

    def said(self) -> str:
        """`mean and scale as MobileNet-SSD's authors have them; ...`, without what flags say."""
        grouped: dict[str, list[str]] = {}
        for name, source in self.sources.items():
            if source != "flag":
                grouped.setdefault(source, []).append(name.replace("_", " "))
        return "; ".join(f"{', '.join(names)} from {source}" for source, names in grouped.items())


@dataclass(frozen=True, slots=True)
class Custom:
    """What is done to images of networks like this. `known` looks at the network: its name, layers, inputs, outputs."""

    name: str
    known: Callable[[Look], bool]
    values: Mapping[str, Any]
    source: str


@dataclass(frozen=True, slots=True)
class Look:
    """What a network is recognised by."""

    name: str
    layers: frozenset[str]
    types: frozenset[str]
    inputs: frozenset[str]
    outputs: frozenset[str]
    input: tuple[int, ...]
    classes: int

    @classmethod
    def at(cls, net: Net, image: str | None = None) -> Look:
        """Its name in small letters, its layers, its input, and how many classes it tells apart."""
        makers = {top: node for node in net.nodes for top in node.tops}
        image = image or next(iter(net.inputs), None)
        sizes = [net.blobs[name].shape for name in net.outputs if makers[name].layer.type in ("Softmax", "InnerProduct")]
        found = [node.layer for node in net.nodes if node.layer.type == "DetectionOutput"]
        classes = max((shape[1] for shape in sizes if len(shape) > 1), default=0)
        if found:
            classes = int(getattr(found[0], "classes", 0))
        elif "im_info" in net.inputs and "cls_prob" in net.blobs:
            classes = net.blobs["cls_prob"].shape[-1]
        return cls(
            net.name.lower(),
            frozenset(node.name for node in net.nodes),
            frozenset(node.layer.type for node in net.nodes),
            frozenset(net.inputs),
            frozenset(net.outputs),
            net.blobs[image].shape if image else (),
            classes,
        )

    @property
    def color(self) -> bool:
        return len(self.input) == 4 and self.input[1] == 3


def _called(*words: str) -> Callable[[Look], bool]:
    return lambda look: look.color and any(word in look.name for word in words)


VOC = [
    *("background", "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow"),
    *("diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor"),
]
DETECTS = "DetectionOutput"

CUSTOMS: tuple[Custom, ...] = (
    Custom(
        "faster-rcnn",
        lambda look: look.color and "im_info" in look.inputs,
        {"mean": RBG, "sides": (600, 1000)},
        "Faster R-CNN (rbgirshick)",
    ),
    Custom(
        "mobilenet-ssd",
        lambda look: look.color and DETECTS in look.types and "mobilenet" in look.name,
        {"mean": (127.5,) * 3, "scale": 0.007843},
        "MobileNet-SSD (chuanqi305)",
    ),
    Custom(
        "res10-ssd",
        lambda look: look.color and DETECTS in look.types and look.classes == 2 and "data_bn" in look.layers,
        {"mean": (104.0, 177.0, 123.0)},
        "OpenCV's face detector res10",
    ),
    Custom("ssd", lambda look: look.color and DETECTS in look.types, {"mean": IMAGENET}, "SSD (weiliu89)"),
    Custom(
        "age-gender",
        lambda look: look.color and look.name == "caffenet" and look.classes in (2, 8) and look.input[2] == 227,
        {"mean": FACES},
        "the age and gender networks (GilLevi)",
    ),
    Custom(
        "mobilenet",
        _called("mobilenet", "densenet", "shufflenet"),
        {"mean": SHICAI, "scale": 0.017, "size": (256, 256)},
        "MobileNet and DenseNet (shicai)",
    ),
    Custom("vgg", _called("vgg"), {"mean": VGG, "size": (256, 256)}, "VGG's authors"),
    Custom(
        "mtcnn",
        lambda look: look.color and look.name in ("pnet", "rnet", "onet"),
        {"mean": (127.5,) * 3, "scale": 0.0078125},
        "MTCNN (kpzhang93)",
    ),
    Custom(
        "ultralight",
        lambda look: look.color and {"boxes", "scores"} <= look.outputs,
        {"mean": (127.0,) * 3, "scale": 1 / 128, "order": "rgb"},
        "the ultra-light face detector (Linzaer)",
    ),
    Custom("openpose", _called("openpose", "body_25", "coco_pose"), {"scale": 1 / 255}, "OpenPose (CMU)"),
    Custom("fcn", _called("fcn", "deeplab", "pspnet", "hed"), {"mean": (104.00699, 116.66877, 122.67892)}, "FCN (shelhamer)"),
    Custom(
        "lenet",
        lambda look: "lenet" in look.name and len(look.input) == 4 and look.input[1] == 1,
        {"scale": 1 / 256},
        "Caffe's LeNet",
    ),
    Custom(
        "imagenet",
        lambda look: (
            look.color and (look.classes == 1000 or any(word in look.name for word in ("caffenet", "alexnet", "googlenet")))
        ),
        {"mean": IMAGENET, "size": (256, 256)},
        "ImageNet's networks (BVLC)",
    ),
)
"""In the order they are asked; the first that knows the network is taken."""


def customary(net: Net, wanted: str = "auto", image: str | None = None) -> Custom | None:
    """The custom of networks like this one, or the one of that name."""
    if wanted != "auto":
        return next((custom for custom in CUSTOMS if custom.name == wanted), None)
    look = Look.at(net, image)
    return next((custom for custom in CUSTOMS if custom.known(look)), None)


def recipe(net: Net, image: str, files: list[Path], flags: Mapping[str, Any], wanted: str = "auto") -> Recipe:
    """The recipe of the input `image` of a network read from `files`.

    `wanted` is auto, none (the flags alone), or the name of a custom.
    """
    found = Recipe()
    found.take("flag", flags)
    if wanted == "none":
        return found
    shape = net.blobs[image].shape
    if wanted == "auto":
        for source, values in _texts(net, files):
            found.take(source, values)
        _mean_beside(found, files, shape)
    custom = customary(net, wanted, image)
    if custom is not None:
        values = dict(custom.values)
        if "size" in values and not (len(shape) == 4 and shape[2] < values["size"][0] and shape[3] < values["size"][1]):
            del values["size"]
        if "im_info" not in net.inputs:
            values.pop("sides", None)
        found.take(custom.source, values)
        look = Look.at(net, image)
        if (DETECTS in look.types or custom.name == "faster-rcnn") and look.classes == len(VOC):
            found.take("Pascal VOC", {"labels": VOC})
    _labels_beside(found, files)
    return found


def _texts(net: Net, files: list[Path]) -> list[tuple[str, dict[str, Any]]]:
    """What transform_params say: of the network's own text, then of texts beside it that have its layers."""
    said = []
    own = {node.name for node in net.nodes if node.layer.params}
    beside = [path for folder in _folders(files) for path in sorted(folder.glob("*train*.prototxt"))[:MOST_FILES]]
    for path in dict.fromkeys([*(file for file in files if file.suffix == ".prototxt"), *beside]):
        try:
            if path.stat().st_size > MOST_BYTES or b"transform_param" not in path.read_bytes():
                continue
            layers, transform = _transform(path)
        except (AstrideError, OSError):
            continue  # whatever it is, it says nothing
        if transform and own and len(own & layers) >= 0.8 * len(own):
            said.append((f"transform_param in {path.name}", _from_transform(transform, path)))
    return said


def _transform(path: Path) -> tuple[set[str], dict[str, Any]]:
    """(names of its layers, the fields of the first transform_param that has any)."""
    from ..caffe.dialects import schema
    from ..caffe.upgrade import upgrade
    from ..proto import read_prototxt

    message = upgrade(read_prototxt(path, "NetParameter", allow_unknown_fields=True, schema=schema()).message).message
    values: dict[str, Any] = {}
    layers = sorted(message.layer, key=lambda layer: not any(rule.phase == 1 for rule in layer.include))  # TEST first
    for layer in layers:
        if layer.HasField("transform_param") and not values:
            t = layer.transform_param
            values = {name: getattr(t, name) for name in ("scale", "crop_size", "mean_file") if t.HasField(name)}
            if len(t.mean_value):
                values["mean_value"] = list(t.mean_value)
    return {layer.name for layer in message.layer}, values


def _from_transform(values: dict[str, Any], path: Path) -> dict[str, Any]:
    side = values.get("crop_size")
    mean = values.get("mean_value")
    if mean is None and "mean_file" in values:
        named = Path(values["mean_file"])
        mean = next((str(p) for p in (named, path.parent / named, path.parent / named.name) if p.is_file()), None)
    elif mean is None:
        mean = ()  # what a text does not say of a mean or a scale is none and 1, whatever is customary
    return {"mean": mean, "scale": values.get("scale", 1.0), "crop": (side, side) if side else None}


def _mean_beside(found: Recipe, files: list[Path], shape: tuple[int, ...]) -> None:
    """The one mean file beside the network whose channels are the input's; where it is larger, images are as large."""
    if found.mean is not None or len(shape) != 4:
        return
    fitting = []
    for folder in _folders(files):
        for path in sorted([*folder.glob("*mean*.binaryproto"), *folder.glob("*mean*.npy")])[:MOST_FILES]:
            try:
                mean = load_mean(path)
            except AstrideError:
                continue
            larger = mean.shape[1] >= shape[2] and mean.shape[2] >= shape[3]
            if mean.shape[0] == shape[1] and (larger or mean.shape[1:] == (1, 1)):
                fitting.append((path, mean.shape[1:]))
    if len(fitting) == 1:
        path, size = fitting[0]
        found.take(path.name, {"mean": str(path), "size": size if size != (1, 1) and size != shape[2:] else None})


def _labels_beside(found: Recipe, files: list[Path]) -> None:
    """Names of classes from a file beside the network that is called as those of the zoo are."""
    if found.labels is not None:
        return
    for folder in _folders(files):
        for pattern in ("synset_words.txt", "labels.txt", "classes.txt", "labelmap*.prototxt"):
            for path in sorted(folder.glob(pattern))[:MOST_FILES]:
                try:
                    found.take(path.name, {"labels": label_names(path)})
                except AstrideError:
                    continue  # nobody has asked for it
                return


def _folders(files: list[Path]) -> list[Path]:
    return list(dict.fromkeys(file.parent for file in files if file.is_file()))


def label_names(source: Any) -> list[str]:
    """Names in the order of their numbers: a list, a file with one a line, or a LabelMap of SSD's."""
    if source is None or isinstance(source, list):
        return list(source or [])
    path = Path(source)
    if path.suffix != ".prototxt":
        # `n01440764 tench, Tinca tinca`: the number in front is WordNet's
        return [re.sub(r"^n\d{8}\s+", "", name) for name in read_labels(path)]
    from ..caffe.dialects import schema
    from ..proto import read_prototxt

    items = read_prototxt(path, "LabelMap", schema=schema()).message.item
    names = {int(item.label): str(item.display_name or item.name) for item in items if 0 <= item.label < 1 << 16}
    return [names.get(i, "") for i in range(max(names, default=-1) + 1)]


def read_labels(path: Path) -> list[str]:
    """Names of classes, one a line."""
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except FileNotFoundError:
        raise ModelFileError("there is no such labels file", given={"path": str(path)}, hint="check the path") from None
    except (UnicodeDecodeError, OSError) as error:
        raise ModelFileError(
            "the labels cannot be read", given={"path": str(path)}, because=str(error), hint="a UTF-8 text file"
        ) from error


__all__ = ["CUSTOMS", "Recipe", "customary", "label_names", "recipe"]
