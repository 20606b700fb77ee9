"""Two tables of one message made into one, where forks of Caffe gave a name or a number another meaning.

A number can belong to one field only. The field that loses it keeps its name, so that text still reads, under a number
above MOVED, which no Caffe has ever written.
"""

from __future__ import annotations

from collections.abc import Iterable

MOVED = 400_000_000
"""Protobuf's numbers end at 2**29 - 1 = 536 870 911; those from here on are ours."""


def merge_lines(winner: str, loser: str) -> str:
    """The lines of both, in the notation of `schema.py`. A name both have means what the winner says."""
    fields = {line.split()[1]: line for line in _fields(winner)}
    taken = {_number(line) for line in fields.values()}
    enums = _enums(winner)
    for enum, values in _enums(loser).items():
        enums[enum] = _merge_enum(enums.get(enum, {}), values)
    for line in _fields(loser):
        number, name = line.split()[:2]
        if name not in fields:
            free = _free(int(number), taken)
            taken.add(free)
            fields[name] = line if free == int(number) else f"{free}{line[len(number) :]}"
    spelled = [
        f"enum {enum} " + " ".join(f"{name}={number}" for name, number in values.items()) for enum, values in enums.items()
    ]
    return "\n".join([*spelled, *fields.values()])


def _merge_enum(winner: dict[str, int], loser: dict[str, int]) -> dict[str, int]:
    merged = dict(winner)
    for name, number in loser.items():
        if name not in merged:
            merged[name] = _free(number, set(merged.values()))
    return merged


def _free(number: int, taken: Iterable[int]) -> int:
    """The number itself, or where it is taken the first free one above MOVED."""
    taken = set(taken)
    while number in taken:
        number += MOVED if number < MOVED else 1_000_000
    return number


def _lines(text: str) -> list[str]:
    return [line for line in (raw.split("#")[0].strip() for raw in text.splitlines()) if line]


def _fields(text: str) -> list[str]:
    return [line for line in _lines(text) if not line.startswith("enum ")]


def _enums(text: str) -> dict[str, dict[str, int]]:
    enums: dict[str, dict[str, int]] = {}
    for line in _lines(text):
        if line.startswith("enum "):
            _, enum, *words = line.split()
            values = enums.setdefault(enum, {})
            values.update((name, int(number)) for name, _, number in (word.partition("=") for word in words))
    return enums


def _number(line: str) -> int:
    return int(line.split(maxsplit=1)[0])
