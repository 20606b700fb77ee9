"""What is wrong with a text without stopping its reading, gathered into one error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from astride.errors import PrototxtError
from astride.proto.text_tokens import Text

_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Unknown:
    """A field the schema does not have: where it stands, in which message, and the known name most like it."""

    line: int
    column: int
    owner: str
    name: str
    nearest: str | None


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong that does not stop the reading: all of them are reported at once."""

    offset: int
    problem: str
    hint: str | None


def combined(text: Text, gathered: Iterable[Fault], hint: str | None) -> PrototxtError:
    """One error for everything gathered, in the order of the text; `hint` is what to try besides what each fault says."""
    faults = sorted(gathered, key=lambda fault: fault.offset)
    if len(faults) == 1:
        hints = [each for each in (faults[0].hint, hint) if each]
        return text.error(faults[0].offset, faults[0].problem, hint=", or ".join(hints) or None)
    first = text.position(faults[0].offset)
    lines = [f"{text.source}: {len(faults)} fields or values are wrong"]
    for fault in faults[:_SHOWN]:
        line, column = text.position(fault.offset)
        near = f"; nearest: {fault.hint}" if fault.hint else ""
        lines.append(f"  {f'{line}:{column}':<8} {fault.problem}{near}")
    if len(faults) > _SHOWN:
        lines.append(f"  ... and {len(faults) - _SHOWN} more")
    lines.append(text.caret(faults[0].offset))
    return PrototxtError("\n".join(lines), line=first.line, column=first.column, hint=hint)
