"""Whether bytes can be what a schema says: every field that it does not have, or has as something else.

For choosing among schemas that gave one number to different fields. Works on the small bytes that `wire_cut` leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from astride.proto.limits import MAX_DEPTH, MAX_FAULTS
from astride.proto.schema import Field, Schema
from astride.proto.wire_fields import FIXED32, FIXED64, LENGTH, VARINT, WireFault, WireField, fields, varint

_WIRES = {"float": FIXED32, "double": FIXED64, "string": LENGTH, "bytes": LENGTH}


class Surprise(NamedTuple):
    """One field that does not fit: of which message, in which layer (by name), and what is wrong with it."""

    message: str
    number: int
    layer: str
    problem: str

    def __str__(self) -> str:
        where = f' in layer "{self.layer}"' if self.layer else ""
        return f"field {self.number} of {self.message}{where} {self.problem}"


def survey(data: bytes, message: str, schema: Schema, most: int = MAX_FAULTS) -> list[Surprise]:
    """The first fields of a binary message, and of the messages in it, that the schema cannot explain."""
    view = memoryview(data)
    return list(islice(_walk(view, message, 0, len(view), schema, "", 1), most))


@dataclass(slots=True)
class Reading:
    """What a schema takes bytes for: the fields that are set, as (message, name), and how many sound like their layer's type."""

    used: set[tuple[str, str]] = field(default_factory=set)
    alike: int = 0

    @classmethod
    def of(cls, data: bytes, schema: Schema) -> Reading:
        """A binary NetParameter as a schema without surprises reads it."""
        reading = cls()
        reading._collect(memoryview(data), "NetParameter", 0, len(data), schema)
        return reading

    def _collect(self, view: memoryview, message: str, start: int, end: int, schema: Schema) -> None:
        kind = _string(view, start, end, schema.type(message).fields["type"].number) if message == "LayerParameter" else ""
        for item in fields(view, start, end):
            known = schema.by_number[message].get(item.number)
            if known is not None:
                self.used.add((message, known.name))
                if known.kind == "message" and item.wire == LENGTH:
                    self.alike += bool(kind) and _alike(known.name, kind)
                    self._collect(view, known.type, item.body, item.stop, schema)


def _alike(name: str, kind: str) -> bool:
    """convolution_param and Deconvolution, norm_param and Normalize."""
    stem, kind = name.removesuffix("_param").replace("_", ""), kind.lower()
    return stem in kind or kind in stem


def _walk(view: memoryview, message: str, start: int, end: int, schema: Schema, layer: str, depth: int) -> Iterator[Surprise]:
    known = schema.by_number[message]
    if message in ("LayerParameter", "V1LayerParameter"):
        layer = _string(view, start, end, schema.type(message).fields["name"].number)
    try:
        for item in fields(view, start, end):
            entry = known.get(item.number)
            if entry is None:
                yield Surprise(message, item.number, layer, "is unknown")
            elif (problem := _misfit(view, item, entry, message, schema)) is not None:
                yield Surprise(message, item.number, layer, f"({entry.name}) {problem}")
            elif entry.kind == "message" and depth < MAX_DEPTH:
                yield from _walk(view, entry.type, item.body, item.stop, schema, layer, depth + 1)
    except WireFault as fault:
        yield Surprise(message, 0, layer, f"is broken: {fault.problem}")


def _misfit(view: memoryview, item: WireField, known: Field, message: str, schema: Schema) -> str | None:
    """Why the bytes of a field cannot be of its type, or None where they can."""
    wire = LENGTH if known.kind == "message" else _WIRES.get(known.type, VARINT)
    packed = item.wire == LENGTH and known.repeated and wire != LENGTH
    if item.wire != wire and not packed:
        return f"is no {known.type}"
    if known.type == "string":
        try:
            str(view[item.body : item.stop], "utf-8")
        except UnicodeDecodeError:
            return "is no text"
    if known.kind == "enum" and not packed:
        value, _ = varint(view, item.body, item.stop)
        if value not in schema.enum_values(message, known).values():
            return f"is no {known.type}: {value}"
    if known.type == "bool" and not packed and varint(view, item.body, item.stop)[0] > 1:
        return "is no bool"
    return None


def _string(view: memoryview, start: int, end: int, number: int) -> str:
    try:
        for item in fields(view, start, end):
            if item.number == number and item.wire == LENGTH:
                return str(view[item.body : item.stop], "utf-8", "replace")
    except WireFault:
        # A broken layer has no name; what is broken is said by the walk itself.
        pass
    return ""
