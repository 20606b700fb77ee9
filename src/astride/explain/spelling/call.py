"""A call as somebody wrote it, `MaxPool2d(3, 2, ceil_mode=True)`, as a name and values. Nothing of it is executed."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

from ...errors import ArgumentError

LONGEST = 2000
"""Characters of one call."""
ASSIGNED = re.compile(r"^[A-Za-z_]\w*\s*=(?!=)\s*")
"""What a line begins with that keeps the call's result, `y = `."""


@dataclass(frozen=True, slots=True)
class Word:
    """A name where a value stands: `x`, `lax.max`, `P.Pooling.MAX`, `-jnp.inf`."""

    text: str

    def __str__(self) -> str:
        return self.text

    @property
    def last(self) -> str:
        """`MAX` of `P.Pooling.MAX`."""
        return self.text.rsplit(".", 1)[-1]


@dataclass(frozen=True, slots=True)
class Written:
    """The parts of a call. `function` is the last part of the name it was called by."""

    text: str
    function: str
    positional: tuple[Any, ...]
    keywords: dict[str, Any]


def parsed(text: str) -> Written:
    """The parts of a call written in Python, or of a line that keeps its result.

    Raises ArgumentError: it is no call, or an argument is neither literal nor name.
    """
    if len(text) > LONGEST:
        raise ArgumentError("the call is too long to be one", given={"characters": len(text)}, required=f"at most {LONGEST}")
    try:
        node = ast.parse(ASSIGNED.sub("", text.strip()), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ArgumentError(
            "this is not a call in Python's syntax", given={"call": text}, because=str(error), hint="MaxPool2d(3, stride=2)"
        ) from error
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Call):
        node = node.func  # a layer made and applied, MaxPool2d(3)(x)
    name = _dotted(node.func) if isinstance(node, ast.Call) else None
    if name is None or not isinstance(node, ast.Call):
        raise ArgumentError("this is not one call of a function", given={"call": text}, hint="MaxPool2d(3, stride=2)")
    if any(keyword.arg is None for keyword in node.keywords) or any(isinstance(arg, ast.Starred) for arg in node.args):
        raise ArgumentError("a call is read without * and **", given={"call": text}, hint="every argument written out")
    keywords = {str(keyword.arg): _value(keyword.value, text) for keyword in node.keywords}
    return Written(text.strip(), name.rsplit(".", 1)[-1], tuple(_value(arg, text) for arg in node.args), keywords)


def _value(node: ast.expr, text: str) -> Any:
    """A literal's value; a name as Word; `dict(a=1)` and `float("inf")`, which are written where literals are meant."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        pass
    name = _dotted(node)
    if name is not None:
        return Word(name)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _value(node.operand, text)
        if isinstance(inner, Word):
            return Word(f"-{inner.text}")
        if isinstance(inner, int | float):
            return -inner
    if isinstance(node, ast.Tuple | ast.List):
        return tuple(_value(item, text) for item in node.elts)
    if isinstance(node, ast.Call) and _dotted(node.func) == "dict" and not node.args:
        return {str(keyword.arg): _value(keyword.value, text) for keyword in node.keywords if keyword.arg}
    if isinstance(node, ast.Call) and _dotted(node.func) == "float" and len(node.args) == 1 and not node.keywords:
        number = ast.unparse(node.args[0]).strip("'\"").lower()
        if number.lstrip("+-") in ("inf", "infinity", "nan"):
            return float(number)
    raise ArgumentError(
        "an argument is neither a literal nor a name",
        given={"call": text, "argument": ast.unparse(node)},
        because="a call is read, not run",
        hint="its value",
    )


def _dotted(node: ast.expr) -> str | None:
    """`lax.max` of a name or of names joined by dots."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = _dotted(node.value)
        return None if inner is None else f"{inner}.{node.attr}"
    return None
