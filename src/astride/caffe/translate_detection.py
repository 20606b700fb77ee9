"""The layers that find things: SSD's, Faster R-CNN's and R-FCN's messages to layers."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..errors import ArgumentError, ModelFileError
from ..layers import Layer
from ..layers._boxes import Code
from ..layers._matching import Choice, Match, Matching, Mining
from ..layers.box_annotator_ohem import BoxAnnotatorOHEM
from ..layers.detection_evaluate import DetectionEvaluate
from ..layers.detection_output import DetectionOutput
from ..layers.multibox_loss import ClassLoss, MultiBoxLoss, PlaceLoss
from ..layers.normalize import Normalize
from ..layers.prior_box import PriorBox
from ..layers.proposal import Proposal, Small
from ..layers.psroi_pooling import PSROIPooling
from ..layers.roi_align import Form, ROIAlign
from ..layers.roi_pooling import ROIPooling
from ..layers.smooth_l1_loss import SmoothL1Loss
from ..layers.smooth_l1_loss_ohem import SmoothL1LossOHEM
from ..net import Phase
from ..plan.dense import Normalization
from ..proto import Message, Schema
from .fields import filler
from .state import enum_name
from .translate_ports import early_detection_output

log = logging.getLogger(__name__)

MOST_CHARACTERS = 1000
"""Of the parameters of a layer that is built in."""

MOST_BYTES = 2**26
"""Of a file of image sizes."""


def _part(message: Message, name: str) -> Message:
    """A part of a layer's message that only some forks have. Raises ArgumentError where the dialect in force lacks it."""
    try:
        return getattr(message, name)
    except AttributeError:
        raise ArgumentError(
            "the dialect the network is read in has no such field",
            given={"type": message.type},
            required=name,
            hint="load_caffe(..., dialect=None), which reads what any fork has",
        ) from None


def _classes(p: Message) -> int:
    if not p.HasField("num_classes"):
        raise ArgumentError("the number of classes is not given", required="num_classes", hint="num_classes: 21")
    return int(p.num_classes)


# SSD


def _normalize(message: Message, phase: Phase) -> Layer:
    p = _part(message, "norm_param")
    return Normalize(
        across_spatial=p.across_spatial,
        channel_shared=p.channel_shared,
        eps=p.eps,
        filler=filler(p.scale_filler) if p.HasField("scale_filler") else None,
    )


def _prior_box(message: Message, phase: Phase) -> Layer:
    p = _part(message, "prior_box_param")
    return PriorBox(
        list(p.min_size),
        max_sizes=list(p.max_size),
        aspect_ratios=list(p.aspect_ratio),
        flip=p.flip,
        clip=p.clip,
        variances=list(p.variance) or [0.1],
        image=_pair(p, "img_size", "img_h", "img_w"),
        step=_pair(p, "step", "step_h", "step_w"),
        offset=p.offset,
    )


def _pair(p: Message, both: str, height: str, width: str) -> tuple[Any, Any] | None:
    """A height and a width, from one field or from two; None where neither is there."""
    if p.HasField(height) or p.HasField(width):
        if p.HasField(both):
            raise ArgumentError(
                f"{both} is given, and {height} or {width} too",
                given={name: getattr(p, name) for name in (both, height, width) if p.HasField(name)},
                required=f"{both}, or {height} and {width}",
                because="the SSD fork of Caffe, src/caffe/layers/prior_box_layer.cpp",
            )
        return getattr(p, height), getattr(p, width)
    return (getattr(p, both),) * 2 if p.HasField(both) else None


def _detection_output(message: Message, phase: Phase) -> Layer:
    early = early_detection_output(message)
    if early is not None:
        return early
    p = _part(message, "detection_output_param")
    if p.save_output_param.output_directory or p.visualize:
        log.warning('layer "%s": detections are not written to files nor shown; the top has them all', message.name)
    options: dict[str, Any] = {}
    if p.HasField("confidence_threshold"):
        options["confidence"] = p.confidence_threshold
    if p.nms_param.HasField("top_k"):
        options["top_k"] = p.nms_param.top_k
    if hasattr(p, "objectness_score"):
        options["objectness"] = p.objectness_score
    return DetectionOutput(
        _classes(p),
        shared=p.share_location,
        background=p.background_label_id,
        code=Code(enum_name(p, "code_type")),
        in_target=p.variance_encoded_in_target,
        threshold=p.nms_param.nms_threshold,
        eta=p.nms_param.eta,
        keep_top_k=p.keep_top_k,
        **options,
    )


def _detection_evaluate(message: Message, phase: Phase) -> Layer:
    p = _part(message, "detection_evaluate_param")
    return DetectionEvaluate(
        _classes(p),
        background=p.background_label_id,
        overlap=p.overlap_threshold,
        difficult=p.evaluate_difficult_gt,
        sizes=_image_sizes(p.name_size_file) if p.name_size_file else (),
    )


def _image_sizes(path: str) -> list[tuple[int, int]]:
    """Height and width in every line of `name height width`, with the path as Caffe takes it: from the folder one works in."""
    try:
        if Path(path).stat().st_size > MOST_BYTES:
            raise ModelFileError(
                "the list of image sizes is too large", given={"name_size_file": path}, required=f"<= {MOST_BYTES}"
            )
        words = Path(path).read_text(encoding="utf-8", errors="replace").split()
    except (OSError, ValueError) as error:  # a name with a null byte is a ValueError
        raise ModelFileError(
            "the list of image sizes cannot be read", given={"name_size_file": path}, because=str(error)
        ) from None
    try:
        return [(int(height), int(width)) for height, width in zip(words[1::3], words[2::3], strict=True)]
    except ValueError:
        raise ModelFileError(
            "this is no list of image sizes", given={"name_size_file": path}, required="lines of: name height width"
        ) from None


def _refinedet(message: Message, p: Message) -> bool:
    """Whether a text is RefineDet's: named so, or by the one field that only RefineDet has."""
    named = "refinedet" in Schema.of(message).name.split("+")
    return named or (hasattr(p, "objectness_score") and p.HasField("objectness_score"))


def _multibox_loss(message: Message, phase: Phase) -> Layer:
    p = _part(message, "multibox_loss_param")
    flags = [*message.propagate_down, True, True][:2] if message.propagate_down else [True, True]
    # RefineDet has the field, and it alone reads labels so
    refined = {"objectness": p.objectness_score, "fold": True} if _refinedet(message, p) else {}
    return MultiBoxLoss(
        _classes(p),
        shared=p.share_location,
        background=p.background_label_id,
        code=Code(enum_name(p, "code_type")),
        in_target=p.encode_variance_in_target,
        matching=Matching(
            kind=Match(enum_name(p, "match_type")),
            overlap=p.overlap_threshold,
            from_priors=p.use_prior_for_matching,
            inside_only=p.ignore_cross_boundary_bbox,
        ),
        choice=Choice(
            kind=_mining(p),
            ratio=p.neg_pos_ratio,
            overlap=p.neg_overlap,
            sample=p.sample_size,
            threshold=p.nms_param.nms_threshold if p.HasField("nms_param") else 0.0,
            top_k=p.nms_param.top_k if p.nms_param.HasField("top_k") else -1,
            from_priors=p.use_prior_for_nms,
        ),
        difficult=p.use_difficult_gt,
        place_loss=PlaceLoss(enum_name(p, "loc_loss_type")),
        class_loss=ClassLoss(enum_name(p, "conf_loss_type")),
        place_weight=p.loc_weight,
        agnostic=p.map_object_to_agnostic,
        inside=p.bp_inside,
        parts=(bool(flags[0]), bool(flags[1])),
        normalization=_normalization(message.loss_param) or Normalization.VALID,
        **refined,
    )


def _mining(p: Message) -> Mining:
    """`do_neg_mining` is the older field, which may not contradict `mining_type`."""
    kind = Mining(enum_name(p, "mining_type"))
    if not p.HasField("do_neg_mining"):
        return kind
    if not p.HasField("mining_type"):
        return kind if p.do_neg_mining else Mining.NONE
    if p.do_neg_mining != (kind is not Mining.NONE):
        raise ArgumentError(
            "do_neg_mining says otherwise than mining_type",
            given={"do_neg_mining": p.do_neg_mining, "mining_type": str(kind)},
            because="the SSD fork of Caffe, src/caffe/layers/multibox_loss_layer.cpp",
            hint="mining_type alone",
        )
    return kind


def _normalization(p: Message) -> Normalization | None:
    """What a loss is divided by, of the current field or the older one; None where neither is set."""
    if p.HasField("normalization"):
        return Normalization(enum_name(p, "normalization").lower())
    if p.HasField("normalize"):
        return Normalization.VALID if p.normalize else Normalization.BATCH_SIZE
    return None


# Faster R-CNN and R-FCN


def _smooth_l1_loss(message: Message, phase: Phase) -> Layer:
    """SSD's has no sigma; R-FCN's has a divisor of its own."""
    sigma = getattr(message, "smooth_l1_loss_param").sigma if hasattr(message, "smooth_l1_loss_param") else 1.0  # noqa: B009
    loss = message.loss_param
    if loss.HasField("normalization") and enum_name(loss, "normalization") == "PRE_FIXED":
        return SmoothL1Loss(sigma=sigma, divisor=loss.pre_fixed_normalizer)
    return SmoothL1Loss(sigma=sigma, normalization=_normalization(loss) or Normalization.BATCH_SIZE)


def _smooth_l1_loss_ohem(message: Message, phase: Phase) -> Layer:
    loss = message.loss_param
    if loss.HasField("normalization") and enum_name(loss, "normalization") == "PRE_FIXED":
        return SmoothL1LossOHEM(divisor=loss.pre_fixed_normalizer)
    return SmoothL1LossOHEM(normalization=_normalization(loss) or Normalization.VALID)


def _roi_pooling(message: Message, phase: Phase) -> Layer:
    p = _part(message, "roi_pooling_param")
    return ROIPooling((p.pooled_h, p.pooled_w), scale=p.spatial_scale)


def _psroi_pooling(message: Message, phase: Phase) -> Layer:
    p = _part(message, "psroi_pooling_param")
    return PSROIPooling(p.output_dim, p.group_size, scale=p.spatial_scale)


def _roi_align(message: Message, phase: Phase) -> Layer:
    if hasattr(message, "roi_pooling_param") and message.HasField("roi_pooling_param"):
        p = message.roi_pooling_param
        padding = p.pad_ratio if hasattr(p, "pad_ratio") else 0.0
        return ROIAlign((p.pooled_h, p.pooled_w), scale=p.spatial_scale, form=Form.GRID, padding=padding)
    p = _part(message, "roi_align_param")
    if p.roi_end_mode:
        raise ArgumentError("only regions that end at their last corner are sampled", given={"roi_end_mode": p.roi_end_mode})
    return ROIAlign((p.pooled_h, p.pooled_w), scale=p.spatial_scale, samples=p.sampling_ratio)


def _box_annotator(message: Message, phase: Phase) -> Layer:
    p = _part(message, "box_annotator_ohem_param")
    return BoxAnnotatorOHEM(p.roi_per_img, ignore_label=p.ignore_label)


def _proposal(message: Message, phase: Phase) -> Layer:
    """PVANet's, in C++."""
    p = _part(message, "proposal_param")
    return Proposal(
        stride=p.feat_stride,
        base=p.base_size,
        ratios=list(p.ratio) or (0.5, 1.0, 2.0),
        scales=list(p.scale) or (8.0, 16.0, 32.0),
        least=p.min_size,
        before=p.pre_nms_topn,
        after=p.post_nms_topn,
        threshold=p.nms_thresh,
        small=Small.LAST,
    )


def python_proposal(message: Message, phase: Phase) -> Layer:
    """py-faster-rcnn's `rpn.proposal_layer`, a layer of type Python that is built in, with its configuration's defaults.

    Raises ArgumentError: a param_str that says more than this layer knows.
    """
    given = _param_str(message.python_param.param_str)
    known = {"feat_stride": "stride", "scales": "scales", "ratios": "ratios"}
    unknown = sorted(given.keys() - known.keys())
    if unknown or not isinstance(given.get("feat_stride", 16.0), float):
        raise ArgumentError(
            "the proposal layer has no such parameter" if unknown else "feat_stride is a number",
            given={"param_str": message.python_param.param_str},
            required=f"of {', '.join(known)}",
            hint="\"'feat_stride': 16\"",
        )
    train = phase is Phase.TRAIN
    options = {known[name]: value for name, value in given.items()}
    return Proposal(before=12000 if train else 6000, after=2000 if train else 300, **options)  # type: ignore[arg-type]


_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_ENTRY = re.compile(
    rf"""\s*(?:-\s*)?['"]?(?P<name>[A-Za-z_]\w*)['"]?\s*:\s*(?:!!python/tuple\s*)?"""
    rf"""(?:(?P<number>{_NUMBER})|[\[(](?P<list>\s*{_NUMBER}(?:\s*,\s*{_NUMBER})*\s*,?\s*)[\])])\s*(?:,|;|\n|$)"""
)


def _param_str(text: str) -> dict[str, float | list[float]]:
    """The numbers and lists of numbers of a param_str, in the part of YAML that such strings use. Raises ArgumentError."""
    found: dict[str, float | list[float]] = {}
    if len(text) > MOST_CHARACTERS:
        raise ArgumentError("param_str is longer than any", given={"characters": len(text)}, required=f"<= {MOST_CHARACTERS}")
    rest = text.strip().removeprefix("{").removesuffix("}")
    at = 0
    while rest[at:].strip():
        entry = _ENTRY.match(rest, at)
        if entry is None:
            raise ArgumentError(
                "a parameter is no number nor a list of numbers",
                given={"param_str": text},
                required="'name': number, or 'name': [numbers]",
                hint="\"'feat_stride': 16\"",
            )
        numbers = [float(word) for word in re.findall(_NUMBER, entry["number"] or entry["list"])]
        found[entry["name"]] = numbers[0] if entry["number"] else numbers
        at = entry.end()
    return found


DETECTION: dict[str, Callable[[Message, Phase], Layer]] = {
    "BoxAnnotatorOHEM": _box_annotator,
    "DetectionEvaluate": _detection_evaluate,
    "DetectionOutput": _detection_output,
    "MultiBoxLoss": _multibox_loss,
    "Normalize": _normalize,
    "PSROIPooling": _psroi_pooling,
    "PriorBox": _prior_box,
    "Proposal": _proposal,
    "ROIAlign": _roi_align,
    "ROIPooling": _roi_pooling,
    "SmoothL1Loss": _smooth_l1_loss,
    "SmoothL1LossOHEM": _smooth_l1_loss_ohem,
}

BUILT_IN_PYTHON: Mapping[tuple[str, str], Callable[[Message, Phase], Layer]] = {
    ("rpn.proposal_layer", "ProposalLayer"): python_proposal,
}
"""(module, class) of Python layers that are built in, since networks that have them are many and their code is gone."""
