"""How much memory a network will take, and how much there is: asked before anything is allocated."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..errors import ArgumentError
from ..layers import Blob
from ..settings import free_memory, readable_bytes

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
    free = free_memory()
    return None if free is None else int(free * DEFAULT_SHARE)


def refuse(bytes_planned: int, allowed: int | None) -> None:
    """Raise ArgumentError where a plan is larger than what is allowed."""
    if allowed is not None and bytes_planned > allowed:
        raise ArgumentError(
            "the network needs more memory than it may take",
            given={"planned": readable_bytes(bytes_planned), "max_memory": readable_bytes(allowed)},
            required=f"planned <= max_memory: {bytes_planned} <= {allowed} bytes",
            hint="smaller inputs, or a larger max_memory",
        )
