"""A dialect from somebody's own caffe.proto: its messages read as lines of our tables.

    schema("my_caffe.proto")        a path that ends in .proto, wherever a dialect's name is asked for

Read is what Caffe's file and its forks use of protobuf's second language: messages, enumerations, optional, repeated and
required fields, defaults and `packed`; messages within messages get a name of their own. Nothing is compiled or run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ...errors import ModelFileError, PrototxtError
from ...proto.limits import MAX_DEPTH
from ...proto.schema import SCALARS
from ._fork import Fork

_MOST_BYTES = 4 * 2**20
_TOKEN = re.compile(
    r"""(?P<space>(?:\s+|//[^\n]*|/\*.*?\*/)+) | (?P<word>[A-Za-z_.][\w.]*) | (?P<number>[-+]?[0-9.][\w.+-]*)
    | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*') | (?P<symbol>[{}\[\]=;,()<>-])""",
    re.VERBOSE | re.DOTALL,
)
_LABELS = {"optional": "", "repeated": "*", "required": "!"}
_SAME = {"sint32": "int32", "sint64": "int64"}


def from_proto(path: Path) -> Fork:
    """The messages of a .proto file as a fork. Raises ModelFileError: none, or too large; PrototxtError: what cannot be read."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ModelFileError(f"{path} is too large for a .proto file", required=f"at most {_MOST_BYTES} bytes")
        text = path.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError) as error:
        raise ModelFileError(f"cannot open {path}", given={"dialect": str(path)}, because=str(error)) from None
    reader = _Reader(text, str(path))
    reader.file()
    return Fork(f"the schema of {path.name}", (str(path),), reader.messages, reader.enums)


class _Reader:
    def __init__(self, text: str, source: str) -> None:
        self.text = text
        self.source = source
        self.messages: dict[str, str] = {}
        self.enums: dict[str, str] = {}
        self.tokens = self._tokens()
        self.at = 0
        self.token = ""
        self.advance()

    def _tokens(self) -> Iterator[tuple[str, int]]:
        at = 0
        while at < len(self.text):
            match = _TOKEN.match(self.text, at)
            if match is None:
                raise self.error(f"unexpected character {self.text[at]!r}", at)
            if match.lastgroup != "space":
                yield match.group(), at
            at = match.end()
        yield "", at

    def advance(self) -> str:
        left = self.token
        self.token, self.at = next(self.tokens, ("", len(self.text)))
        return left

    def take(self, wanted: str) -> None:
        if self.token != wanted:
            raise self.error(f"expected {wanted}, found {self.token or 'the end of the file'}", self.at)
        self.advance()

    def error(self, problem: str, at: int) -> PrototxtError:
        line = self.text.count("\n", 0, at) + 1
        column = at - self.text.rfind("\n", 0, at)
        return PrototxtError(f"{self.source}:{line}:{column}: {problem}", line=line, column=column)

    def file(self) -> None:
        while self.token:
            word = self.advance()
            if word == "message":
                self.message("", 1)
            elif word == "enum":
                name, values = self.enum()
                self.enums[name] = values
            elif word in ("syntax", "package", "import", "option"):
                self.statement()
            elif word != ";":
                raise self.error(f"{word} is not read here: messages and enumerations are", self.at)

    def statement(self) -> None:
        while self.token not in (";", ""):
            self.advance()
        self.take(";")

    def message(self, around: str, depth: int) -> None:
        name = around + self.advance()
        if depth > MAX_DEPTH:
            raise self.error("messages are nested too deep", self.at)
        lines: list[str] = []
        self.take("{")
        while self.token != "}":
            word = self.advance()
            if word in _LABELS:
                lines.append(self.field(_LABELS[word]))
            elif word == "enum":
                enum, values = self.enum()
                lines.append(f"enum {enum} {values}")
            elif word == "message":
                self.message("", depth + 1)
            elif word in ("reserved", "extensions", "option"):
                self.statement()
            elif word != ";":
                raise self.error(f"{word or 'the end of the file'} in {name}: fields begin with {', '.join(_LABELS)}", self.at)
        self.take("}")
        self.messages[name] = "\n".join(lines)

    def field(self, label: str) -> str:
        # A type of another message, as PriorBoxParameter.CodeType, goes by its last name.
        kind = self.advance().rpartition(".")[2]
        kind = _SAME.get(kind, kind)
        name = self.advance()
        self.take("=")
        number = self.advance()
        if not number.isdecimal() or not 0 < int(number) < 2**29 or not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise self.error(f"{name} = {number} is no field", self.at)
        packed = default = ""
        if self.token == "[":
            packed, default = self.options()
        self.take(";")
        return f"{number} {name} {kind}{label}{packed}{default}"

    def options(self) -> tuple[str, str]:
        packed = default = ""
        while self.token in ("[", ","):
            self.advance()
            name = self.advance()
            self.take("=")
            value = self.advance()
            if value == "-":
                value += self.advance()
            if name == "packed" and value == "true":
                packed = " packed"
            elif name == "default":
                default = " = " + (value[1:-1] if value[:1] in ("'", '"') else value)
        self.take("]")
        return packed, default

    def enum(self) -> tuple[str, str]:
        name = self.advance()
        values = []
        self.take("{")
        while self.token != "}":
            key = self.advance()
            if key in ("option", "reserved"):
                self.statement()
                continue
            self.take("=")
            number = self.advance()
            if not number.isdecimal():
                raise self.error(f"{key} = {number} is no value of an enumeration here", self.at)
            values.append(f"{key}={number}")
            if self.token == "[":
                self.options()
            self.take(";")
        self.take("}")
        return name, " ".join(values)


def shared_enums(fork: Fork) -> dict[str, str]:
    """The fork's lines, with an enumeration of another message copied into each message that uses it."""
    own = {
        message: {line.split()[1]: line for line in text.splitlines() if line.startswith("enum ")}
        for message, text in fork.messages.items()
    }
    everywhere = {enum: line for enums in own.values() for enum, line in enums.items()}
    known = {*SCALARS, *fork.messages, *fork.enums}
    copied = {}
    for message, text in fork.messages.items():
        kinds = {line.split()[2].rstrip("*!") for line in text.splitlines() if not line.startswith("enum ")}
        missing = sorted(kind for kind in kinds - known - set(own[message]) if kind in everywhere)
        copied[message] = "\n".join([*(everywhere[kind] for kind in missing), text])
    return copied
