"""One scalar or enum value of protobuf text, turned into what its field holds."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from astride.proto.schema import Field, nearest

_RANGES = {
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}
_BOOLS = {"true": True, "t": True, "True": True, "1": True, "false": False, "f": False, "False": False, "0": False}
_ESCAPES = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92, "'": 39, '"': 34, "?": 63}
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|[xX]([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")


class BadValue(Exception):
    """A value its field cannot hold. Caught by the parser, which knows where it stands."""

    def __init__(self, problem: str, hint: str | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint


def scalar(field: Field, kind: str, text: str, negative: bool) -> float | int | bool:
    """A number or bool. `kind` and `text` are the token's, `negative` says whether a minus stood before it."""
    if field.type == "bool":
        return _bool(field, kind, text, negative)
    if field.type in ("float", "double"):
        return _float(field, kind, text, negative)
    return _integer(field, kind, text, negative)


def enum(field: Field, kind: str, text: str, negative: bool, values: Mapping[str, int]) -> int:
    """An enum value, by name or by number."""
    if kind == "name" and not negative and text in values:
        return values[text]
    if kind == "number" and re.fullmatch(r"[0-9]+", text):
        number = -int(text) if negative else int(text)
        if number in values.values():
            return number
    shown = f"{'-' if negative else ''}{text}"
    near = nearest(text.upper(), values) or nearest(text, values)
    known = ", ".join(values) if len(values) <= 12 else f"{len(values)} names, such as {', '.join(list(values)[:6])}"
    raise BadValue(f"{shown} is no value of {field.name} ({field.type}: {known})", near)


def string(field: Field, literals: Sequence[str]) -> str | bytes:
    """Adjacent literals, quotes still on, joined and unescaped."""
    raw = b"".join(_unescaped(literal[1:-1]) for literal in literals)
    if field.type == "bytes":
        return raw
    if b"\0" in raw:
        # Names of layers and files: C ends them there, and no file system has one.
        raise BadValue(f"the string of {field.name} has a null byte", "leave it out")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise BadValue(f"the string of {field.name} is not UTF-8 at its byte {error.start}", "save the file as UTF-8") from error


def _unescaped(text: str) -> bytes:
    def byte(match: re.Match[str]) -> str:
        octal, hexa, short, long, letter = match.groups()
        if short or long:
            code = int(short or long, 16)
            if code > 0x10FFFF or 0xD800 <= code < 0xE000:
                raise BadValue(f"{match.group()} is no character", None)
            return chr(code)
        if letter is not None and letter not in _ESCAPES:
            raise BadValue(f"unknown escape \\{letter} in a string", r"write a backslash as \\")
        code = int(octal, 8) if octal else int(hexa, 16) if hexa else _ESCAPES[str(letter)]
        if code > 255:
            raise BadValue(f"{match.group()} is more than one byte", None)
        # One byte; above 127 it travels as a surrogate, as undecodable bytes of the file itself do.
        return chr(code) if code < 128 else chr(0xDC00 + code)

    return _ESCAPE.sub(byte, text).encode("utf-8", "surrogateescape") if "\\" in text else text.encode("utf-8", "surrogateescape")


def _integer(field: Field, kind: str, text: str, negative: bool) -> int:
    if kind == "number" and re.fullmatch(r"0[xX][0-9A-Fa-f]+", text):
        value = int(text, 16)
    elif kind == "number" and re.fullmatch(r"0[0-7]+", text):
        value = int(text, 8)
    elif kind == "number" and re.fullmatch(r"0|[1-9][0-9]{0,30}", text):
        value = int(text)
    else:
        shown = f"-{text}" if negative else text
        raise BadValue(f"{field.name} takes a whole number ({field.type}), not {shown}", _whole(kind, text))
    value = -value if negative else value
    low, high = _RANGES[field.type]
    if not low <= value <= high or (negative and low == 0 and value == 0):
        raise BadValue(f"{'-' if negative else ''}{text} is out of the range of {field.name} ({field.type}: {low} to {high})")
    return value


def _whole(kind: str, text: str) -> str | None:
    if kind == "number" and "x" not in text.lower():
        value = float(text.rstrip("fF"))
        return str(int(value)) if math.isfinite(value) and value == int(value) and abs(value) < 2**63 else None
    return None


def _float(field: Field, kind: str, text: str, negative: bool) -> float:
    sign = -1.0 if negative else 1.0
    if kind == "name" and text.lower() in ("inf", "infinity", "inff", "infinityf"):
        return sign * math.inf
    if kind == "name" and text.lower() in ("nan", "nanf"):
        return math.nan
    if kind != "number":
        raise BadValue(f"{field.name} takes a number ({field.type}), not {text}")
    if re.match(r"0[0-9xX]", text):
        # Old and new protobuf read these as octal, decimal, or not at all: no reading is safe.
        raise BadValue(f"{field.name} takes a decimal number ({field.type}), not {text}", "write it without the leading 0")
    return sign * float(text.rstrip("fF"))


def _bool(field: Field, kind: str, text: str, negative: bool) -> bool:
    word = text
    if kind == "number" and re.fullmatch(r"0[xX]?0*[01]", text):
        word = text[-1]
    if negative or word not in _BOOLS:
        hint = text.lower() if text.lower() in _BOOLS else None
        raise BadValue(f"{field.name} takes true or false, not {'-' if negative else ''}{text}", hint)
    return _BOOLS[word]
