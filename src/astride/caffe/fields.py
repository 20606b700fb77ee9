"""Fields of Caffe's layer messages that many layer types have: what the translations of all types read with."""

from __future__ import annotations

from typing import Any

from ..layers import Filler, VarianceNorm
from ..proto import Message
from .state import enum_name


def filler(message: Message) -> Filler:
    """What a FillerParameter says."""
    return Filler(
        kind=message.type,
        value=message.value,
        min=message.min,
        max=message.max,
        mean=message.mean,
        std=message.std,
        sparse=message.sparse,
        variance_norm=VarianceNorm(enum_name(message, "variance_norm")),
    )


def present(message: Message, *names: str) -> dict[str, Any]:
    """The optional fields that are set."""
    return {name: getattr(message, name) for name in names if message.HasField(name)}


def window_fields(p: Message) -> dict[str, Any]:
    """A ConvolutionParameter's fields that say where its windows are."""
    repeated = {name: tuple(getattr(p, name)) for name in ("kernel_size", "stride", "pad", "dilation")}
    return repeated | present(p, "kernel_h", "kernel_w", "stride_h", "stride_w", "pad_h", "pad_w")


__all__ = ["filler", "present", "window_fields"]
