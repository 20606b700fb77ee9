"""The layers that normalize: Caffe's messages to layers."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import ArgumentError
from ..layers import Layer
from ..layers.batch_norm import BatchNorm
from ..layers.lrn import LRN
from ..layers.mvn import MVN
from ..net import Phase
from ..proto import Message
from .state import enum_name


def _batch_norm(message: Message, phase: Phase) -> Layer:
    p = message.batch_norm_param
    for spec in message.param:
        if spec.HasField("lr_mult") and spec.lr_mult != 0:
            raise ArgumentError(
                "the statistics of a batch normalization are not learned",
                given={"lr_mult": spec.lr_mult},
                required=f"lr_mult == 0: {spec.lr_mult:g}",
                because="Caffe, src/caffe/layers/batch_norm_layer.cpp",
                hint="param { lr_mult: 0 }, or none at all",
            )
    return BatchNorm(
        use_global_stats=p.use_global_stats if p.HasField("use_global_stats") else phase is Phase.TEST,
        moving_average_fraction=p.moving_average_fraction,
        eps=p.eps,
    )


def _lrn(message: Message, phase: Phase) -> Layer:
    p = message.lrn_param
    if p.local_size % 2 == 0:
        raise ArgumentError(
            "the window of a local response normalization has a middle",
            given={"local_size": p.local_size},
            required=f"local_size odd: {p.local_size}",
            because="Caffe, src/caffe/layers/lrn_layer.cpp",
            hint=f"local_size: {p.local_size + 1}",
        )
    if enum_name(p, "norm_region") == "WITHIN_CHANNEL":
        # An average pooling whose divisor is the constant square of the size, and 1 in place of k.
        return LRN(size=p.local_size, alpha=p.alpha / p.local_size**2, beta=p.beta, axes=(2, 3))
    return LRN(size=p.local_size, alpha=p.alpha / p.local_size, beta=p.beta, k=p.k)


def _mvn(message: Message, phase: Phase) -> Layer:
    p = message.mvn_param
    return MVN(
        normalize_variance=p.normalize_variance,
        across_channels=p.across_channels,
        eps=p.eps,
        exact_gradient=False,
    )


NORMS: dict[str, Callable[[Message, Phase], Layer]] = {
    "BatchNorm": _batch_norm,
    "LRN": _lrn,
    "MVN": _mvn,
}
