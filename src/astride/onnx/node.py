"""One ONNX node on NumPy arrays: read its attributes, find its operator, call it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..backends.protocol import Array
from ..errors import ArgumentError, AstrideError, UnsupportedError
from ..rules._onnx import opset_of
from .operators import OPERATORS, Call

FIELDS = {1: "f", 2: "i", 3: "s", 4: "t", 6: "floats", 7: "ints", 8: "strings"}
"""AttributeProto's types that hold plain values (onnx/onnx.proto), and the field each is in."""


def run_node(node: Any, inputs: Sequence[Array | None], opset: int = 22) -> list[Any]:
    """The outputs of one node of ONNX's default domain, in the node's order.

    `node` is an onnx.NodeProto or anything with `op_type` and `attribute`, which is a sequence of AttributeProtos or a
    mapping of names to values; `output`, where it has one, says how many outputs are asked for. `inputs` are in the node's
    order, None for an absent one; trailing ones may be left out. `opset` is the default domain's version, 1 to 28.

    Raises    UnsupportedError (a NotImplementedError): another domain, an operator that is not claimed, or one the opset
              does not have in the form that is claimed
              ArgumentError: attributes that the operator does not have, or values it refuses; inputs missing or too many;
              an opset newer than onnx 1.23.2's
              ArrayError: arrays that do not fit each other
    Example
    >>> import numpy as np, astride
    >>> from types import SimpleNamespace
    >>> node = SimpleNamespace(op_type="MaxPool", attribute={"kernel_shape": [2]})
    >>> astride.onnx.run_node(node, [np.array([[[1, 3, 2]]], dtype="float32")])
    [array([[[3., 3.]]], dtype=float32)]
    """
    name = str(node.op_type)
    domain = str(getattr(node, "domain", "") or "")
    if domain not in ("", "ai.onnx"):
        raise UnsupportedError(f"there are no operators of domain {domain!r}", operator=name)
    if name not in OPERATORS:
        raise UnsupportedError(
            f"{name} is not claimed", operator=name, rules="onnx", required=f"one of {', '.join(sorted(OPERATORS))}"
        )
    operator = OPERATORS[name]
    arrays = list(inputs)
    if not operator.required <= len(arrays) <= operator.inputs or any(a is None for a in arrays[: operator.required]):
        raise ArgumentError(
            "the node has inputs missing, or too many",
            given={"inputs": len(arrays), "absent": [i for i, a in enumerate(arrays) if a is None]},
            required=f"{operator.required} to {operator.inputs} inputs, the first {operator.required} present: {len(arrays)}",
            operator=name,
        )
    arrays += [None] * (operator.inputs - len(arrays))
    given = attributes(node)
    unknown = sorted(given.keys() - operator.attributes)
    if unknown:
        raise ArgumentError(
            f"{name} has no attribute {unknown[0]!r}",
            given={n: given[n] for n in unknown},
            required=f"one of {', '.join(sorted(operator.attributes)) or 'none'}",
            operator=name,
        )
    missing = sorted(operator.needed - given.keys())
    if missing:
        raise ArgumentError(
            f"{name} needs the attribute {missing[0]!r}", given=given, required=", ".join(sorted(operator.needed)), operator=name
        )
    wanted = [bool(output) for output in getattr(node, "output", ())] or [True]
    try:
        return operator.run(Call(arrays, given, wanted, opset_of(opset)))
    except AstrideError as error:
        raise error.within(operator=name, rules="onnx")


def attributes(node: Any) -> dict[str, Any]:
    """A node's attributes as Python values: numbers, text, lists of them. Raises UnsupportedError for graphs and the like."""
    found = node.attribute
    if isinstance(found, Mapping):
        return dict(found)
    return {str(attribute.name): _value(attribute) for attribute in found}


def _value(attribute: Any) -> Any:
    field = FIELDS.get(int(attribute.type))
    if field is None:
        raise UnsupportedError(
            f"attribute {attribute.name!r} holds no plain value",
            given={"type": int(attribute.type)},
            required=f"one of AttributeProto's types {', '.join(map(str, FIELDS))}",
        )
    value = getattr(attribute, field)
    if field == "s":
        return value.decode("utf-8") if isinstance(value, bytes) else str(value)
    if field == "strings":
        return [v.decode("utf-8") if isinstance(v, bytes) else str(v) for v in value]
    return list(value) if field in ("floats", "ints") else value
