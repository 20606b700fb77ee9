"""LLVM's types by their own words ("i64", "float", "<8 x float>", "ptr"): sizes, lanes, and constants written out."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "half": 16, "bfloat": 16, "float": 32, "double": 64, "ptr": 64}
FLOATS = frozenset({"half", "bfloat", "float", "double"})
SHORT = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64", "ptr": "p0"}


def vector(lanes: int, element: str) -> str:
    """The type of `lanes` elements; of one lane, the element itself."""
    return f"<{lanes} x {element}>" if lanes > 1 else element


@lru_cache(None)
def element(kind: str) -> str:
    """What a vector type is made of; a scalar type itself."""
    return kind.split(" x ")[1].rstrip(">") if kind.startswith("<") else kind


@lru_cache(None)
def lanes(kind: str) -> int:
    """How many elements a type has."""
    return int(kind[1:].split(" x ")[0]) if kind.startswith("<") else 1


def size(kind: str) -> int:
    """Bytes of a value of this type in memory."""
    return BITS[element(kind)] // 8 * lanes(kind)


def is_float(kind: str) -> bool:
    return element(kind) in FLOATS


def literal(kind: str, value: Any) -> str:
    """A constant as LLVM writes it: the same in every lane, or one value a lane from a sequence."""
    if kind.startswith("<"):
        values = list(value) if isinstance(value, Sequence) else [value] * lanes(kind)
        inner = element(kind)
        return "<" + ", ".join(f"{inner} {literal(inner, v)}" for v in values) + ">"
    if kind == "i1":
        return "true" if value else "false"
    if kind == "ptr":
        return "null"
    if kind not in FLOATS:
        return str(int(value))
    if kind == "half":
        return "0xH" + struct.pack(">e", value).hex().upper()
    if kind == "bfloat":
        return "0xR" + struct.pack(">f", value)[:2].hex().upper()
    if kind == "float" and value == value:
        value = struct.unpack("f", struct.pack("f", value))[0]
    return "0x" + struct.pack(">d", value).hex().upper()
