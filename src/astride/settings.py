"""Settings: which backend computes, on how many threads. `use` for a block, `configure` for the process.

A block's settings live in a context variable, so they follow the thread or task that set them and nobody else's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from .errors import ArgumentError


@dataclass(frozen=True, slots=True)
class Settings:
    """`backend`: "auto", a backend ("reference") or one of its rungs ("reference:loops2").

    `threads`: None means every CPU this process may run on, capped by OMP_NUM_THREADS.
    """

    backend: str = "auto"
    threads: int | None = None


_process = Settings()
_block: ContextVar[Settings | None] = ContextVar("astride_settings", default=None)


def current() -> Settings:
    """The settings in force here: the innermost `use` block, else what `configure` set."""
    return _block.get() or _process


def threads() -> int:
    """How many threads a backend may use: the setting, else the affinity mask capped by OMP_NUM_THREADS."""
    chosen = current().threads
    if chosen is not None:
        return chosen
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return min(available, int(limit)) if limit.isdigit() and int(limit) > 0 else available


def configure(*, backend: str | None = None, threads: int | None = None) -> Settings:
    """Set defaults for the whole process; what is not named stays. Returns the settings now in force.

    Raises ArgumentError: threads below 1, or a backend that is not a name.
    """
    global _process
    _process = _changed(_process, backend, threads)
    return _process


@contextmanager
def use(*, backend: str | None = None, threads: int | None = None) -> Iterator[Settings]:
    """Settings for one block: `with astride.use(backend="reference", threads=1): ...`. What is not named stays.

    Raises ArgumentError: threads below 1, or a backend that is not a name.
    """
    token = _block.set(_changed(current(), backend, threads))
    try:
        yield current()
    finally:
        _block.reset(token)


def _changed(base: Settings, backend: Any, threads: Any) -> Settings:
    if backend is not None and (not isinstance(backend, str) or not backend):
        raise ArgumentError("a backend is chosen by its name", given={"backend": backend}, hint='backend="auto"')
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
        raise ArgumentError(
            "threads counts from 1", given={"threads": threads}, required=f"threads >= 1: {threads!r}", hint="threads=1"
        )
    changes: dict[str, Any] = {}
    if backend is not None:
        changes["backend"] = backend
    if threads is not None:
        changes["threads"] = threads
    return replace(base, **changes)
