"""Fields of forks that change a network's numbers and that nothing here computes: said, not passed over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...errors import UnsupportedError
from ...proto import Message, Schema
from . import ANY, FORKS

LOSSES = ("SmoothL1Loss", "SmoothL1LossOHEM", "SoftmaxWithLoss", "SoftmaxWithLossOHEM")

COMPUTED = {(kind, "LossParameter.normalization=PRE_FIXED") for kind in LOSSES}
"""(layer type, field and value) of what is refused elsewhere and computed there."""

CENTERNET = "CenterNet in Caffe: it changed from one revision of its only fork to the next"

UNDEFINED = {
    **dict.fromkeys(
        ("CenterGridLoss", "CenterNetfocalSigmoidWithLoss", "CenterObjectLoss", "CenternetDetectionOutput"), CENTERNET
    ),
    "Yolov3": "the loss of YOLO v3 in MobileNet-YOLO: it changed from one revision to the next, under the same fields",
}
"""Layer types that cannot be computed as they were trained, since no one definition is known."""


def check_refused(message: Message, layers: Iterable[tuple[Message, int | None]] = ()) -> None:
    """Raise UnsupportedError that lists every such field of a network or solver itself and of layers, given with their lines.

    Layers of types without a definition go first.
    """
    layers = list(layers)
    undefined = [
        (f"line {line}: " if line else "") + f'"{layer.name}" of type "{layer.type}" ({UNDEFINED[layer.type]})'
        for layer, line in layers
        if layer.type in UNDEFINED
    ]
    if undefined:
        raise UnsupportedError(
            "layers are of types that have no one definition",
            given={"layers": undefined},
            required="types that mean one thing",
            hint="take the layer out, or write it as a Python layer: load_caffe(..., python_layers=(MyLayer,))",
        )
    found: list[tuple[int | None, str]] = [(None, where) for where in _refused(message, inner=False)]
    found += [(line, where) for layer, line in layers for where in _refused(layer)]
    if found:
        raise UnsupportedError(
            f"{len(found)} fields of this fork ask for what nothing here computes",
            given={"fields": [f"line {line}: {where}" if line else where for line, where in found]},
            required="the fork's default, or layers that do the same",
        )


def _refused(message: Message, *, inner: bool = True) -> Iterator[str]:
    refused = _table(Schema.of(message).name)
    if refused:
        name = getattr(message, "name", "")
        for owner, field, value, default in _set(message, inner):
            why = refused.get(f"{owner}.{field}") or refused.get(f"{owner}.{field}={value}")
            computed = (getattr(message, "type", ""), f"{owner}.{field}={value}") in COMPUTED
            if why is not None and value != default and not computed:
                yield (f'"{name}" ' if name else "") + f"{field}: {value} ({why})"


def _table(dialect: str) -> dict[str, str]:
    names = list(FORKS) if dialect == ANY else [name for name in dialect.split("+") if name in FORKS]
    return {key: why for name in names for key, why in FORKS[name].refused.items()}


def _set(message: Message, inner: bool) -> Iterator[tuple[str, str, object, object]]:
    """Every scalar field that is set in a message or, with `inner`, in one below it: its message, name, value and default."""
    for field, value in message.ListFields():
        if field.message_type is None:
            named = field.enum_type.values_by_number if field.enum_type is not None else {}
            known = value in named if not isinstance(value, bool) and isinstance(value, int) else False
            yield message.DESCRIPTOR.name, field.name, named[value].name if known else value, field.default_value
        elif inner and field.message_type.name != "BlobProto":
            for below in [value] if hasattr(value, "ListFields") else value:
                yield from _set(below, inner)
