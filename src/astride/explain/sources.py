"""Where a rule is written: its file and line here, what its docstring says, and what source the module names."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..rules import RULES, module, rule

PACKAGE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class RuleSource:
    """`path` counts from the folder that holds the package."""

    function: str
    path: str
    line: int
    stands_for: str
    says: str
    source: str
    unverified: tuple[str, ...] = ()


def rule_source(name: str, op: str) -> RuleSource:
    """The source of one framework's rule for one operator."""
    function = rule(name, op)
    path, line = place(function)
    return RuleSource(
        f"rules.{name}.{op}",
        path,
        line,
        RULES[name],
        " ".join((inspect.getdoc(function) or "").split()),
        _named_source(name),
        unverified(name, op),
    )


UNVERIFIED = re.compile(
    r"unverified|documentation only|documents alone|not run\b|could be run|read only|read, not run|header only", re.IGNORECASE
)
"""How docstrings of rules say that a fact was read in a header or a manual and not seen to be so."""


def unverified(name: str, op: str) -> tuple[str, ...]:
    """What a framework's rule for an operator has from headers and manuals alone: the sentences that say so."""
    texts = [inspect.getdoc(rule(name, op)) or "", inspect.getdoc(module(name)) or ""]
    sentences = [part.strip() for text in texts for part in re.split(r"(?<=[.])\s+", " ".join(text.split()))]
    return tuple(dict.fromkeys(part.replace("**", "") for part in sentences if UNVERIFIED.search(part)))


def place(function: Callable[..., Any]) -> tuple[str, int]:
    """(path from the folder that holds the package, line) of a function."""
    code = inspect.unwrap(function).__code__
    file = Path(code.co_filename).resolve()
    inside = file.is_relative_to(PACKAGE.parent)
    return (file.relative_to(PACKAGE.parent).as_posix() if inside else str(file)), code.co_firstlineno


def _named_source(name: str) -> str:
    """The sentence of the module's docstring that begins with `Source:`."""
    text = " ".join((inspect.getdoc(module(name)) or "").split())
    _, found, rest = text.partition("Source: ")
    return rest.split(". ")[0].rstrip(".") if found else ""
