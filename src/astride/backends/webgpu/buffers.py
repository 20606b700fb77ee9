"""Device memory in size classes, used again; and the mapped memory through which results come back."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

SMALLEST = 256
KEPT_BYTES = 512 << 20
"""Free buffers beyond this much are dropped rather than kept."""
UPLOADS_PENDING = 64 << 20
"""Uploads hold a second copy of their bytes until something is submitted: after this much, something is."""


class Memory:
    """A buffer on loan: it returns to the pool when nothing refers to it any more, in whatever thread that happens.

    The pool refers to the buffer all the while: else the two could be garbage of one cycle, and the buffer be finalised first.
    """

    __slots__ = ("_back", "buffer")

    def __init__(self, buffer: Any, back: deque[int]) -> None:
        self.buffer, self._back = buffer, back

    def __del__(self) -> None:
        self._back.append(id(self.buffer))


class Buffers:
    """The pool of one device. The device's lock is held by whoever calls; only `Memory` returns without it.

    A buffer may be given out again while work that uses it is still running: the queue keeps the order.
    """

    def __init__(self, device: Any) -> None:
        import wgpu

        use = wgpu.BufferUsage
        self._device, self._queue = device, device.queue
        self._storage = use.STORAGE | use.COPY_SRC | use.COPY_DST
        self._uniform, self._staging = use.UNIFORM | use.COPY_DST, use.MAP_READ | use.COPY_DST
        self._read = wgpu.MapMode.READ
        self._back: deque[int] = deque()
        self._lent: dict[int, tuple[int, int, Any]] = {}
        self._free: dict[tuple[int, int], list[Any]] = {}
        self._free_bytes = 0
        self._pending = 0
        self.made = 0
        """How many buffers were created so far."""

    def take(self, size: int) -> Memory:
        """Memory for at least `size` bytes."""
        return self._lend(self._storage, size)

    def uniform(self, data: bytes) -> Memory:
        """Memory with these bytes, to be read as parameters."""
        memory = self._lend(self._uniform, len(data))
        self._queue.write_buffer(memory.buffer, 0, data)
        return memory

    def upload(self, buffer: Any, data: NDArray[np.uint8]) -> None:
        """Write bytes, a multiple of four of them, into a buffer: before everything submitted later."""
        self._queue.write_buffer(buffer, 0, data)
        self._pending += data.nbytes
        if self._pending > UPLOADS_PENDING:
            self._queue.submit([self._device.create_command_encoder().finish()])
            self._pending = 0

    def fence(self) -> Memory:
        """Four bytes that can be mapped once everything submitted with a copy into them is done."""
        return self._lend(self._staging, 4)

    def await_fence(self, fence: Memory) -> None:
        """Wait for the copy into a fence."""
        fence.buffer.map_sync(self._read)
        fence.buffer.unmap()

    def read(self, buffer: Any, size: int) -> NDArray[np.uint8]:
        """A copy of a buffer's first bytes, after everything submitted before."""
        if not size:
            return np.empty(0, np.uint8)
        whole = -(-size // 4) * 4
        memory = self._lend(self._staging, whole)
        staging = memory.buffer
        encoder = self._device.create_command_encoder()
        encoder.copy_buffer_to_buffer(buffer, 0, staging, 0, whole)
        self._queue.submit([encoder.finish()])
        self._pending = 0
        staging.map_sync(self._read, 0, whole)
        data = np.array(np.frombuffer(staging.read_mapped(0, whole, copy=False), np.uint8)[:size])
        staging.unmap()
        return data

    def _lend(self, usage: int, size: int) -> Memory:
        self._collect()
        size = size_class(size)
        free = self._free.get((usage, size))
        if free:
            self._free_bytes -= size
            buffer = free.pop()
        else:
            self.made += 1
            buffer = self._device.create_buffer(size=size, usage=usage)
        self._lent[id(buffer)] = (usage, size, buffer)
        return Memory(buffer, self._back)

    def _collect(self) -> None:
        """Take in what has come back since the last call, as much as may be kept."""
        while self._back:
            usage, size, buffer = self._lent.pop(self._back.popleft())
            if self._free_bytes + size <= KEPT_BYTES:
                self._free.setdefault((usage, size), []).append(buffer)
                self._free_bytes += size


def size_class(size: int) -> int:
    """The bytes of the class that holds `size`: powers of two and the three steps between; at most a fifth is lost."""
    if size <= SMALLEST:
        return SMALLEST
    step = 1 << max((size - 1).bit_length() - 3, 8)
    return -(-size // step) * step
