"""The layers that forks of Caffe have for classification, segmentation and optical flow: their messages to layers."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from ..errors import ArgumentError, UnsupportedError
from ..layers import Layer
from ..layers.axpy import Axpy
from ..layers.bn import BN, Statistics
from ..layers.convolution_depthwise import ConvolutionDepthwise
from ..layers.correlation import Correlation
from ..layers.correlation1d import Correlation1D
from ..layers.depthwise_conv import DepthwiseConv
from ..layers.depthwise_convolution import DepthwiseConvolution
from ..layers.flow_warp import FlowWarp
from ..layers.hard_sigmoid import HardSigmoid
from ..layers.hard_swish import HardSwish
from ..layers.interp import Interp
from ..layers.l1_loss import L1Loss
from ..layers.mish import Mish
from ..layers.pad import Pad
from ..layers.relu6 import ReLU6
from ..layers.reorg import Reorg
from ..layers.resample import Filter, Resample
from ..layers.resize import Resize
from ..layers.shuffle_channel import ShuffleChannel
from ..layers.unpooling import Unpooling
from ..layers.upsample import Upsample
from ..layers.yolov3_detection_output import Yolov3DetectionOutput
from ..net import Phase
from ..plan import ConvPlan, Shape
from ..proto import Message
from ..rules import caffe as rules
from .fields import Part, filler, window_fields
from .translate_ports import PORTS


def _axpy(message: Message, phase: Phase) -> Layer:
    return Axpy()


SEGNET_EPS, SEGNET_FIELDS = 1e-9, {"scale_filler", "shift_filler", "bn_mode"}
PSPNET_FIELDS = {"slope_filler", "bias_filler", "momentum", "eps", "frozen"}


def _bn(message: Message, phase: Phase) -> Layer:
    """Which of the three forks' layers it is, its fields say; without any, the number of its param blocks."""
    p = Part(message, "bn_param")
    given = p.given()
    if given & PSPNET_FIELDS or (not given and len(message.param) > 2):
        used = phase is Phase.TEST or p.frozen
        return BN(
            statistics=Statistics.RUNNING if used else Statistics.BATCH,
            momentum=p.momentum,
            moves=not used,
            frozen=p.frozen,
            eps=p.eps,
            axes=2,
            scale_filler=_scale_filler(p, "slope_filler"),
            shift_filler=filler(p.bias_filler),
        )
    fillers: dict[str, Any] = {"scale_filler": _scale_filler(p, "scale_filler"), "shift_filler": filler(p.shift_filler)}
    if given <= SEGNET_FIELDS and len(message.param) < 3:
        folded = p.enum("bn_mode") == "INFERENCE"
        return BN(statistics=Statistics.NONE if folded else Statistics.BATCH, eps=SEGNET_EPS, **fillers)
    used = phase is Phase.TEST and p.moving_average
    statistics = Statistics.RUNNING if used else Statistics.BATCH
    return BN(statistics=statistics, momentum=1 - p.decay, moves=phase is Phase.TRAIN, eps=p.var_eps, **fillers)


def _scale_filler(p: Part, name: str) -> Any:
    """Scales begin as the text says; where it says nothing, at one."""
    return filler(getattr(p, name)) if p.HasField(name) else None


def _convolution_depthwise(message: Message, phase: Phase) -> Layer:
    return _per_channel(message, ConvolutionDepthwise, outputs=0, group=0)


def _depthwise_convolution(message: Message, phase: Phase) -> Layer:
    p = message.convolution_param
    kind = DepthwiseConv if message.type == DepthwiseConv.type else DepthwiseConvolution
    return _per_channel(message, kind, outputs=p.num_output, group=p.group if p.HasField("group") else 0)


def _per_channel(message: Message, kind: Callable[..., Layer], *, outputs: int, group: int) -> Layer:
    p = message.convolution_param
    return kind(
        partial(_grouped, outputs=outputs, group=group, fields=window_fields(p)),
        axis=p.axis,
        bias=p.bias_term,
        weight_filler=filler(p.weight_filler),
        bias_filler=filler(p.bias_filler),
    )


def _grouped(shape: Shape, dtype: str, *, outputs: int, group: int, fields: dict[str, Any]) -> ConvPlan:
    """A convolution in which the channels stand for the outputs, the groups, or both where those are 0."""
    channels = shape[1]
    return rules.convolution(shape, dtype, num_output=outputs or channels, group=group or channels, **fields)


def _correlation(message: Message, phase: Phase) -> Layer:
    return Correlation(**_correlation_fields(message))


def _correlation1d(message: Message, phase: Phase) -> Layer:
    return Correlation1D(**_correlation_fields(message), direction=Part(message, "correlation_param").single_direction)


def _correlation_fields(message: Message) -> dict[str, Any]:
    p = Part(message, "correlation_param")
    return {
        "kernel": p.kernel_size,
        "reach": p.max_displacement,
        "pad": p.pad,
        "stride": p.stride_1,
        "step": p.stride_2,
        "subtract": p.enum("correlation_type") == "SUBTRACT",
    }


def _flow_warp(message: Message, phase: Phase) -> Layer:
    return FlowWarp(fill=math.nan if Part(message, "flow_warp_param").enum("fill_value") == "NOT_A_NUMBER" else 0.0)


def _hard_sigmoid(message: Message, phase: Phase) -> Layer:
    p = Part(message, "hard_sigmoid_param")
    return HardSigmoid(alpha=p.alpha, beta=p.beta)


def _hard_swish(message: Message, phase: Phase) -> Layer:
    return HardSwish()


def _interp(message: Message, phase: Phase) -> Layer:
    p = Part(message, "interp_param")
    if p.HasField("interp_type") and p.interp_type not in ("bilinear", "nearest"):
        raise ArgumentError(
            "there is no such interpolation",
            given={"interp_type": p.interp_type},
            required="bilinear or nearest",
            because="PSPNet's Caffe, src/caffe/layers/interp_layer.cpp",
            hint='interp_type: "bilinear"',
        )
    sized = p.HasField("height") and p.HasField("width")
    factors = {name: getattr(p, f"{name}_factor") for name in ("shrink", "zoom") if p.HasField(f"{name}_factor")}
    if sized and len(factors) != 1:
        factors = {}  # a size is stronger than both factors, and one factor stronger than a size
    elif not sized and not factors and len(message.bottom) < 2:
        raise ArgumentError(
            "the top has no size",
            given={"interp_param": sorted(p.given())},
            required="height and width, a zoom_factor, a shrink_factor, or a second bottom",
            because="DeepLab's Caffe, src/caffe/layers/interp_layer.cpp",
            hint="interp_param { zoom_factor: 8 }",
        )
    size = (p.height, p.width) if sized and not factors else None
    crop = {"crop_begin": -p.pad_beg, "crop_end": -p.pad_end}
    return Interp(size=size, nearest=p.interp_type == "nearest", **factors, **crop)


def _l1_loss(message: Message, phase: Phase) -> Layer:
    p = Part(message, "l1_loss_param")
    return L1Loss(
        per_location=p.l2_per_location,
        mean_of_channels=p.l2_prescale_by_channels,
        by_entries=p.normalize_by_num_entries,
        eps=p.epsilon,
        plateau=p.plateau,
    )


def _mish(message: Message, phase: Phase) -> Layer:
    return Mish()


def _pad(message: Message, phase: Phase) -> Layer:
    p = Part(message, "pad_param")
    if len(p.paddings) % 2:
        raise ArgumentError(
            "each axis needs two pads",
            given={"paddings": list(p.paddings)},
            required=f"an even number: {len(p.paddings)}",
            hint="paddings: before paddings: behind, for each axis",
        )
    return Pad(list(zip(p.paddings[::2], p.paddings[1::2], strict=True)), value=p.constant_values)


def _relu6(message: Message, phase: Phase) -> Layer:
    return ReLU6(slope=Part(message, "relu6_param").negative_slope)


def _reorg(message: Message, phase: Phase) -> Layer:
    p = Part(message, "reorg_param")
    return Reorg(p.stride, reverse=p.reverse)


def _resample(message: Message, phase: Phase) -> Layer:
    p = Part(message, "resample_param")
    kind = p.enum("type").lower()
    if kind not in list(Filter):
        raise ArgumentError(
            "there is no such filter",
            given={"type": kind.upper()},
            required="NEAREST, LINEAR or CUBIC",
            because="FlowNet's Caffe, src/caffe/layers/resample_layer.cpp",
            hint="type: LINEAR",
        )
    sized = p.HasField("height") and p.HasField("width")
    return Resample(filter=Filter(kind), size=(p.height, p.width) if sized else None, antialias=p.antialias)


def _resize(message: Message, phase: Phase) -> Layer:
    p = Part(message, "resize_param")
    if p.is_pyramid_test:
        return Resize(scale=(p.out_height_scale, p.out_width_scale))
    return Resize(size=(p.height, p.width))


def _shuffle_channel(message: Message, phase: Phase) -> Layer:
    return ShuffleChannel(Part(message, "shuffle_channel_param").group)


def _unpooling(message: Message, phase: Phase) -> Layer:
    p = Part(message, "unpooling_param")
    sides = {
        name: (getattr(p, f"{name}_h"), getattr(p, f"{name}_w")) if p.HasField(f"{name}_h") else (whole, whole)
        for name, whole in (("kernel", p.kernel_size), ("stride", p.stride), ("pad", p.pad), ("unpool", p.unpool_size))
    }
    if any(sides["pad"]):
        raise UnsupportedError(
            "values go back to images without padding",
            given={"pad": sides["pad"]},
            required="pad: 0",
            because="DeconvNet's Caffe, src/caffe/layers/unpooling_layer.cpp",
        )
    return Unpooling(kernel=sides["kernel"], stride=sides["stride"], size=sides["unpool"] if any(sides["unpool"]) else None)


def _upsample(message: Message, phase: Phase) -> Layer:
    p = Part(message, "upsample_param")
    if p.HasField("upsample_h") and p.HasField("upsample_w"):
        return Upsample(size=(p.upsample_h, p.upsample_w))
    # SegNet doubles unless told otherwise; the YOLO ports, whose layer has one bottom, leave the size.
    scale = p.scale if p.HasField("scale") or len(message.bottom) > 1 else 1
    both = (p.scale_h, p.scale_w) if p.HasField("scale_h") and p.HasField("scale_w") else (scale, scale)
    return Upsample(scale=both, less=(int(p.pad_out_h), int(p.pad_out_w)))


def _yolov3_detection_output(message: Message, phase: Phase) -> Layer:
    p = Part(message, "yolov3_detection_output_param")
    groups = p.mask_group_num
    size = len(p.mask) // groups if groups else 0
    return Yolov3DetectionOutput(
        classes=p.num_classes,
        boxes=p.num_box,
        anchors=list(zip(p.biases[::2], p.biases[1::2], strict=False)),
        masks=[list(p.mask[size * g : size * (g + 1)]) for g in range(groups)],
        scales=list(p.anchors_scale),
        confidence=p.confidence_threshold,
        overlap=p.nms_threshold,
    )


FORKS: dict[str, Callable[[Message, Phase], Layer]] = {
    "Axpy": _axpy,
    "BN": _bn,
    "ConvolutionDepthwise": _convolution_depthwise,
    "Correlation": _correlation,
    "Correlation1D": _correlation1d,
    "DepthwiseConv": _depthwise_convolution,
    "DepthwiseConvolution": _depthwise_convolution,
    "FlowWarp": _flow_warp,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _hard_swish,
    "Interp": _interp,
    "L1Loss": _l1_loss,
    "Mish": _mish,
    "Pad": _pad,
    "ReLU6": _relu6,
    "Reorg": _reorg,
    "Resample": _resample,
    "Resize": _resize,
    "ShuffleChannel": _shuffle_channel,
    "Unpooling": _unpooling,
    "Upsample": _upsample,
    "Yolov3DetectionOutput": _yolov3_detection_output,
    **PORTS,
}
