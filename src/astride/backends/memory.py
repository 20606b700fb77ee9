"""Memory for large results: aligned, in huge pages, and used again.

Fresh memory costs the system more than a pooling kernel: it clears every page when that is first touched. So blocks come
back when the last array over them has gone, a few are kept, and the next result of about that size gets one. Blocks start
on a page, so that stores may go past the caches, and lie in huge pages where the system has them.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import mmap
import os
import threading
import weakref
from collections import deque
from typing import Any

import numpy as np

from .. import settings
from .protocol import Array

SMALLEST = 2**20
"""Bytes from which results live here; what is smaller the C library uses again."""

KEPT_BYTES = 256 * 2**20
"""Bytes kept for later, at most. A larger block goes back to the system at once."""

WASTE = 4
"""A block serves a result that fills at least all but a WASTE-th of it."""

HUGE = 2 * 2**20
"""Blocks are multiples of this, which is a huge page on most systems."""


SHOWN = 8
"""How many times larger than the memory it shows an array may be for a copy to be sensible."""


def contiguous(array: Any, dtype: Any = None) -> Array:
    """The array in C order, itself where it lies so already: what kernels read.

    Raises MemoryError: a large array whose copy would not fit into half of what is free, or that shows a little memory
    many times over, as broadcasting makes them. Whoever reads arrays where they lie can still compute it.
    """
    if array.flags.c_contiguous or array.nbytes < settings.ASKED_FROM:
        return np.ascontiguousarray(array, dtype)
    low, high = np.lib.array_utils.byte_bounds(array)
    free = settings.free_memory()
    if array.nbytes > SHOWN * (high - low) or (free is not None and array.nbytes > free // 2):
        raise MemoryError(f"a copy of {array.nbytes} bytes, in order, would be made of an array that lies in {high - low}")
    return np.ascontiguousarray(array, dtype)


class Pool:
    """Blocks that are free, and those that arrays live in. Any thread may ask, and arrays may die in any thread."""

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self.kept_bytes = kept_bytes
        self._lock = threading.Lock()
        self._free: list[Any] = []
        # A collector may call back at any moment, even while this thread holds the lock: so arrays that die only append.
        self._dead: deque[int] = deque()
        self._lent: dict[int, tuple[Any, Any]] = {}
        self._numbers = itertools.count()

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An array that is not initialised. Raises MemoryError: the system has no such block."""
        size = math.prod(shape) * dtype.itemsize
        with self._lock:
            self._collect()
            block = self._take(size)
        if block is None:
            block = self._new(-(-size // HUGE) * HUGE)
        whole, key = np.frombuffer(block, np.uint8), next(self._numbers)
        # Every view of the result holds `whole`: NumPy's arrays refer to the first array over their memory.
        self._lent[key] = (weakref.ref(whole, lambda _: self._dead.append(key)), block)
        return whole[:size].view(dtype).reshape(shape)

    def held(self) -> int:
        """Bytes that are kept and not in use."""
        with self._lock:
            self._collect()
            return sum(len(block) for block in self._free)

    def clear(self) -> None:
        """Give what is kept back to the system."""
        with self._lock:
            self._collect()
            self._free.clear()

    def _new(self, size: int) -> Any:
        try:
            return _block(size)
        except MemoryError:
            self.clear()  # what is kept may be what is missing
            return _block(size)

    def after_fork(self) -> None:
        """Nobody is left who could release the lock."""
        self._lock = threading.Lock()

    def _take(self, size: int) -> Any:
        """The smallest free block that fits, or None."""
        fitting = [block for block in self._free if size <= len(block) <= size + size // WASTE + HUGE]
        if not fitting:
            return None
        best = min(fitting, key=len)
        self._free = [block for block in self._free if block is not best]
        return best

    def _collect(self) -> None:
        """Take back the blocks of arrays that died; the latest are kept, as far as they fit."""
        while self._dead:
            _, block = self._lent.pop(self._dead.popleft())
            self._free.append(block)
        while sum(len(block) for block in self._free) > self.kept_bytes:
            del self._free[0]


def _block(size: int) -> Any:
    """Fresh memory of the process's own, in huge pages if the system will."""
    try:
        if not hasattr(mmap, "MAP_PRIVATE"):
            return mmap.mmap(-1, size)
        # Not shared with forked processes, which mmap's default would be.
        block = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"{size} bytes") from error
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a system built without them
            block.madvise(mmap.MADV_HUGEPAGE)
    return block


_pool = Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.after_fork)


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An array that is not initialised: of the pool's memory if it is large. Raises MemoryError."""
    if math.prod(shape) * dtype.itemsize < SMALLEST or dtype.hasobject:
        return np.empty(shape, dtype)
    return _pool.empty(shape, dtype)


def clear() -> None:
    """Give the memory kept for later results back to the system."""
    _pool.clear()


__all__ = ["Pool", "clear", "empty"]
