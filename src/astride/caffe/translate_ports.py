"""The layers of smaller forks: YOLO v2's ports, OpenPose's, Cascade R-CNN's, and those that several forks have."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from ..errors import ArgumentError, UnsupportedError
from ..layers import Layer
from ..layers.crelu import CReLU
from ..layers.decode_bbox import DecodeBBox
from ..layers.im_resize import ImResize
from ..layers.nms import Nms
from ..layers.noise import Noise
from ..layers.region import Region
from ..layers.region_loss import RegionLoss, Scales
from ..layers.seg_accuracy import SegAccuracy
from ..layers.yolo_detection_output import YoloDetectionOutput
from ..net import Phase
from ..proto import Message
from .fields import Part

log = logging.getLogger(__name__)

YOLO = "the YOLO ports of Caffe, src/caffe/layers/yolo_detection_output_layer.cpp"


def _crelu(message: Message, phase: Phase) -> Layer:
    p = Part(message, "crelu_param")
    return CReLU(slope=p.negative_slope, axis=p.concat_axis)


def _decode_bbox(message: Message, phase: Phase) -> Layer:
    p = Part(message, "bbox_reg_param")
    both = bool(p.bbox_mean) and bool(p.bbox_std)
    numbers = {"mean": list(p.bbox_mean), "std": list(p.bbox_std)} if both else {}
    return DecodeBBox(**numbers, training=phase is Phase.TRAIN, most=Part(message, "decode_bbox_param").gt_iou_thr)


def _im_resize(message: Message, phase: Phase) -> Layer:
    p = Part(message, "imresize_param")
    return ImResize((p.target_spatial_height, p.target_spatial_width), factor=p.factor)


def _nms(message: Message, phase: Phase) -> Layer:
    p = Part(message, "nms_param")
    if p.HasField("num_peak"):
        return Nms(threshold=p.threshold, most=p.num_peak, parts=1, neighbours=4)
    return Nms(threshold=p.threshold, most=p.max_peaks, parts=p.num_parts)


def _noise(message: Message, phase: Phase) -> Layer:
    p = Part(message, "noise_param")
    if p.HasField("filler_param"):
        given = p.filler_param
        if given.type == "gaussian":
            return Noise(gaussian=(given.mean, given.std))
        if given.type == "uniform":
            return Noise(uniform=(given.min, given.max))
        raise ArgumentError(
            "noise has no such filler",
            given={"type": given.type},
            required="gaussian or uniform",
            because="jyegerlehner/caffe, src/caffe/layers/noise_layer.cpp",
            hint='filler_param { type: "gaussian" std: 0.1 }',
        )
    noise = partial(Noise, active=phase is Phase.TRAIN)
    if p.HasField("gaussian_std"):
        return noise(gaussian=(p.bias, p.gaussian_std))
    if p.HasField("uniform_range"):
        return noise(uniform=(p.bias - p.uniform_range, p.bias + p.uniform_range))
    return noise()


def _region(message: Message, phase: Phase) -> Layer:
    p = Part(message, "region_param")
    if p.HasField("boxes_of_each_grid") or not p.HasField("num"):
        return Region(classes=p.classes, boxes=p.boxes_of_each_grid, coords=p.coords, rows=True, softmax=p.softmax)
    classes = p.num_classes if p.HasField("num_classes") else p.classes
    return Region(classes=classes, boxes=p.num, coords=p.coords)


def _region_loss(message: Message, phase: Phase) -> Layer:
    p = Part(message, "region_loss_param")
    if p.softmax_tree or p.class_map or p.coords != 4:
        raise UnsupportedError(
            "boxes have four numbers, and classes make no tree",
            given={"coords": p.coords, "softmax_tree": p.softmax_tree, "class_map": p.class_map},
            required="coords: 4, and neither of the files",
            because="eric612/MobileNet-YOLO, src/caffe/layers/region_loss_layer.cpp, reads none",
        )
    return RegionLoss(
        classes=p.num_class,
        boxes=p.num,
        anchors=_anchors(p),
        scales=Scales(object=p.object_scale, nothing=p.noobject_scale, classes=p.class_scale, coords=p.coord_scale),
        threshold=p.thresh,
        match_anchors=bool(p.bias_match),
        rescore=bool(p.rescore),
    )


def _seg_accuracy(message: Message, phase: Phase) -> Layer:
    p = Part(message, "seg_accuracy_param")
    return SegAccuracy(ignore=list(p.ignore_label), shown=list(p.output_label), reset=p.reset)


def _yolo_detection_output(message: Message, phase: Phase) -> Layer:
    p = Part(message, "yolo_detection_output_param")
    if not p.HasField("num_classes"):
        raise ArgumentError("the number of classes is not given", required="num_classes", because=YOLO, hint="num_classes: 20")
    return _found(p, message.name, p.num_classes, early=False)


def early_detection_output(message: Message) -> Layer | None:
    """The YOLO v2 layer that had the name DetectionOutput before SSD's came; None where the fields are not its."""
    p = Part(message, "detection_output_param")
    return _found(p, message.name, p.classes, early=True) if p.HasField("classes") else None


def _found(p: Part, name: str, classes: int, *, early: bool) -> Layer:
    if p.coords != 4:
        raise ArgumentError("boxes have four numbers", given={"coords": p.coords}, required="coords: 4", because=YOLO)
    if p.label_map_file:
        log.warning('layer "%s": detections have their labels\' numbers; label_map_file is not read', name)
    return YoloDetectionOutput(
        classes=classes,
        boxes=p.num_box,
        anchors=_anchors(p),
        confidence=p.confidence_threshold,
        overlap=p.nms_threshold,
        early=early,
    )


def _anchors(p: Part) -> list[tuple[float, float]]:
    return list(zip(p.biases[::2], p.biases[1::2], strict=False))


PORTS: dict[str, Callable[[Message, Phase], Layer]] = {
    "CReLU": _crelu,
    "DecodeBBox": _decode_bbox,
    "ImResize": _im_resize,
    "Nms": _nms,
    "Noise": _noise,
    "Region": _region,
    "RegionLoss": _region_loss,
    "SegAccuracy": _seg_accuracy,
    "YoloDetectionOutput": _yolo_detection_output,
}
