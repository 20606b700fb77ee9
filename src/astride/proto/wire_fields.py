"""Protobuf's wire format, one field at a time, over memory that is never copied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

VARINT, FIXED64, LENGTH, GROUP, GROUP_END, FIXED32 = range(6)


class WireFault(Exception):
    """Bytes that are no protobuf. Caught by the readers, which know in which message they are."""

    def __init__(self, problem: str, at: int, *, missing: int = 0) -> None:
        super().__init__(problem)
        self.problem = problem
        self.at = at
        self.missing = missing


class WireField(NamedTuple):
    """A field's number and wire type; its tag begins at `at`, its value covers `body:stop`."""

    number: int
    wire: int
    at: int
    body: int
    stop: int


def varint(view: memoryview, at: int, end: int) -> tuple[int, int]:
    """The number that begins at `at`, and where it ends."""
    value = shift = 0
    for position in range(at, min(end, at + 10)):
        byte = view[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position + 1
        shift += 7
    if end - at < 10:
        raise WireFault("a number is cut off", at, missing=1)
    raise WireFault("a number of more than ten bytes", at)


def encode_varint(value: int) -> bytes:
    """The bytes of a number that is not negative."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def fields(view: memoryview, start: int, end: int) -> Iterator[WireField]:
    """The fields between two places, not looking into messages; a group counts as one field."""
    at = start
    while at < end:
        field = _field(view, at, end)
        if field.wire == GROUP:
            field = field._replace(stop=_group_end(view, field, end))
        elif field.wire == GROUP_END:
            raise WireFault("the end of a group that never began", at)
        yield field
        at = field.stop


def _field(view: memoryview, at: int, end: int) -> WireField:
    tag, body = varint(view, at, end)
    number, wire = tag >> 3, tag & 7
    if not 0 < number < 2**29:
        raise WireFault(f"field number {number}, which no message can have", at)
    if wire == VARINT:
        _, stop = varint(view, body, end)
    elif wire == LENGTH:
        size, body = varint(view, body, end)
        stop = body + size
        if stop > end:
            raise WireFault(f"field {number} is {size} bytes long and only {end - body} follow", at, missing=stop - end)
    elif wire in (FIXED32, FIXED64):
        stop = body + (4 if wire == FIXED32 else 8)
        if stop > end:
            raise WireFault(f"field {number} is cut off", at, missing=stop - end)
    elif wire in (GROUP, GROUP_END):
        stop = body
    else:
        raise WireFault(f"wire type {wire}, which does not exist", at)
    return WireField(number, wire, at, body, stop)


def _group_end(view: memoryview, group: WireField, end: int) -> int:
    open_groups = [group.number]
    at = group.body
    while open_groups:
        if at >= end:
            raise WireFault("a group is never closed", group.at, missing=1)
        field = _field(view, at, end)
        if field.wire == GROUP:
            if len(open_groups) >= 32:
                raise WireFault("groups are nested too deep", at)
            open_groups.append(field.number)
        elif field.wire == GROUP_END and open_groups.pop() != field.number:
            raise WireFault("a group is closed by another one's end", at)
        at = field.stop
    return at
