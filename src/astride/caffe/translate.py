"""From Caffe's layer messages to layers: one function a type, in one table.

What is Caffe's own about a layer, its fields and defaults, ends here: layers get explicit options, windows get a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from ..errors import AstrideError, Listing, UnknownLayerError
from ..layers import Layer
from ..layers.accuracy import Accuracy
from ..layers.convolution import Convolution
from ..layers.deconvolution import Deconvolution
from ..layers.dropout import Dropout
from ..layers.inner_product import InnerProduct
from ..layers.input import Input
from ..layers.memory_data import MemoryData
from ..layers.pooling import Pooling
from ..layers.softmax import Softmax
from ..net import Node, ParamSpec, Phase
from ..proto import Message, Position, nearest
from ..rules import caffe as rules
from .fields import filler, pooling_fields, window_fields
from .python_layers import Allowed, PythonClasses, python_layer
from .state import enum_name
from .translate_data import DATA
from .translate_detection import DETECTION
from .translate_elementwise import ELEMENTWISE
from .translate_forks import FORKS
from .translate_layout import LAYOUT
from .translate_losses import LOSSES
from .translate_norms import NORMS
from .translate_recurrent import RECURRENT

Translator = Callable[[Message, Phase], Layer]


def node(message: Message, phase: Phase, line: int | None, python: PythonClasses) -> Node:
    """The layer of a message in its place in the graph. Errors gain the layer's name, its type and the line."""
    # A layer's own phase, which few set, is stronger than the network's.
    own = Phase(enum_name(message, "phase")) if message.HasField("phase") else phase
    try:
        layer = python_layer(message, own, python) if message.type == "Python" else TRANSLATORS[message.type](message, own)
    except AstrideError as error:
        error.within(operator=f'layer "{message.name}" ({message.type})', given={"line": line} if line else None)
        raise
    return place(message, layer, line)


def place(message: Message, layer: Layer, line: int | None) -> Node:
    """A layer with the names and multipliers its message has."""
    return Node(
        name=message.name,
        layer=layer,
        bottoms=list(message.bottom),
        tops=list(message.top),
        loss_weights=list(message.loss_weight),
        propagate_down=list(message.propagate_down),
        params=[_spec(spec) for spec in message.param],
        line=line,
    )


Unknown = tuple[int | None, int | None, str, str]
"""A layer of a type nobody knows: line and column of its type, its name, its type."""


def unknown_types(layers: Iterable[tuple[Message, Position | None]]) -> list[Unknown]:
    """The layers of types that nobody here knows, of layers given with the places of their types."""
    return [
        (*(place or (None, None)), message.name, message.type) for message, place in layers if message.type not in TRANSLATORS
    ]


def check_types(layers: Iterable[tuple[Message, Position | None]]) -> None:
    """Raise UnknownLayerError that lists every layer of a type nobody here knows, with its place."""
    unknown = unknown_types(layers)
    if not unknown:
        return
    many = len(unknown) > 1
    raise UnknownLayerError(
        f"{len(unknown)} layers are of types that are not known here" if many else "a layer is of a type that is not known here",
        unknown=unknown,
        given={"layers": listed(unknown)},
        required=f"one of {', '.join(sorted(TRANSLATORS))}",
        hint="take the layer out, or give a data layer a source: load_caffe(..., sources={name: source})",
    )


def listed(unknown: Sequence[Unknown]) -> Listing:
    """Lines that say which layers they are, with the known type most like each."""
    lines = []
    for line, column, name, kind in unknown[:_SHOWN]:
        near = nearest(kind, TRANSLATORS)
        place = f"line {line}, column {column}: " if line else ""
        lines.append(f'{place}layer "{name}" of type "{kind}"' + (f", perhaps {near}" if near else ""))
    return Listing([*lines, f"... and {len(unknown) - _SHOWN} more"] if len(unknown) > _SHOWN else lines)


_SHOWN = 100
"""Layers in one message; looking for the type most like an unknown one takes milliseconds."""


def _spec(message: Message) -> ParamSpec:
    return ParamSpec(
        name=message.name,
        lr_mult=message.lr_mult if message.HasField("lr_mult") else None,
        decay_mult=message.decay_mult if message.HasField("decay_mult") else None,
        permissive=enum_name(message, "share_mode") == "PERMISSIVE",
    )


def _convolved(message: Message, kind: type[Convolution], rule: Callable[..., Any]) -> Layer:
    p = message.convolution_param
    return kind(
        partial(rule, num_output=p.num_output, group=p.group, **window_fields(p)),
        axis=p.axis,
        bias=p.bias_term,
        weight_filler=filler(p.weight_filler),
        bias_filler=filler(p.bias_filler),
    )


def _convolution(message: Message, phase: Phase) -> Layer:
    return _convolved(message, Convolution, rules.convolution)


def _deconvolution(message: Message, phase: Phase) -> Layer:
    return _convolved(message, Deconvolution, rules.deconvolution)


def _pooling(message: Message, phase: Phase) -> Layer:
    p = message.pooling_param
    pool = enum_name(p, "pool")
    rule = partial(rules.pooling, pool=pool, phase=phase.value, **pooling_fields(p))
    return Pooling(rule, random=pool == "STOCHASTIC" and phase is Phase.TRAIN)


def _inner_product(message: Message, phase: Phase) -> Layer:
    p = message.inner_product_param
    return InnerProduct(
        p.num_output,
        axis=p.axis,
        bias=p.bias_term,
        transpose=p.transpose,
        weight_filler=filler(p.weight_filler),
        bias_filler=filler(p.bias_filler),
    )


def _dropout(message: Message, phase: Phase) -> Layer:
    return Dropout(ratio=message.dropout_param.dropout_ratio, training=phase is Phase.TRAIN)


def _softmax(message: Message, phase: Phase) -> Layer:
    return Softmax(axis=message.softmax_param.axis)


def _accuracy(message: Message, phase: Phase) -> Layer:
    p = message.accuracy_param
    return Accuracy(top_k=p.top_k, axis=p.axis, ignore_label=p.ignore_label if p.HasField("ignore_label") else None)


def _input(message: Message, phase: Phase) -> Layer:
    return Input([tuple(int(n) for n in shape.dim) for shape in message.input_param.shape])


def _memory_data(message: Message, phase: Phase) -> Layer:
    p = message.memory_data_param
    return MemoryData(p.batch_size, [(p.channels, p.height, p.width), ()])


def _python(message: Message, phase: Phase) -> Layer:
    return python_layer(message, phase, Allowed())


TRANSLATORS: dict[str, Translator] = {
    "Accuracy": _accuracy,
    "Convolution": _convolution,
    "Deconvolution": _deconvolution,
    "Dropout": _dropout,
    "InnerProduct": _inner_product,
    "Input": _input,
    "MemoryData": _memory_data,
    "Pooling": _pooling,
    "Python": _python,
    "Softmax": _softmax,
    **DATA,
    **DETECTION,
    **ELEMENTWISE,
    **FORKS,
    **LAYOUT,
    **LOSSES,
    **NORMS,
    **RECURRENT,
}
