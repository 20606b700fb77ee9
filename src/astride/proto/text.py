"""Caffe's prototxt: protobuf text read with the place of every field kept, and written back.

    parsed = parse(text, "NetParameter", source="deploy.prototxt")
    parsed.message                                   the protobuf message
    parsed.line_of(parsed.message.layer[3])          17
    parsed.where("layer[3].pooling_param.pad")       Position(line=21, column=5)
    raise parsed.error("pad is ...", layer, "pooling_param")

Why not protobuf's own parser: `docs/decisions/0002-own-text-parser.md`.
"""

from __future__ import annotations

import re

from astride.errors import ArgumentError, PrototxtError
from astride.proto import text_numbers, text_values
from astride.proto.limits import MAX_DEPTH, MAX_FAULTS, MAX_LAYERS, MAX_MESSAGES, MAX_NEAREST, MAX_TEXT_BYTES, MAX_VALUES
from astride.proto.schema import Field, Message, MessageType, Schema, nearest
from astride.proto.sniff import Source, open_model
from astride.proto.text_faults import Fault, Unknown, combined
from astride.proto.text_format import format as format
from astride.proto.text_tokens import Position, Text, Token, Tokens

_CLOSING = {"{": "}", "<": ">"}


class Parsed:
    """A message and where in the text each of its parts stands."""

    def __init__(self, message: Message, text: Text) -> None:
        self.message = message
        self.unknown: list[Unknown] = []
        self.used: set[tuple[str, str]] = set()
        """(message, field) of everything the text sets, and (message, field=VALUE) of enumerations."""
        self._text = text
        self._messages: dict[int, int] = {id(message): 0}
        self._fields: dict[tuple[int, str, int], int] = {}
        # The identity of a message object is its own only while the object lives.
        self._alive: list[Message] = [message]

    @property
    def source(self) -> str:
        """The name of the text, as errors give it."""
        return self._text.source

    def position_of(self, message: Message, field: str | None = None, index: int = 0) -> Position | None:
        """Where a sub-message, or one of its fields, stands; None if it did not come from this text."""
        offset = self._messages.get(id(message)) if field is None else self._fields.get((id(message), field, index))
        return None if offset is None else self._text.position(offset)

    def line_of(self, message: Message, field: str | None = None, index: int = 0) -> int | None:
        """The line of a sub-message, or of one of its fields; None if it did not come from this text."""
        position = self.position_of(message, field, index)
        return None if position is None else position.line

    def where(self, path: str) -> Position:
        """The place of `layer[3].convolution_param.pad[1]`; an index left out is the first."""
        message, place = self.message, Position(1, 1)
        for part in path.split("."):
            match = re.fullmatch(r"([A-Za-z_]\w*)(?:\[(\d+)\])?", part)
            found = match and self.position_of(message, match[1], int(match[2] or 0))
            if match is None or found is None:
                raise ArgumentError(f"{self.source} does not set {path}", given={"path": path, "missing": part})
            place = found
            value = getattr(message, match[1])
            entry = Schema.of(message).type(message.DESCRIPTOR.name)
            message = value[int(match[2] or 0)] if entry.fields[match[1]].repeated else value
        return place

    def error(
        self, problem: str, message: Message | None = None, field: str | None = None, index: int = 0, *, hint: str | None = None
    ) -> PrototxtError:
        """An error that shows the place of a message or field; the nearest known place around it if it has none."""
        offset = None if field is None else self._fields.get((id(message), field, index))
        if offset is None and message is not None:
            offset = self._messages.get(id(message))
        if offset is None:
            return PrototxtError(f"{self.source}: {problem}", hint=hint)
        return self._text.error(offset, problem, hint=hint)


def parse(
    text: str | bytes | memoryview,
    message_name: str,
    *,
    source: str = "<text>",
    allow_unknown_fields: bool = False,
    schema: Schema | None = None,
) -> Parsed:
    """Read protobuf text as one message.

    Everything wrong with fields and values is gathered and raised as one PrototxtError; broken syntax ends the reading.
    Unknown fields are listed in `Parsed.unknown` instead when they are allowed.
    """
    if len(text) > MAX_TEXT_BYTES:
        raise PrototxtError(
            f"{source}: the text is too long",
            required=f"at most {MAX_TEXT_BYTES} bytes: {len(text)}",
            hint="keep weights in a .caffemodel, not in the text",
        )
    if not isinstance(text, str):
        # Comments in any encoding are harmless; a string that is not UTF-8 is refused where it stands.
        text = str(text, "utf-8", "surrogateescape")
    return _Parser(Text(text.removeprefix("\ufeff"), source), schema or Schema.bvlc(), allow_unknown_fields).run(message_name)


def read_prototxt(
    source: Source,
    message_name: str = "NetParameter",
    *,
    name: str | None = None,
    allow_unknown_fields: bool = False,
    schema: Schema | None = None,
) -> Parsed:
    """`parse` for a path, text, bytes or open file; a file that is no text at all is named for what it is."""
    opened = open_model(source, expect="prototxt", name=name)
    return parse(opened.view, message_name, source=opened.name, allow_unknown_fields=allow_unknown_fields, schema=schema)


class _Parser:
    def __init__(self, text: Text, schema: Schema, allow_unknown: bool) -> None:
        self.text = text
        self.schema = schema
        self.allow_unknown = allow_unknown
        self.faults: list[Fault] = []
        self.tokens = Tokens(text)
        self.messages = 0
        self.values = 0
        self.similar: dict[tuple[str, str], str | None] = {}

    def run(self, message_name: str) -> Parsed:
        parsed = self.parsed = Parsed(self.schema.message(message_name)(), self.text)
        self.body(parsed.message, self.schema.type(message_name), None, 1)
        self.check_required(parsed)
        if self.faults:
            raise self.combined()
        return parsed

    def body(self, message: Message, entry: MessageType, opening: Token | None, depth: int) -> None:
        """Fields up to the bracket that closes `opening`, or to the end of the text."""
        tokens, seen = self.tokens, dict[str, int]()
        if depth > MAX_DEPTH:
            raise self.text.error(tokens.token.start, f"messages are nested deeper than {MAX_DEPTH}")
        while not self.closed(opening):
            if tokens.token.kind != "name":
                raise self.unexpected("the name of a field")
            name = tokens.advance()
            field = entry.fields.get(name.text)
            if field is None:
                self.unknown_field(name, entry, depth)
            elif field.kind == "message":
                self.message_field(message, field, name, seen, depth)
            else:
                self.value_field(message, entry, field, name, seen)
            if not tokens.take(","):
                tokens.take(";")

    def closed(self, opening: Token | None) -> bool:
        if opening is None:
            return self.tokens.token.kind == "end"
        if self.tokens.token.kind == "end":
            missing = _CLOSING[opening.text]
            raise self.text.error(opening.start, f"this {opening.text} is never closed", hint=f"add the missing {missing}")
        return self.tokens.take(_CLOSING[opening.text])

    def message_field(self, message: Message, field: Field, name: Token, seen: dict[str, int], depth: int) -> None:
        self.tokens.take(":")
        if self.tokens.token.text == "[" and field.repeated:
            for _ in self.list_items():
                self.one_message(message, field, self.tokens.token, seen, depth)
        else:
            self.one_message(message, field, name, seen, depth)

    def one_message(self, message: Message, field: Field, at: Token, seen: dict[str, int], depth: int) -> None:
        if self.tokens.token.text not in _CLOSING or self.tokens.token.kind != "symbol":
            raise self.unexpected(f"{{ to open {field.name} ({field.type})")
        opening = self.tokens.advance()
        index = self.occurrence(message, field, at, seen)
        self.messages += 1
        if self.messages > MAX_MESSAGES or (field.name in ("layer", "layers") and index >= MAX_LAYERS):
            problem = f"more than {MAX_LAYERS} layers or {MAX_MESSAGES} messages: no real network has so many"
            raise self.text.error(at.start, problem)
        inner = getattr(message, field.name)
        if field.repeated:
            inner = inner.add()
        else:
            inner.SetInParent()
        self.parsed._messages[id(inner)] = at.start
        self.parsed._alive.append(inner)
        self.body(inner, self.schema.messages[field.type], opening, depth + 1)

    def value_field(self, message: Message, entry: MessageType, field: Field, name: Token, seen: dict[str, int]) -> None:
        numbers = field.repeated and field.type in ("float", "double")
        if numbers and self.many(message, field, name, seen, text_numbers.named(self.text.content, name.start, field.name)):
            return
        if not self.tokens.take(":"):
            raise self.unexpected(f"a colon after {field.name}", hint=f"{field.name}: value")
        if self.tokens.token.text == "[" and self.tokens.token.kind == "symbol":
            if not field.repeated:
                raise self.unexpected(f"one value: {field.name} is not repeated")
            items = self.list_items()
            while numbers and self.many(
                message, field, name, seen, text_numbers.listed(self.text.content, self.tokens.token.start)
            ):
                continue
            for _ in items:
                self.one_value(message, entry, field, self.tokens.token, seen)
        else:
            self.one_value(message, entry, field, name, seen)

    def many(
        self, message: Message, field: Field, at: Token, seen: dict[str, int], found: tuple[list[float], int] | None
    ) -> bool:
        """Take a run of plain numbers, if one was found."""
        if found is None:
            return False
        values, end = found
        self.occurrence(message, field, at, seen)
        seen[field.name] += len(values) - 1
        getattr(message, field.name).extend(values)
        self.tokens.jump(end)
        return True

    def one_value(self, message: Message, entry: MessageType, field: Field, at: Token, seen: dict[str, int]) -> None:
        start = self.tokens.token.start
        self.count(start)
        index = self.occurrence(message, field, at, seen)
        try:
            value = self.value(entry, field)
        except text_values.BadValue as bad:
            self.fault(start, bad.problem, bad.hint)
            return
        if field.repeated:
            getattr(message, field.name).append(value)
        elif index == 0:
            setattr(message, field.name, value)

    def value(self, entry: MessageType, field: Field) -> str | bytes | float | int:
        tokens = self.tokens
        if tokens.token.kind == "string":
            literals = [tokens.advance().text]
            while tokens.token.kind == "string":
                literals.append(tokens.advance().text)
            if field.type not in ("string", "bytes"):
                problem = f"{field.name} takes a value of type {field.type}, not a string"
                raise text_values.BadValue(problem, literals[0][1:-1] or None)
            return text_values.string(field, literals)
        negative = tokens.take("-")
        if tokens.token.kind not in ("name", "number"):
            raise self.unexpected(f"a value for {field.name} ({field.type})")
        token = tokens.advance()
        if field.type in ("string", "bytes"):
            raise text_values.BadValue(f"{field.name} takes a string, not {token.text}", f'{field.name}: "{token.text}"')
        if field.kind == "enum":
            self.parsed.used.add((entry.name, f"{field.name}={token.text}"))
            return text_values.enum(field, token.kind, token.text, negative, self.schema.enum_values(entry.name, field))
        return text_values.scalar(field, token.kind, token.text, negative)

    def count(self, at: int) -> None:
        """One more value that is read by itself."""
        self.values += 1
        if self.values > MAX_VALUES:
            raise self.text.error(at, f"more than {MAX_VALUES} values: no real network has so many")

    def occurrence(self, message: Message, field: Field, at: Token, seen: dict[str, int]) -> int:
        """Count one more of this field and keep its place. Protobuf of Caffe's age refuses a second one that is not repeated."""
        index = seen.get(field.name, 0)
        seen[field.name] = index + 1
        # Weights written as text are millions of numbers: there only the first one's place is kept.
        if index == 0:
            self.parsed.used.add((message.DESCRIPTOR.name, field.name))
        if index == 0 or field.type not in ("float", "double"):
            self.parsed._fields[(id(message), field.name, index)] = at.start
        if index == 1 and not field.repeated:
            first = self.text.position(self.parsed._fields[(id(message), field.name, 0)])
            problem = f"{field.name} is set a second time; it is not a repeated field (first on line {first.line})"
            self.fault(at.start, problem, "keep one of them")
        return index

    def list_items(self) -> list[None] | _Items:
        self.tokens.advance()
        return [] if self.tokens.take("]") else _Items(self)

    def unknown_field(self, name: Token, entry: MessageType, depth: int) -> None:
        known = (entry.name, name.text)
        if known not in self.similar:
            self.similar[known] = nearest(name.text, entry.fields) if len(self.similar) < MAX_NEAREST else None
        near = self.similar[known]
        if len(self.parsed.unknown) > MAX_MESSAGES:
            raise self.text.error(name.start, f"more than {MAX_MESSAGES} unknown fields: this is no Caffe network")
        self.parsed.unknown.append(Unknown(*self.text.position(name.start), entry.name, name.text, near))
        if not self.allow_unknown:
            self.fault(name.start, f"{entry.name} has no field {name.text}", near)
        colon = self.tokens.take(":")
        self.skip_value(colon, depth)

    def skip_value(self, colon: bool, depth: int) -> None:
        tokens = self.tokens
        self.count(tokens.token.start)
        if depth > MAX_DEPTH:
            raise self.text.error(tokens.token.start, f"messages are nested deeper than {MAX_DEPTH}")
        if tokens.token.kind == "symbol" and tokens.token.text in _CLOSING:
            opening = tokens.advance()
            while not self.closed(opening):
                if tokens.token.kind != "name":
                    raise self.unexpected("the name of a field")
                tokens.advance()
                self.skip_value(tokens.take(":"), depth + 1)
                if not tokens.take(","):
                    tokens.take(";")
        elif tokens.token.kind == "symbol" and tokens.token.text == "[":
            for _ in self.list_items():
                self.skip_value(True, depth + 1)
        elif not colon:
            raise self.unexpected("a colon or {")
        elif tokens.token.kind == "string":
            while tokens.token.kind == "string":
                tokens.advance()
        else:
            tokens.take("-")
            if tokens.token.kind not in ("name", "number"):
                raise self.unexpected("a value")
            tokens.advance()

    def check_required(self, parsed: Parsed) -> None:
        if parsed.message.IsInitialized():
            return
        for path in parsed.message.FindInitializationErrors():
            owner, _, name = path.rpartition(".")
            place = parsed.where(owner) if owner else Position(1, 1)
            offset = self.text.offset(place)
            self.fault(offset, f"{owner or 'the message'} lacks its required field {name}", f"{name}: value")

    def fault(self, offset: int, problem: str, hint: str | None) -> None:
        self.faults.append(Fault(offset, problem, hint))
        if len(self.faults) >= MAX_FAULTS:
            raise self.combined()

    def unexpected(self, wanted: str, *, hint: str | None = None) -> PrototxtError:
        token = self.tokens.token
        found = "the end of the text" if token.kind == "end" else token.text if len(token.text) < 40 else token.text[:37] + "..."
        if hint is None and token.text == "[" and wanted.startswith("the name"):
            hint = "extensions are not part of Caffe's schema"
        return self.text.error(token.start, f"expected {wanted}, found {found}", hint=hint)

    def combined(self) -> PrototxtError:
        return combined(self.text, self.faults, self.unknown_hint())

    def unknown_hint(self) -> str | None:
        unknown = self.parsed.unknown and not self.allow_unknown
        return "allow_unknown_fields=True to read the rest without unknown fields" if unknown else None


class _Items:
    """The items of a `[ ... ]` list: an iterator that reads the comma or bracket after each."""

    def __init__(self, parser: _Parser) -> None:
        self.parser = parser
        self.first = True

    def __iter__(self) -> _Items:
        return self

    def __next__(self) -> None:
        if self.first:
            self.first = False
            return
        if self.parser.tokens.take("]"):
            raise StopIteration
        if not self.parser.tokens.take(","):
            raise self.parser.unexpected("a comma or ]")
