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
    """A buffer on loan: it returns to the pool when nothing refers to it any more, in whatever thread that happens."""

    __slots__ = ("_back", "buffer", "size")

    def __init__(self, buffer: Any, size: int, back: deque[Any]) -> None:
        self.buffer, self.size, self._back = buffer, size, back

    def __del__(self) -> None:
        self._back.append((self.size, self.buffer))


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
        self._back: deque[Any] = deque()
        self._uniforms_back: deque[Any] = deque()
        self._free: dict[tuple[int, int], list[Any]] = {}
        self._free_bytes = 0
        self._pending = 0
        self.made = 0
        """How many buffers were created so far."""

    def take(self, size: int) -> Memory:
        """Memory for at least `size` bytes."""
        size = size_class(size)
        return Memory(self._buffer(self._storage, size), size, self._back)

    def uniform(self, data: bytes) -> Memory:
        """Memory with these bytes, to be read as parameters."""
        size = size_class(len(data))
        memory = Memory(self._buffer(self._uniform, size), size, self._uniforms_back)
        self._queue.write_buffer(memory.buffer, 0, data)
        return memory

    def upload(self, buffer: Any, data: NDArray[np.uint8]) -> None:
        """Write bytes, a multiple of four of them, into a buffer: before everything submitted later."""
        self._queue.write_buffer(buffer, 0, data)
        self._pending += data.nbytes
        if self._pending > UPLOADS_PENDING:
            self._queue.submit([self._device.create_command_encoder().finish()])
            self._pending = 0

    def fence(self) -> Any:
        """Four bytes that can be mapped once everything submitted with a copy into them is done."""
        return self._buffer(self._staging, SMALLEST)

    def await_fence(self, fence: Any) -> None:
        """Wait for the copy into a fence, and keep the fence for the next."""
        fence.map_sync(self._read)
        fence.unmap()
        self._keep(self._staging, SMALLEST, fence)

    def drop_fence(self, fence: Any) -> None:
        """Keep a fence that nobody waits for."""
        self._keep(self._staging, SMALLEST, fence)

    def read(self, buffer: Any, size: int) -> NDArray[np.uint8]:
        """A copy of a buffer's first bytes, after everything submitted before."""
        if not size:
            return np.empty(0, np.uint8)
        whole = -(-size // 4) * 4
        staging_size = size_class(whole)
        staging = self._buffer(self._staging, staging_size)
        encoder = self._device.create_command_encoder()
        encoder.copy_buffer_to_buffer(buffer, 0, staging, 0, whole)
        self._queue.submit([encoder.finish()])
        self._pending = 0
        staging.map_sync(self._read, 0, whole)
        data = np.array(np.frombuffer(staging.read_mapped(0, whole, copy=False), np.uint8)[:size])
        staging.unmap()
        self._keep(self._staging, staging_size, staging)
        return data

    def _buffer(self, usage: int, size: int) -> Any:
        self._collect()
        free = self._free.get((usage, size))
        if free:
            self._free_bytes -= size
            return free.pop()
        self.made += 1
        return self._device.create_buffer(size=size, usage=usage)

    def _collect(self) -> None:
        """Take in what has come back since the last call."""
        for back, usage in ((self._back, self._storage), (self._uniforms_back, self._uniform)):
            while back:
                size, buffer = back.popleft()
                self._keep(usage, size, buffer)

    def _keep(self, usage: int, size: int, buffer: Any) -> None:
        if self._free_bytes + size <= KEPT_BYTES:
            self._free.setdefault((usage, size), []).append(buffer)
            self._free_bytes += size


def size_class(size: int) -> int:
    """The bytes of the class that holds `size`: powers of two and the three steps between; at most a fifth is lost."""
    if size <= SMALLEST:
        return SMALLEST
    step = 1 << max((size - 1).bit_length() - 3, 8)
    return -(-size // step) * step
