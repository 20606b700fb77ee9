"""Protobuf text cut into tokens, each with its place, and the drawing of such a place in an error message."""

from __future__ import annotations

import bisect
import functools
import re
from array import array
from typing import NamedTuple

from astride.errors import PrototxtError

_NUMBER = r"(?:0[xX][0-9A-Fa-f]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fF]?)(?![A-Za-z0-9_.])"
_TOKEN = re.compile(
    rf"""(?P<space>(?:[ \t\r\n\f\v]+|\#[^\n]*)+)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<number>{_NUMBER})
    |(?P<string>"[^"\\\n]*(?:\\[^\n][^"\\\n]*)*"|'[^'\\\n]*(?:\\[^\n][^'\\\n]*)*')
    |(?P<symbol>[{{}}<>\[\]:,;\-])""",
    re.VERBOSE,
)
_WIDTH = 96


class Position(NamedTuple):
    """A place in a text. Both count from 1."""

    line: int
    column: int


class Token(NamedTuple):
    """`kind` is name, number, string, symbol or end."""

    kind: str
    text: str
    start: int


class Text:
    """A text and its name, for saying where something stands."""

    def __init__(self, content: str, source: str) -> None:
        self.content = content
        self.source = source

    @functools.cached_property
    def _line_starts(self) -> array[int]:
        starts = array("q", [0])
        starts.extend(match.end() for match in re.finditer("\n", self.content))
        return starts

    def position(self, offset: int) -> Position:
        line = bisect.bisect_right(self._line_starts, offset)
        return Position(line, offset - self._line_starts[line - 1] + 1)

    def offset(self, position: Position) -> int:
        return self._line_starts[position.line - 1] + position.column - 1

    def caret(self, offset: int) -> str:
        """The line of this place with a caret below it; a long line is cut around the place."""
        line, column = self.position(offset)
        start = self._line_starts[line - 1]
        end = self.content.find("\n", start)
        whole = self.content[start : len(self.content) if end < 0 else end].rstrip("\r")
        first = max(0, column - 1 - _WIDTH // 2)
        shown = _printable(whole[first : first + _WIDTH])
        pad = "".join("\t" if char == "\t" else " " for char in shown[: column - 1 - first])
        return f"    {shown}\n    {pad}^"

    def error(self, offset: int, problem: str, *, hint: str | None = None) -> PrototxtError:
        """A PrototxtError that shows this place."""
        line, column = self.position(offset)
        message = f"{self.source}:{line}:{column}: {problem}\n{self.caret(offset)}"
        return PrototxtError(message, line=line, column=column, hint=hint)


class Tokens:
    """A text's tokens with one of them in view: `token`."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self._content = text.content
        self._next = 0
        self.token = Token("symbol", "", 0)
        self.advance()

    def advance(self) -> Token:
        """Step to the next token and return the one left behind."""
        left = self.token
        at = self._next
        match = _TOKEN.match(self._content, at)
        if match is not None and match.lastgroup == "space":
            at = match.end()
            match = _TOKEN.match(self._content, at)
        if match is not None and match.lastgroup is not None:
            self.token = Token(match.lastgroup, match.group(), at)
            self._next = match.end()
        elif at >= len(self._content):
            self.token = Token("end", "", at)
        else:
            raise self._unreadable(at)
        return left

    def jump(self, offset: int) -> None:
        """Go on at a place that lies ahead."""
        self._next = offset
        self.advance()

    def take(self, symbol: str) -> bool:
        """Step over this symbol if it is in view."""
        if self.token.kind == "symbol" and self.token.text == symbol:
            self.advance()
            return True
        return False

    def _unreadable(self, at: int) -> PrototxtError:
        rest = self._content[at : at + 40]
        char = rest[0]
        if char in "\"'":
            return self.text.error(
                at, "this string has no closing quote on its line", hint="close it, or write a line break as \\n"
            )
        if char.isdigit() or (char == "." and rest[1:2].isdigit()):
            word = re.match(r"[A-Za-z0-9_.]+", rest)
            return self.text.error(at, f"{word.group() if word else char} is no number")
        if rest.startswith(("//", "/*")):
            return self.text.error(at, "comments start with #", hint="write # instead of " + rest[:2])
        if char in "=+(":
            return self.text.error(at, f"unexpected {char!r}", hint="a field is written  name: value  or  name { ... }")
        return self.text.error(at, f"unexpected character {_printable(char)!r}")


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() or char == "\t" else "\N{REPLACEMENT CHARACTER}" for char in text)
