"""The losses: Caffe's messages to layers."""

from __future__ import annotations

from collections.abc import Callable

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..layers import Layer
from ..layers.contrastive_loss import ContrastiveLoss
from ..layers.euclidean_loss import EuclideanLoss
from ..layers.hinge_loss import HingeLoss, Norm
from ..layers.infogain_loss import InfogainLoss
from ..layers.multinomial_logistic_loss import MultinomialLogisticLoss
from ..layers.sigmoid_cross_entropy_loss import SigmoidCrossEntropyLoss
from ..layers.softmax_loss import SoftmaxWithLoss
from ..layers.softmax_loss_ohem import SoftmaxWithLossOHEM
from ..net import Phase
from ..plan.dense import Normalization
from ..proto import Message, read_blob
from .fields import known
from .state import enum_name


def _contrastive(message: Message, phase: Phase) -> Layer:
    p = message.contrastive_loss_param
    return ContrastiveLoss(margin=p.margin, legacy=p.legacy_version)


def _euclidean(message: Message, phase: Phase) -> Layer:
    return EuclideanLoss()


def _hinge(message: Message, phase: Phase) -> Layer:
    return HingeLoss(norm=Norm(enum_name(message.hinge_loss_param, "norm")))


def _infogain(message: Message, phase: Phase) -> Layer:
    if message.loss_param.HasField("normalize"):
        raise ArgumentError(
            "this layer has no normalize",
            given={"normalize": message.loss_param.normalize},
            required="normalization",
            because="Caffe, src/caffe/layers/infogain_loss_layer.cpp",
            hint=f"normalization: {'VALID' if message.loss_param.normalize else 'BATCH_SIZE'}",
        )
    return InfogainLoss(
        matrix=_matrix(message) if len(message.bottom) < 3 else None,
        axis=message.infogain_loss_param.axis,
        ignore_label=_ignored(message),
        normalization=_normalization(message, Normalization.VALID),
    )


def _matrix(message: Message) -> Array | None:
    """The blob that the text names, with the path as Caffe takes it: from the folder one works in."""
    source = message.infogain_loss_param.source
    return read_blob(source).data if source else None


def _multinomial_logistic(message: Message, phase: Phase) -> Layer:
    return MultinomialLogisticLoss()


def _sigmoid_cross_entropy(message: Message, phase: Phase) -> Layer:
    return SigmoidCrossEntropyLoss(
        ignore_label=_ignored(message), normalization=_normalization(message, Normalization.BATCH_SIZE)
    )


def _softmax(message: Message, phase: Phase) -> Layer:
    p = message.loss_param
    # SegNet's: weights that are given, or in its first version one over the labels' numbers.
    weighted = bool(known(p, "weight_by_label_freqs").get("weight_by_label_freqs", False))
    weights = list(p.class_weighting) if weighted and "class_weighting" in p.DESCRIPTOR.fields_by_name else []
    fixed = p.HasField("normalization") and enum_name(p, "normalization") == "PRE_FIXED"  # R-FCN's
    kind = SoftmaxWithLossOHEM if message.type == SoftmaxWithLossOHEM.type else SoftmaxWithLoss
    return kind(
        axis=message.softmax_param.axis,
        ignore_label=_ignored(message),
        normalization=Normalization.NONE if fixed else _normalization(message, Normalization.VALID),
        divisor=p.pre_fixed_normalizer if fixed else None,
        class_weights=weights or None,
        by_frequency=weighted and not weights,
    )


def _ignored(message: Message) -> int | None:
    p = message.loss_param
    return int(p.ignore_label) if p.HasField("ignore_label") else None


def _normalization(message: Message, default: Normalization) -> Normalization:
    """`normalize` is the older field; it counts only where `normalization` is not set."""
    p = message.loss_param
    if p.HasField("normalization"):
        return Normalization(enum_name(p, "normalization").lower())
    if p.HasField("normalize"):
        return Normalization.VALID if p.normalize else Normalization.BATCH_SIZE
    return default


LOSSES: dict[str, Callable[[Message, Phase], Layer]] = {
    "ContrastiveLoss": _contrastive,
    "EuclideanLoss": _euclidean,
    "HingeLoss": _hinge,
    "InfogainLoss": _infogain,
    "MultinomialLogisticLoss": _multinomial_logistic,
    "SigmoidCrossEntropyLoss": _sigmoid_cross_entropy,
    "SoftmaxWithLoss": _softmax,
    "SoftmaxWithLossOHEM": _softmax,
}
