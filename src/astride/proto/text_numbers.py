"""Plain numbers by the hundred thousand, as a network's weights are when they stand in its text.

One match of a regular expression reads a run of them, a hundred times faster than token by token. Whatever is not plain
(`inf`, `1f`, a comment between two numbers) ends the run, and the parser reads on as it does elsewhere.
"""

from __future__ import annotations

import functools
import re

_NUMBER = r"-?(?:0|[1-9][0-9]{0,18})(?:\.[0-9]{1,20})?(?:[eE][-+]?[0-9]{1,3})?(?![\w.])"
_SPACE = r"[ \t\r\n]*+"
_MOST = 100_000
"""Numbers at a time: as Python's objects they take ten times the room of the text."""

_EACH = re.compile(_NUMBER)
_AFTER_COLON = re.compile(rf":{_SPACE}({_NUMBER})")
# Possessive, so that nothing is kept to go back to.
_LISTED = re.compile(rf"(?:{_NUMBER}{_SPACE},{_SPACE}){{1,{_MOST}}}+")


@functools.cache
def _named(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{name}{_SPACE}:{_SPACE}{_NUMBER}{_SPACE}){{2,{_MOST}}}+")


def named(text: str, at: int, name: str) -> tuple[list[float], int] | None:
    """The numbers of `name: 1.5 name: -2 ...` that begin at a place, and where they end; None where there are fewer than two."""
    run = _named(name).match(text, at)
    return None if run is None else ([float(number) for number in _AFTER_COLON.findall(run.group())], run.end())


def listed(text: str, at: int) -> tuple[list[float], int] | None:
    """The numbers of `1.5, -2, ` that begin at a place, each with the comma after it; None where there are none."""
    run = _LISTED.match(text, at)
    return None if run is None else ([float(number) for number in _EACH.findall(run.group())], run.end())
