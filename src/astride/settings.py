"""Settings: which backend computes, on how many threads. `use` for a block, `configure` for the process. And the free memory.

A block's settings live in a context variable, so they follow the thread or task that set them and nobody else's.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from .errors import ArgumentError

ASKED_FROM = 1 << 26
"""Arrays of fewer bytes than this are made without asking the machine how much memory is free."""


@dataclass(frozen=True, slots=True)
class Settings:
    """`backend`: "auto", a backend ("reference") or one of its rungs ("reference:loops2").

    `threads`: None means every CPU this process may run on, capped by OMP_NUM_THREADS.
    `winograd`: outputs along a side of the tiles of Winograd's convolution, on backends that have it: 2, 4, or 0 for none.
    `tuned`: whether what `astride tune` measured on this machine goes before the choice by predicted times.
    """

    backend: str = "auto"
    threads: int | None = None
    winograd: int = 2
    tuned: bool = True


_process = Settings()
_block: ContextVar[Settings | None] = ContextVar("astride_settings", default=None)


def current() -> Settings:
    """The settings in force here: the innermost `use` block, else what `configure` set."""
    return _block.get() or _process


def threads() -> int:
    """How many threads a backend may use: the setting, else the affinity mask capped by OMP_NUM_THREADS."""
    chosen = current().threads
    return chosen if chosen is not None else _available()


@cache
def _available() -> int:
    """The CPUs this process may run on, capped by OMP_NUM_THREADS; asked once."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return min(available, int(limit)) if limit.isdigit() and int(limit) > 0 else available


def free_memory() -> int | None:
    """Bytes free for a new process on this machine or in this container; None where neither can be asked."""
    found = [n for n in (_machine(), _container()) if n is not None]
    return min(found, default=None)


def refuse_beyond_memory(what: str, shape: tuple[int, ...], dtype: str, itemsize: int, hint: str) -> None:
    """Raise ArgumentError where an array to be made is larger than the memory that is free."""
    size = math.prod(shape) * itemsize
    if size < ASKED_FROM:
        return
    free = free_memory()
    allowed = sys.maxsize if free is None else free
    if size > allowed:
        raise ArgumentError(
            f"{what} does not fit into the free memory",
            given={"array": f"{shape} {dtype}", "free": readable_bytes(allowed)},
            required=f"its bytes <= free bytes: {size} <= {allowed}",
            hint=hint,
        )


def readable_bytes(size: int) -> str:
    """A number of bytes as people read it."""
    return f"{size / 2**30:.2f} GiB" if size >= 2**30 else f"{size / 2**20:.2f} MiB"


def configure(
    *, backend: str | None = None, threads: int | None = None, winograd: int | None = None, tuned: bool | None = None
) -> Settings:
    """Set defaults for the whole process; what is not named stays. Returns the settings now in force.

    Raises ArgumentError: threads below 1, a backend that is not a name, or winograd that is not 0, 2 or 4.
    """
    global _process
    _process = _changed(_process, backend, threads, winograd, tuned)
    return _process


@contextmanager
def use(
    *, backend: str | None = None, threads: int | None = None, winograd: int | None = None, tuned: bool | None = None
) -> Iterator[Settings]:
    """Settings for one block: `with astride.use(backend="reference", threads=1): ...`. What is not named stays.

    Raises ArgumentError: threads below 1, a backend that is not a name, or winograd that is not 0, 2 or 4.
    """
    token = _block.set(_changed(current(), backend, threads, winograd, tuned))
    try:
        yield current()
    finally:
        _block.reset(token)


def _changed(base: Settings, backend: Any, threads: Any, winograd: Any, tuned: Any) -> Settings:
    if backend is not None and (not isinstance(backend, str) or not backend):
        raise ArgumentError("a backend is chosen by its name", given={"backend": backend}, hint='backend="auto"')
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
        raise ArgumentError(
            "threads counts from 1", given={"threads": threads}, required=f"threads >= 1: {threads!r}", hint="threads=1"
        )
    if winograd is not None and winograd not in (0, 2, 4):
        raise ArgumentError(
            "winograd is the side of a tile, or 0", given={"winograd": winograd}, required="one of 0, 2, 4", hint="winograd=2"
        )
    changes: dict[str, Any] = {}
    if backend is not None:
        changes["backend"] = backend
    if threads is not None:
        changes["threads"] = threads
    if winograd is not None:
        changes["winograd"] = int(winograd)
    if tuned is not None:
        changes["tuned"] = bool(tuned)
    return replace(base, **changes)


def _machine() -> int | None:
    info = Path("/proc/meminfo")
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    names = getattr(os, "sysconf_names", {})
    for pages in ("SC_AVPHYS_PAGES", "SC_PHYS_PAGES"):
        if pages in names and "SC_PAGE_SIZE" in names:
            return os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE")
    return None


def _container(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """What a container's own limit leaves; pages of files it could drop count as free."""
    try:
        most, used = (root / "memory.max").read_text().strip(), int((root / "memory.current").read_text())
        stat = dict(line.split() for line in (root / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        return None
    return int(most) - used + int(stat.get("inactive_file", 0)) if most.isdigit() else None
