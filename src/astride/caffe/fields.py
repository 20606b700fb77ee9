"""Fields of Caffe's layer messages that many layer types have: what the translations of all types read with."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..layers import Filler, VarianceNorm
from ..proto import Message
from .dialects import schema
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
    """A ConvolutionParameter's fields that say where its windows are. What is dilation now was `hole` in DeepLab's Caffe."""
    repeated = {name: tuple(getattr(p, name)) for name in ("kernel_size", "stride", "pad", "dilation")}
    holes = known(p, "hole", "hole_h", "hole_w")
    if holes:
        if repeated["dilation"]:
            given = {"dilation": repeated["dilation"], **holes}
            raise ArgumentError("dilation and hole say the same thing", given=given, hint="one of them")
        both = holes.pop("hole", 1)
        repeated["dilation"] = (holes.get("hole_h", both), holes.get("hole_w", both)) if holes else (both,)
    return repeated | present(p, "kernel_h", "kernel_w", "stride_h", "stride_w", "pad_h", "pad_w")


def known(message: Message, *names: str) -> dict[str, Any]:
    """The optional fields that are set, among those that this message's dialect has."""
    return present(message, *(name for name in names if name in message.DESCRIPTOR.fields_by_name))


_POOLING = ("kernel_size", "kernel_h", "kernel_w", "stride", "stride_h", "stride_w", "pad", "pad_h", "pad_w", "global_pooling")


def pooling_fields(p: Message) -> dict[str, Any]:
    """A PoolingParameter's fields that say where its windows are, as BVLC has them.

    Forks say ceil_mode for round_mode, true for CEIL; Intel's kernel_size, stride and pad are one number or one for each axis.
    """
    given: dict[str, Any] = {}
    for name in _POOLING:
        value = getattr(p, name)
        if isinstance(value, int | bool):
            given |= present(p, name)
        elif len(value) == 1:
            given[name] = value[0]
        elif len(value) == 2:
            stem = name.removesuffix("_size")
            given |= {f"{stem}_h": value[0], f"{stem}_w": value[1]}
        elif len(value):
            raise ArgumentError(
                f"pooling has two spatial axes, {name} {len(value)} values", given={name: tuple(value)}, hint="two"
            )
    rounding = known(p, "ceil_mode")
    if not rounding:
        return given | {"round_mode": enum_name(p, "round_mode")}
    if p.HasField("round_mode"):
        raise ArgumentError("round_mode and ceil_mode say the same thing", given={"ceil_mode": p.ceil_mode}, hint="one of them")
    return given | {"round_mode": "CEIL" if rounding["ceil_mode"] else "FLOOR"}


class Part:
    """A part of a layer's message that some dialects lack, or have with fewer fields: what is not there is not given."""

    def __init__(self, message: Message, name: str) -> None:
        known = name in message.DESCRIPTOR.fields_by_name
        blank = getattr(schema().message("LayerParameter")(), name)
        self._sources = (getattr(message, name), blank) if known else (blank,)

    def HasField(self, name: str) -> bool:
        """Whether the field is set."""
        return bool(self._source(name).HasField(name))

    def given(self) -> set[str]:
        """The names of the fields that are set."""
        return {field.name for field, _ in self._sources[0].ListFields()}

    def enum(self, name: str) -> str:
        """The name of an enumeration's value."""
        return enum_name(self._source(name), name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source(name), name)

    def _source(self, name: str) -> Any:
        return next((m for m in self._sources if name in m.DESCRIPTOR.fields_by_name), self._sources[-1])


__all__ = ["Part", "filler", "known", "pooling_fields", "present", "window_fields"]
