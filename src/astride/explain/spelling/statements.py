"""Calls that are not written in Python: Swift, C++, prototxt, configuration files. Their parts, nothing executed."""

from __future__ import annotations

import re
from typing import Any

from ...errors import ArgumentError
from .call import LONGEST, Word, Written, parsed


def short_enough(text: str) -> str:
    """The text. Raises ArgumentError: longer than a call is."""
    if len(text) > LONGEST:
        raise ArgumentError("the call is too long to be one", given={"characters": len(text)}, required=f"at most {LONGEST}")
    return text.strip()


def swift(text: str) -> Written:
    """Swift's statements as one call: labels as keywords, and what is set afterwards, `pool.edgeMode = .clamp` as edgeMode.

    The call is that of the last statement that is an encoding or a class whose name begins with MPS and is no descriptor.
    """
    function, keywords = "", {}
    for line in re.split(r"[;\n]", short_enough(text)):
        line = line.split("//")[0].strip()
        if not line or ".encode(" in line:
            continue
        line = re.sub(r"^(let|var)\s+", "", line)
        target, _, value = line.partition("=") if re.match(r"[\w.]+\s*=[^=]", line) else ("", "", line)
        call = parsed(_labels(value)) if "(" in value else None
        name = target.strip().rsplit(".", 1)[-1] if "." in target else ""
        if name:
            keywords[name] = call.keywords if call is not None else _value(value)
        elif call is not None:
            keywords |= {label: v for label, v in call.keywords.items() if not isinstance(v, Word)}
            function = function if call.function.endswith("Descriptor") else call.function
    return Written(text.strip(), function or "nothing", (), keywords)


def _labels(text: str) -> str:
    """`kernelWidth: 3` as `kernelWidth=3`, `.clamp` and `[.sizeSame]` as names."""
    named = re.sub(r"(\w+)\s*:\s*", r"\1=", text.strip())
    return re.sub(r"(?<![\w.)\]])\.(\w+)", r"\1", named)


def _value(text: str) -> Any:
    word = text.strip().lstrip(".")
    return int(word) if re.fullmatch(r"-?\d+", word) else Word(word)


def cpp(text: str) -> Written:
    """C++: braces as tuples, `a::b` as a.b, `O/2` as a name; the function without its last part, `::desc`."""
    text = re.sub(r"^auto\s+", "", text.strip())
    python = re.sub(r"\b([A-Z])/(\d+)", r"\1_\2", short_enough(text).rstrip(";")).replace("::", ".")
    python = re.sub(r"\{([^{},]*)\}", r"(\1,)", python).replace("{", "(").replace("}", ")")
    call = parsed(python)
    name = python.split("(")[0].split("=")[-1].strip()
    parts = name.split(".")
    function = parts[-2] if parts[-1] in ("desc", "primitive_desc") and len(parts) > 1 else parts[-1]
    return Written(text.strip(), function, call.positional, call.keywords)


def prototxt(text: str) -> Written:
    """A layer of a prototxt, `layer { type: "Pooling" pooling_param { kernel_size: 3 } }`, as a call of its type."""
    tokens = re.findall(r'"[^"]*"|\'[^\']*\'|[\w.+-]+|[{}:]', short_enough(text))
    fields, rest = _fields(tokens, 0, text)
    if rest != len(tokens):
        raise _no_layer(text)
    layer = fields.get("layer", fields.get("layers", fields))
    if not isinstance(layer, dict) or "type" not in layer:
        raise _no_layer(text)
    kept = {name: value for name, value in layer.items() if name.endswith("_param") and name != "param"}
    return Written(text.strip(), str(layer["type"]).capitalize(), (), kept)


def _fields(tokens: list[str], at: int, text: str, depth: int = 0) -> tuple[dict[str, Any], int]:
    """Fields up to a closing brace; what is said several times is a list."""
    found: dict[str, Any] = {}
    while at < len(tokens) and tokens[at] != "}":
        name = tokens[at]
        if not re.fullmatch(r"[A-Za-z_]\w*", name) or at + 1 >= len(tokens) or depth > 8:
            raise _no_layer(text)
        at += 2 if tokens[at + 1] == ":" else 1
        if at >= len(tokens):
            raise _no_layer(text)
        value: Any
        if tokens[at] == "{":
            value, at = _fields(tokens, at + 1, text, depth + 1)
            if at >= len(tokens):
                raise _no_layer(text)
        else:
            value = literal(tokens[at])
        at += 1
        found[name] = [*_several(found[name]), value] if name in found else value
    return found, at


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _no_layer(text: str) -> ArgumentError:
    return ArgumentError(
        "this is not one layer of a prototxt",
        given={"call": text},
        hint='layer { type: "Pooling" pooling_param { pool: MAX kernel_size: 3 stride: 2 } }',
    )


def literal(token: str) -> Any:
    """A number, true or false, a quoted text, or a word as text."""
    if token[:1] in "\"'":
        return token[1:-1]
    if token in ("true", "false"):
        return token == "true"
    for kind in (int, float):
        try:
            return kind(token)
        except ValueError:
            continue
    return token


def pairs(text: str, split: str) -> dict[str, Any]:
    """`size=3 stride=2`. Raises ArgumentError: something that is no pair."""
    found: dict[str, Any] = {}
    for part in re.split(split, text):
        name, equals, value = part.partition("=")
        if not part.strip() or part.strip().startswith(("#", ";")):
            continue
        if not equals:
            raise ArgumentError("a setting is name=value", given={"setting": part.strip()})
        found[name.strip()] = literal(value.strip())
    return found
