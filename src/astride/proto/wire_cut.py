"""A binary message taken apart: its blobs' numbers as views into the file, everything else as a small message.

One walk over the bytes checks what protobuf would check later without saying where: lengths, wire types, text
encoding, nesting, and that nothing asks for more than a real file does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from astride.errors import ModelFileError
from astride.proto.blobs import PAYLOADS, RAW, RAW_TYPES, BlobArray, BlobFault, Pieces, Raw, blob_array
from astride.proto.limits import MAX_DEPTH, MAX_FIELDS, MAX_FILE_BYTES, MAX_LAYERS, MAX_MESSAGES, MAX_TEXT_BYTES
from astride.proto.schema import Field, Schema
from astride.proto.wire_fields import FIXED32, FIXED64, LENGTH, VARINT, WireFault, WireField, encode_varint, fields, varint

_MAX_PIECES = 10_000


@dataclass(frozen=True, slots=True)
class _Place:
    """A message on the way down: which element of which field, and its bytes."""

    message: str
    field: str
    index: int
    start: int
    end: int


@dataclass(slots=True)
class Cut:
    """`rest`: the message's bytes without blob arrays. `blobs`: (field, index) at the top -> its blobs in file order."""

    rest: bytes
    blobs: dict[tuple[str, int], list[BlobArray]] = field(default_factory=dict)


def cut(view: memoryview, message_name: str, schema: Schema, source: str) -> Cut:
    """Take a binary message apart. A BlobProto itself comes back as the blob at ("", 0)."""
    cutter = _Cutter(view, schema, source)
    try:
        return cutter.run(message_name)
    except WireFault as fault:
        raise cutter.error(fault) from fault
    except BlobFault as fault:
        raise ModelFileError(f"{source}: {cutter.where()}: {fault.problem}", hint=fault.hint) from fault


def check(view: memoryview, message_name: str, schema: Schema, source: str) -> None:
    """Only the walk: raise for anything that is not a sound message."""
    cutter = _Cutter(view, schema, source)
    try:
        cutter.enter(message_name, "", 0, 0, len(view))
        cutter.walk(message_name, 0, len(view), cut_blobs=False)
    except WireFault as fault:
        raise cutter.error(fault) from fault


class _Cutter:
    def __init__(self, view: memoryview, schema: Schema, source: str) -> None:
        self.view = view
        self.schema = schema
        self.source = source
        self.way: list[_Place] = []
        self.messages = 0
        self.fields = 0
        self.rest_bytes = 0
        self.blobs: dict[tuple[str, int], list[BlobArray]] = {}

    def run(self, message_name: str) -> Cut:
        size = len(self.view)
        if size > MAX_FILE_BYTES:
            raise ModelFileError(
                f"{self.source}: too long for a protobuf file", required=f"at most {MAX_FILE_BYTES} bytes: {size}", hint=_SMALLER
            )
        self.enter(message_name, "", 0, 0, size)
        rest = self.blob(0, size) if message_name == "BlobProto" else self.walk(message_name, 0, size, cut_blobs=True)
        return Cut(rest, self.blobs)

    def enter(self, message: str, name: str, index: int, start: int, end: int) -> None:
        if len(self.way) >= MAX_DEPTH:
            raise WireFault(f"messages are nested deeper than {MAX_DEPTH}", start)
        self.messages += 1
        if self.messages > MAX_MESSAGES or (name in ("layer", "layers") and index >= MAX_LAYERS):
            raise WireFault(f"more than {MAX_LAYERS} layers or {MAX_MESSAGES} messages: no real network has so many", start)
        self.way.append(_Place(message, name, index, start, end))

    def walk(self, message: str, start: int, end: int, *, cut_blobs: bool) -> bytes:
        """Check the fields of the message entered last; with `cut_blobs` return its bytes without blob arrays."""
        known = self.schema.by_number[message]
        carriers = self.schema.blob_carriers.get(message, {}) if cut_blobs else {}
        counts: dict[int, int] = {}
        rest = bytearray()
        copied = start
        for item in fields(self.view, start, end):
            self.fields += 1
            if self.fields > MAX_FIELDS:
                raise WireFault(f"more than {MAX_FIELDS} fields: no real network has so many", item.at)
            schema_field = known.get(item.number)
            if schema_field is None or item.wire != LENGTH:
                continue
            if schema_field.kind == "message":
                index = counts[item.number] = counts.get(item.number, -1) + 1
                self.enter(schema_field.type, schema_field.name, index, item.body, item.stop)
                if item.number in carriers:
                    self.keep(rest, copied, item.at)
                    inner = self.inner(schema_field, item)
                    rest += encode_varint(item.number << 3 | LENGTH) + encode_varint(len(inner)) + inner
                    copied = item.stop
                elif item.body < item.stop:
                    self.walk(schema_field.type, item.body, item.stop, cut_blobs=False)
                self.way.pop()
            elif schema_field.type == "string":
                self.check_string(schema_field, item)
        if cut_blobs:
            self.keep(rest, copied, end)
        return bytes(rest)

    def inner(self, schema_field: Field, item: WireField) -> bytes:
        if schema_field.type == "BlobProto":
            return self.blob(item.body, item.stop)
        return self.walk(schema_field.type, item.body, item.stop, cut_blobs=True)

    def keep(self, rest: bytearray, start: int, end: int) -> None:
        """Copy bytes that are no blob numbers. They become messages, which take more memory than the file."""
        self.rest_bytes += end - start
        if self.rest_bytes > MAX_TEXT_BYTES:
            raise WireFault(f"more than {MAX_TEXT_BYTES} bytes besides the blobs' numbers: no real network has so many", start)
        rest += self.view[start:end]

    def blob(self, start: int, end: int) -> bytes:
        """Cut one BlobProto: note its arrays, return the rest."""
        pieces: Pieces = {}
        raw = Raw()
        rest = bytearray()
        at = start
        while at < end:
            item = next(fields(self.view, at, end))
            at = item.stop
            if item.number in PAYLOADS and item.wire in (LENGTH, FIXED32, FIXED64):
                piece, at = self.piece(item, end)
                parts = pieces.setdefault(item.number, [])
                parts.append(piece)
                if len(parts) > _MAX_PIECES:
                    raise WireFault(f"the numbers of one blob lie scattered in more than {_MAX_PIECES} pieces", item.at)
            elif item.number in RAW and item.wire == LENGTH:
                raw.data[RAW[item.number]] = np.frombuffer(self.view, np.uint8, item.stop - item.body, item.body)
            elif item.number in RAW_TYPES and item.wire == VARINT:
                raw.types[RAW_TYPES[item.number]] = varint(self.view, item.body, item.stop)[0]
            else:
                self.keep(rest, item.at, item.stop)
        top = self.way[1] if len(self.way) > 1 else self.way[0]
        whole = bytes(rest)
        self.blobs.setdefault((top.field, top.index), []).append(blob_array(whole, pieces, self.schema, raw))
        return whole

    def piece(self, item: WireField, end: int) -> tuple[NDArray[Any], int]:
        """One packed array, or a run of numbers written one by one; and where it ends."""
        name, dtype = PAYLOADS[item.number]
        width = dtype.itemsize
        if item.wire == LENGTH:
            size = item.stop - item.body
            if size % width:
                raise WireFault(f"{name} is {size} bytes long, no multiple of {width}", item.at)
            return np.frombuffer(self.view, dtype, size // width, item.body), item.stop
        if item.stop - item.body != width:
            raise WireFault(f"{name} holds numbers of {item.stop - item.body} bytes instead of {width}", item.at)
        record = item.stop - item.at
        tag = np.frombuffer(self.view, np.uint8, record - width, item.at)
        found, limit = 1, (end - item.at) // record
        step = 64
        while found < limit:
            count = min(step, limit - found)
            rows = np.frombuffer(self.view, np.uint8, count * record, item.at + found * record).reshape(count, record)
            same = (rows[:, : record - width] == tag).all(axis=1)
            matching = count if same.all() else int(same.argmin())
            found += matching
            if matching < count:
                break
            step *= 2
        rows = np.frombuffer(self.view, np.uint8, found * record, item.at).reshape(found, record)
        return np.ascontiguousarray(rows[:, record - width :]).view(dtype).reshape(-1), item.at + found * record

    def check_string(self, schema_field: Field, item: WireField) -> None:
        try:
            if "\0" in str(self.view[item.body : item.stop], "utf-8"):
                raise WireFault(f"the string of {schema_field.name} has a null byte", item.body)
        except UnicodeDecodeError as error:
            raise WireFault(f"the string of {schema_field.name} is not UTF-8", item.body + error.start) from error

    def where(self) -> str:
        """The message being read, with the layer's name: `layer 'conv1' (NetParameter.layer[3].blobs[0])`."""
        path = self.way[0].message + "".join(f".{place.field}[{place.index}]" for place in self.way[1:])
        for place in self.way[1:2]:
            name = self.layer_name(place)
            if name is not None:
                return f"layer {name!r} ({path})"
        return path

    def layer_name(self, place: _Place) -> str | None:
        if place.message not in ("LayerParameter", "V1LayerParameter"):
            return None
        number = self.schema.type(place.message).fields["name"].number
        try:
            # The name comes first or soon, or the layer has none worth a search.
            for item in islice(fields(self.view, place.start, min(place.end, len(self.view))), 1000):
                if item.number == number and item.wire == LENGTH:
                    return str(self.view[item.body : item.stop], "utf-8", "replace")
        except WireFault:
            # It is the broken layer that is being named: its name may be what is missing.
            return None
        return None

    def error(self, fault: WireFault) -> ModelFileError:
        size = len(self.view)
        if fault.missing and len(self.way) == 1:
            self.enter_cut_off()
            missing = f"at least {fault.missing} bytes are missing at its end"
            return ModelFileError(
                f"{self.source}: the file is cut off at byte {size}, in {self.where()}: {missing}",
                given={"size": size, "byte": fault.at},
                hint="download or copy the file again",
            )
        return ModelFileError(
            f"{self.source}: damaged at byte {fault.at}, in {self.where()}: {fault.problem}",
            given={"size": size, "byte": fault.at},
            hint="download or copy the file again; if it is another kind of file, name what wrote it",
        )

    def enter_cut_off(self) -> None:
        """Step into the element that the end of the file cuts, if its tag and length can still be read."""
        root = self.way[0]
        count: dict[int, int] = {}
        at = root.start
        try:
            for item in fields(self.view, root.start, root.end):
                count[item.number] = count.get(item.number, 0) + 1
                at = item.stop
        except WireFault:
            # Expected: this is the place. What follows reads as far as the bytes go.
            pass
        try:
            tag, body = varint(self.view, at, root.end)
            _, body = varint(self.view, body, root.end)
        except WireFault:
            return
        known = self.schema.by_number[root.message].get(tag >> 3)
        if known is not None and known.kind == "message" and tag & 7 == LENGTH:
            self.way.append(_Place(known.type, known.name, count.get(tag >> 3, 0), body, root.end))


_SMALLER = "Caffe itself reads no more: leave out the diffs, store float32, or keep the weights in HDF5"
