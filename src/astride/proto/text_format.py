"""Messages written as canonical protobuf text: two spaces an indent, fields by number, numbers as short as they read back."""

from __future__ import annotations

import math

import numpy as np

from astride.proto.schema import Field, Message, Schema

_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "'": "\\'", "\\": "\\\\"}


def format(message: Message) -> str:
    """The text of a message, ending in a line break; the empty string for an empty message."""
    lines: list[str] = []
    _write(message, Schema.of(message), "", lines)
    return "".join(lines)


def number(value: float, *, single: bool) -> str:
    """The shortest decimal that reads back as the same float32 (`single`) or float64."""
    if not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    for digits in range(6, 10) if single else range(15, 18):
        text = f"{value:.{digits}g}"
        if (np.float32(text) == np.float32(value)) if single else (float(text) == value):
            break
    return text


def _write(message: Message, schema: Schema, indent: str, lines: list[str]) -> None:
    entry = schema.messages[message.DESCRIPTOR.name]
    for descriptor, value in message.ListFields():
        field = entry.fields[descriptor.name]
        names = {}
        if field.kind == "enum":
            names = {number: name for name, number in schema.enum_values(entry.name, field).items()}
        for item in value if field.repeated else [value]:
            if field.kind == "message":
                lines.append(f"{indent}{field.name} {{\n")
                _write(item, schema, indent + "  ", lines)
                lines.append(f"{indent}}}\n")
            else:
                lines.append(f"{indent}{field.name}: {names[item] if names else _scalar(field, item)}\n")


def _scalar(field: Field, value: str | bytes | float | int | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + "".join(map(_character, value)) + '"'
    if isinstance(value, bytes):
        return '"' + "".join(_character(chr(byte)) if byte < 128 else f"\\{byte:03o}" for byte in value) + '"'
    if field.type in ("float", "double"):
        return number(value, single=field.type == "float")
    return str(value)


def _character(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    return char if ord(char) >= 32 and ord(char) != 127 else f"\\{ord(char):03o}"
