"""How much memory a network will take, and how much there is: asked before anything is allocated."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from ..errors import ArgumentError
from ..layers import Blob

DEFAULT_SHARE = 0.75
"""The part of the free memory that a network may take unless told otherwise."""


class Ledger:
    """Bytes planned so far; memory that blobs share is counted once, at its largest."""

    def __init__(self) -> None:
        self.total = 0
        self._sizes: dict[object, int] = {}

    def add(self, blobs: Iterable[Blob], *, diff: bool = False) -> None:
        """Count the data of these blobs, or their gradients."""
        for blob in blobs:
            size = blob.count * np.dtype(blob.dtype).itemsize
            store = blob.memory()[1 if diff else 0]
            grown = max(size - self._sizes.get(store, 0), 0)
            self._sizes[store] = self._sizes.get(store, 0) + grown
            self.total += grown


def limit(max_memory: int | None) -> int | None:
    """The bytes a network may take: those asked for, else three quarters of what is free; None where that is unknown."""
    if max_memory is not None:
        if isinstance(max_memory, bool) or not isinstance(max_memory, int) or max_memory < 0:
            raise ArgumentError("max_memory is a number of bytes", given={"max_memory": max_memory}, hint="max_memory=4 * 2**30")
        return max_memory
    free = available()
    return None if free is None else int(free * DEFAULT_SHARE)


def available() -> int | None:
    """Bytes free for a new process on this machine or in this container; None where neither can be asked."""
    found = [n for n in (_machine(), _container()) if n is not None]
    return min(found, default=None)


def refuse(bytes_planned: int, allowed: int | None) -> None:
    """Raise ArgumentError where a plan is larger than what is allowed."""
    if allowed is not None and bytes_planned > allowed:
        raise ArgumentError(
            "the network needs more memory than it may take",
            given={"planned": _readable(bytes_planned), "max_memory": _readable(allowed)},
            required=f"planned <= max_memory: {bytes_planned} <= {allowed} bytes",
            hint="smaller inputs, or a larger max_memory",
        )


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


def _readable(size: int) -> str:
    return f"{size / 2**30:.2f} GiB" if size >= 2**30 else f"{size / 2**20:.2f} MiB"
