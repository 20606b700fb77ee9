"""What forks of Caffe have added to its schema."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ..errors import ArgumentError
from ..proto import Schema

FORKS: Mapping[str, Mapping[str, str]] = {
    "ssd": {"PermuteParameter": "1 order uint32*", "LayerParameter": "202 permute_param PermuteParameter"},
}
"""dialect -> message -> its further lines, in the notation of proto/schema.py."""

DIALECTS = ("bvlc", *FORKS)


@cache
def schema(dialect: str | None = None) -> Schema:
    """A dialect's schema; without one BVLC's with all that the forks add, none of which contradicts another.

    Raises ArgumentError: no such dialect.
    """
    if dialect == "bvlc":
        return Schema.bvlc()
    if dialect is not None:
        if dialect not in FORKS:
            raise ArgumentError("there is no such dialect", given={"dialect": dialect}, required=f"one of {', '.join(DIALECTS)}")
        return Schema.bvlc().extended(dialect, FORKS[dialect])
    merged = Schema.bvlc()
    for name, lines in FORKS.items():
        merged = merged.extended(f"{merged.name}+{name}", lines)
    return merged
