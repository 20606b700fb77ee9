"""What an upgrade did, and where in the old text it did it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import PrototxtError
from ..proto import Message, Parsed

SOURCE = "Caffe, src/caffe/util/upgrade_proto.cpp"


@dataclass(frozen=True, slots=True)
class Note:
    """One thing an upgrade did; `lost` if it had to leave something out. `line` is where the old text says it."""

    text: str
    line: int | None = None
    lost: bool = False

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}" if self.line else self.text


class Journal:
    """Gathers the notes of an upgrade, and makes its errors, with the lines of the old layers."""

    def __init__(self, layers: Sequence[Message], lines: Parsed | None) -> None:
        self.layers = layers
        self.lines = lines
        self.notes: list[Note] = []

    def note(self, text: str, index: int | None = None, *, lost: bool = False) -> None:
        """Remember a step; `index` is that of the old layer it was about."""
        line = self.lines.line_of(self.layers[index]) if self.lines is not None and index is not None else None
        self.notes.append(Note(text, line, lost))

    def place(self, index: int, field: str) -> str:
        """`line 3, column 17: ` of a field of an old layer, or of the V0 layer in it; nothing where no text has it."""
        layer = self.layers[index]
        inner = layer.layer if layer.HasField("layer") else layer
        found = self.lines.position_of(inner, field) if self.lines is not None else None
        return "" if found is None else f"line {found.line}, column {found.column}: "

    def error(self, problem: str, index: int, *, hint: str | None = None) -> PrototxtError:
        """An error about an old layer, showing its place in the text where there is one."""
        if self.lines is not None:
            return self.lines.error(problem, self.layers[index], hint=hint)
        return PrototxtError(problem, because=SOURCE, hint=hint)
