"""Operators that slide a window: thin calls of astride.like.onnx, whose signatures say which inputs and attributes there are."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ...like import onnx
from .record import Call, Operator

OURS = frozenset({"opset", "return_indices"})
"""Keyword arguments of astride.like.onnx that are no attributes."""


def _operator(function: Callable[..., Any]) -> Operator:
    """The entry of a function with one result."""
    return Operator(lambda call: [function(*call.inputs, **call.attributes, opset=call.opset)], *_reads(function))


def _reads(function: Callable[..., Any]) -> tuple[int, int, frozenset[str], frozenset[str]]:
    """(inputs, those required, attributes, those needed) of a function of astride.like.onnx."""
    parameters = inspect.signature(function).parameters.values()
    inputs = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    named = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.name not in OURS]
    needed = frozenset(p.name for p in named if p.default is p.empty)
    return len(inputs), sum(p.default is p.empty for p in inputs), frozenset(p.name for p in named), needed


def _max_pool(call: Call) -> list[Any]:
    """Indices only where the node asks for them."""
    (x,) = call.inputs
    assert x is not None
    if len(call.wanted) > 1 and call.wanted[1]:
        return list(onnx.MaxPool(x, **call.attributes, opset=call.opset, return_indices=True))
    return [onnx.MaxPool(x, **call.attributes, opset=call.opset), None][: len(call.wanted)]


ONE_RESULT = (
    onnx.AveragePool,
    onnx.Col2Im,
    onnx.Conv,
    onnx.ConvInteger,
    onnx.ConvTranspose,
    onnx.DeformConv,
    onnx.GlobalAveragePool,
    onnx.GlobalLpPool,
    onnx.GlobalMaxPool,
    onnx.LpPool,
    onnx.MaxUnpool,
    onnx.QLinearConv,
    onnx.RoiAlign,
)
WINDOWS: dict[str, Operator] = {
    **{function.__name__: _operator(function) for function in ONE_RESULT},
    "MaxPool": Operator(_max_pool, *_reads(onnx.MaxPool)),
}
