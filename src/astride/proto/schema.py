"""Caffe's schema as a table of our own, and the message classes built from it at run time.

    Schema.bvlc()                       the current BVLC schema; built once
    Schema.bvlc().extended(...)         a fork's dialect: a copy with more fields, messages, enum values
    schema.message("NetParameter")      the protobuf class, from a descriptor pool of this schema's own

A table line is `number name type`, the type with `*` if repeated or `!` if required, then `packed` and `= default`
where they apply; `enum Name A=0 B=1` lines declare an enum of that message and add up.
The pool is ours alone, so nothing clashes with somebody else's `caffe_pb2` in the same process.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from astride.errors import ArgumentError
from astride.proto import table_layers, table_legacy, table_net
from astride.proto.merge import merge_lines

Message: TypeAlias = Any
"""A protobuf message. Its fields are attributes made at run time, which no type checker can know."""

SCALARS = MappingProxyType(
    {"double": 1, "float": 2, "int64": 3, "uint64": 4, "int32": 5, "bool": 8, "string": 9, "bytes": 12, "uint32": 13}
)
"""Scalar type name -> number in protobuf's own FieldDescriptorProto.Type."""

_ENUM_TYPE, _MESSAGE_TYPE = 14, 11
_OPTIONAL, _REQUIRED, _REPEATED = 1, 2, 3


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message. `kind` is "scalar", "enum" or "message"; `type` its name as written in the table."""

    number: int
    name: str
    type: str
    kind: str
    repeated: bool = False
    required: bool = False
    packed: bool = False
    default: str | None = None


@dataclass(frozen=True, slots=True)
class MessageType:
    """One message: its fields by name, and its own enums."""

    name: str
    fields: Mapping[str, Field]
    enums: Mapping[str, Mapping[str, int]]


class Schema:
    """A set of messages and the protobuf classes made from them. Immutable; `extended` makes another one."""

    def __init__(self, name: str, messages: Mapping[str, str], enums: Mapping[str, str], base: Schema | None = None) -> None:
        """`base` is a schema with no more than these messages and enums: what both spell alike is read once."""
        self.name = name
        self._texts = dict(messages)
        self._enum_texts = dict(enums)
        self.enums: Mapping[str, Mapping[str, int]] = {key: _enum_values(text, key) for key, text in enums.items()}
        known = {} if base is None else {key: base.messages[key] for key, text in base._texts.items() if messages[key] == text}
        self.messages: Mapping[str, MessageType] = {
            key: known[key] if key in known else self._message_type(key, text) for key, text in messages.items()
        }

    @staticmethod
    def bvlc() -> Schema:
        """The schema of current BVLC Caffe with its two older layer formats."""
        return _bvlc()

    @staticmethod
    def of(message: Message) -> Schema:
        """The schema whose class this message is an instance of."""
        schema = _BY_POOL.get(id(message.DESCRIPTOR.file.pool))
        if schema is None:
            raise ArgumentError(
                "this message was not made by astride's schema",
                given={"message": message.DESCRIPTOR.full_name},
                hint=f'build it with astride.proto.message("{message.DESCRIPTOR.name}"), or copy it over its serialised bytes',
            )
        return schema

    def extended(
        self,
        name: str,
        messages: Mapping[str, str],
        *,
        enums: Mapping[str, str] | None = None,
        without: Mapping[str, Iterable[str]] | None = None,
    ) -> Schema:
        """A copy with more: new messages, new lines for known ones, new enum values.

        `without` names fields to drop first, where a fork gave a number another meaning.
        """
        texts = dict(self._texts)
        for owner, names in (without or {}).items():
            names = tuple(names)
            for field in names:
                if field not in self.type(owner).fields:
                    known = nearest(field, self.type(owner).fields)
                    raise ArgumentError(f"{owner} has no field {field} to drop", given={"without": field}, hint=known)
            texts[owner] = "\n".join(line for line in texts[owner].splitlines() if not _declares(line, names))
        for owner, text in messages.items():
            texts[owner] = f"{texts.get(owner, '')}\n{text}"
        enum_texts = dict(self._enum_texts)
        for owner, text in (enums or {}).items():
            enum_texts[owner] = f"{enum_texts.get(owner, '')} {text}"
        return Schema(name, texts, enum_texts)

    def merged(self, name: str, messages: Mapping[str, str], *, enums: Mapping[str, str] | None = None, wins: bool) -> Schema:
        """A copy with the lines of a fork, which may contradict this schema's; `wins` says whose numbers stay.

        The side that loses a number keeps the field under one of ours: see `merge.py`.
        """
        return self.merged_all(name, [(messages, enums or {})], wins=wins)

    def merged_all(self, name: str, forks: Iterable[tuple[Mapping[str, str], Mapping[str, str]]], *, wins: bool) -> Schema:
        """`merged` with one fork, (messages, enums), after the other; the tables are read once, at the end."""
        texts, enum_texts = dict(self._texts), dict(self._enum_texts)
        for messages, enums in forks:
            for owner, text in messages.items():
                mine = texts.get(owner, "")
                texts[owner] = merge_lines(text, mine) if wins else merge_lines(mine, text)
            enum_texts |= enums
        return Schema(name, texts, enum_texts, base=self)

    def type(self, name: str) -> MessageType:
        """The table entry of one message."""
        if name not in self.messages:
            raise ArgumentError(
                f"no message {name} in the schema {self.name}", given={"message_name": name}, hint=nearest(name, self.messages)
            )
        return self.messages[name]

    def message(self, name: str) -> Any:
        """The protobuf class of one message."""
        self.type(name)
        return self._classes[f"caffe.{name}"]

    def enum_values(self, owner: str, field: Field) -> Mapping[str, int]:
        """Name -> number of an enum field of message `owner`."""
        return self.messages[owner].enums.get(field.type) or self.enums[field.type]

    @functools.cached_property
    def by_number(self) -> Mapping[str, Mapping[int, Field]]:
        """For each message its fields by number, as the wire format names them."""
        return {name: {f.number: f for f in entry.fields.values()} for name, entry in self.messages.items()}

    @functools.cached_property
    def blob_carriers(self) -> Mapping[str, Mapping[int, Field]]:
        """For each message from which blobs can be reached: the fields, by number, that lead to them."""
        carriers: dict[str, dict[int, Field]] = {}
        reached = {"BlobProto"}
        while True:
            found = {
                name: {f.number: f for f in entry.fields.values() if f.kind == "message" and f.type in reached}
                for name, entry in self.messages.items()
            }
            carriers = {name: fields for name, fields in found.items() if fields}
            if carriers.keys() | {"BlobProto"} == reached:
                return carriers
            reached = carriers.keys() | {"BlobProto"}

    def _message_type(self, name: str, text: str) -> MessageType:
        lines = [line.split("#")[0].strip() for line in text.splitlines()]
        values: dict[str, str] = {}
        for line in lines:
            if line.startswith("enum "):
                _, key, rest = line.split(maxsplit=2)
                values[key] = f"{values.get(key, '')} {rest}"
        enums = {key: _enum_values(rest, f"{name}.{key}") for key, rest in values.items()}
        fields: dict[str, Field] = {}
        numbers: dict[int, str] = {}
        for line in lines:
            if line and not line.startswith("enum "):
                field = self._field(name, line, enums)
                if field.name in fields or field.number in numbers:
                    clash = numbers.get(field.number, field.name)
                    raise ArgumentError(
                        f"field {field.number} {field.name} of {name} is already taken by {clash}",
                        given={"schema": self.name},
                        hint=f"drop the old field with without={{'{name}': ['{clash}']}}",
                    )
                fields[field.name] = field
                numbers[field.number] = field.name
        return MessageType(name, fields, enums)

    def _field(self, owner: str, line: str, enums: Mapping[str, object]) -> Field:
        head, has_default, default = line.partition(" =")
        words = head.split()
        if len(words) not in (3, 4) or not words[0].isdigit() or words[3:] not in ([], ["packed"]):
            raise ArgumentError(
                f"cannot read the table line {line!r} of {owner}", required='"number name type[*|!] [packed] [= default]"'
            )
        name = words[2].rstrip("*!")
        if name in SCALARS:
            kind = "scalar"
        elif name in enums or name in self.enums:
            kind = "enum"
        elif name in self._texts:
            kind = "message"
        else:
            raise ArgumentError(f"unknown type {name} of field {owner}.{words[1]}", hint=nearest(name, [*self._texts, *SCALARS]))
        repeated, required = words[2].endswith("*"), words[2].endswith("!")
        return Field(
            int(words[0]), words[1], name, kind, repeated, required, len(words) == 4, default.strip() if has_default else None
        )

    @functools.cached_property
    def _classes(self) -> Mapping[str, Any]:
        # Here, not at the top: reading the table must not cost the import of protobuf.
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

        file = descriptor_pb2.FileDescriptorProto(name="caffe.proto", package="caffe", syntax="proto2")
        for name, values in self.enums.items():
            _describe_enum(file.enum_type.add(), name, values)
        for entry in self.messages.values():
            self._describe_message(file.message_type.add(), entry)
        pool = descriptor_pool.DescriptorPool()
        pool.AddSerializedFile(file.SerializeToString())
        descriptor = pool.FindFileByName("caffe.proto")
        classes = {
            f"caffe.{name}": message_factory.GetMessageClass(descriptor.message_types_by_name[name]) for name in self.messages
        }
        self._pool = descriptor.pool
        _BY_POOL[id(self._pool)] = self
        return classes

    def _describe_message(self, proto: Any, entry: MessageType) -> None:
        proto.name = entry.name
        for name, values in entry.enums.items():
            _describe_enum(proto.enum_type.add(), name, values)
        for field in entry.fields.values():
            label = _REPEATED if field.repeated else _REQUIRED if field.required else _OPTIONAL
            described = proto.field.add(name=field.name, number=field.number, label=label)
            if field.kind == "scalar":
                described.type = SCALARS[field.type]
            else:
                described.type = _ENUM_TYPE if field.kind == "enum" else _MESSAGE_TYPE
                inner = field.type in entry.enums
                described.type_name = f".caffe.{entry.name}.{field.type}" if inner else f".caffe.{field.type}"
            if field.default is not None:
                described.default_value = field.default
            if field.packed:
                described.options.packed = True


# Schemas are few and live as long as the process, so a pool's identity is never used again for another.
_BY_POOL: dict[int, Schema] = {}


@functools.cache
def _bvlc() -> Schema:
    return Schema("bvlc", {**table_net.MESSAGES, **table_layers.MESSAGES, **table_legacy.MESSAGES}, table_net.ENUMS)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like this one, or None: what an error suggests."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)), None)


def message(name: str) -> Any:
    """The class of one message of BVLC's schema: `message("NetParameter")()`."""
    return Schema.bvlc().message(name)


def messages() -> dict[str, Any]:
    """Every message class of BVLC's schema by name."""
    schema = Schema.bvlc()
    return {name: schema.message(name) for name in schema.messages}


def _enum_values(text: str, owner: str) -> dict[str, int]:
    values: dict[str, int] = {}
    for word in text.split():
        name, equals, number = word.partition("=")
        if not equals or not number.isdigit() or name in values:
            raise ArgumentError(f"cannot read {word!r} in the enum {owner}", required="NAME=number, each name once")
        values[name] = int(number)
    return values


def _describe_enum(proto: Any, name: str, values: Mapping[str, int]) -> None:
    proto.name = name
    for key, number in values.items():
        proto.value.add(name=key, number=number)


def _declares(line: str, names: Iterable[str]) -> bool:
    words = line.split()
    return len(words) > 1 and words[0] != "enum" and words[1] in names
