"""What was measured about convolutions on this machine, remembered in a file beside the kernels.

A line of JSON for each: what it is about, the way that was fastest, and all times. Entries belong to one processor and one
version of astride. The file appears whole; a damaged one, or one of another user, counts as empty.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ...proto import atomic_write
from .cache import folder
from .machine import machine

if sys.platform != "win32":
    import fcntl

LARGEST = 1 << 24
"""Bytes of the largest file that is read."""


def path() -> Path:
    """Where it is remembered."""
    return folder().parent / "tuned.jsonl"


def recall(key: str) -> str | None:
    """The way that was fastest, if that was measured."""
    found = entries().get(key)
    return None if found is None else str(found["way"])


@lru_cache(None)
def entries() -> dict[str, dict[str, Any]]:
    """What was measured on this machine, by what it is about; read once a process."""
    return {key: entry for (of, key), entry in _all().items() if of == _here()}


def remember(found: dict[str, dict[str, Any]]) -> None:
    """Add what was measured, {key: {"way": name, "ms": {name: milliseconds}}}, over what there was about the same."""
    path().parent.mkdir(parents=True, exist_ok=True)
    with _alone():
        known = _all() | {(_here(), key): entry for key, entry in found.items()}
        lines = (json.dumps({"of": of, "key": key, **entry}) + "\n" for (of, key), entry in known.items())
        atomic_write(path(), ("".join(lines).encode(),))
    entries.cache_clear()


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Other processes that remember wait, so that none overwrites what another one added; not where there are no such locks."""
    with open(path().with_suffix(".lock"), "ab") as lock:
        if sys.platform != "win32":
            with contextlib.suppress(OSError):  # some network file systems
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def clear() -> int:
    """Forget everything: how many entries there were."""
    count = len(_all())
    path().unlink(missing_ok=True)
    entries.cache_clear()
    return count


def _here() -> str:
    here = machine()
    return f"{here.cpu} {here.vector_bytes} astride {version('astride')}"


def _all() -> dict[tuple[str, str], dict[str, Any]]:
    try:
        status = path().stat()
        if status.st_size > LARGEST or (hasattr(os, "getuid") and status.st_uid != os.getuid()):
            return {}
        rows = [json.loads(line) for line in path().read_text(encoding="utf-8").splitlines()]
        return {(str(row["of"]), str(row["key"])): {"way": str(row["way"]), "ms": dict(row["ms"])} for row in rows}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
