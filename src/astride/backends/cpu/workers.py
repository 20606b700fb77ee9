"""The threads kernels run on. Python starts them; each waits inside a function written in IR, where it holds no lock of
Python's, and comes out to sleep when nothing has come for a while.

Work is never handed to a certain thread: whoever is there takes the next units, the caller always. A thread that sleeps,
is busy elsewhere or has gone with a fork costs help, not answers. Callers from several Python threads are safe: one gets
the helpers, the others work alone.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import threading
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from ... import settings
from ..protocol import Array
from .cache import functions
from .machine import machine

WORDS, LINE = 16, 64
PATIENCE = 4000
"""How often a worker looks before it sleeps: some 100 to 200 microseconds, about what lies between two layers."""

MOST = 256
"""Workers a process may have."""

Launch = Callable[..., None]

_kernels: dict[int, Launch] = {}
"""Kernels as functions, by their addresses."""


def run(
    kernel: int,
    geometry: int,
    a: int,
    b: int,
    c: int,
    d: int,
    total: int,
    chunk: int,
    threads: int | None = None,
    *,
    wake: bool = True,
) -> None:
    """Run a kernel over `total` units, `chunk` at a time. Addresses are trusted: the caller has checked every size.

    A call of one chunk, or with one thread allowed, runs here and wakes nobody; without `wake`, also where helpers sleep.
    """
    if total > chunk:
        allowed = threads or settings.threads()
        if allowed > 1 and (wake or workers().awake()):
            workers().launch(kernel, geometry, a, b, c, d, total, chunk, allowed)
            return
    call = _kernels.get(kernel)
    if call is None:
        word = ctypes.c_int64
        call = _kernels[kernel] = ctypes.CFUNCTYPE(None, *[word] * 7)(kernel)
    call(geometry, a, b, c, d, 0, total)


_byte: Callable[[Any], Any] = ctypes.c_char.from_buffer


def address_of(array: Array) -> int:
    """Where an array's numbers begin."""
    try:
        return ctypes.addressof(_byte(array))  # a third of the time; not for what is read-only, empty or bfloat16
    except (TypeError, ValueError, BufferError):
        return int(array.ctypes.data)


@lru_cache(None)
def _driver() -> tuple[Launch, Callable[..., int], Callable[[int], None]]:
    def write() -> str:
        return Path(__file__).with_name("driver.ll").read_text().replace("RELAX", machine().relax)

    launch, attend, dismiss = functions("driver", (), write, ("launch", "attend", "dismiss"))
    word = ctypes.c_int64
    return (
        ctypes.CFUNCTYPE(None, *[word] * 10)(launch),
        ctypes.CFUNCTYPE(word, word, word, word, word)(attend),
        ctypes.CFUNCTYPE(None, word)(dismiss),
    )


def _here() -> Callable[[], int] | None:
    """What says on which processor the caller runs; None where threads cannot be kept off a processor, or it cannot be said."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    try:
        found = ctypes.PyDLL(None).sched_getcpu
    except (OSError, AttributeError):
        return None
    return found if found() >= 0 else None


class Workers:
    """The helpers of one process, started when first needed and as many as were ever asked for."""

    def __init__(self) -> None:
        self._memory = ctypes.create_string_buffer(WORDS * LINE + LINE)
        base = ctypes.addressof(self._memory)
        self.state = base + -base % LINE
        self._threads: list[threading.Thread] = []
        self._bell = threading.Condition()
        self._asleep = 0
        self._rings = 0
        self._launches = 0
        self._ended = False
        self._most = MOST
        self._here = _here()
        self._kept_off = -1

    def launch(self, kernel: int, geometry: int, a: int, b: int, c: int, d: int, total: int, chunk: int, threads: int) -> None:
        """Run a kernel over `total` units, `chunk` at a time, on up to so many threads, the caller's included."""
        helpers = min(threads - 1, -(-total // chunk) - 1, MOST)
        self._launches += 1  # before it is asked who sleeps: see _attend
        if helpers > len(self._threads):
            self._start(helpers)
            self._kept_off = -1
        if self._here is not None:
            here = self._here()
            if here != self._kept_off:
                self._keep_off(here)
        if self._asleep and helpers:
            self._ring()
        _driver()[0](self.state, kernel, geometry, a, b, c, d, total, chunk, helpers)

    def awake(self) -> bool:
        """Whether some helper is at hand, or they are still to be started."""
        return not self._threads or len(self._threads) > self._asleep

    def _start(self, count: int) -> None:
        with self._bell:
            while len(self._threads) < min(count, self._most):
                number = len(self._threads)
                thread = threading.Thread(target=self._attend, args=(number,), name=f"astride-{number}", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # the system has no more threads, or the process ends: those that are there do
                    self._most = number
                    return
                self._threads.append(thread)

    def _keep_off(self, processor: int) -> None:
        """Let helpers run on all of this thread's processors but the one that it runs on itself.

        Linux likes to wake a thread where its waker runs. There it would wait for the very launch that it is to help with, for
        milliseconds, and again each time.
        """
        others = os.sched_getaffinity(0) - {processor}
        self._kept_off = processor
        for thread in self._threads if others else ():
            with contextlib.suppress(OSError):  # it has ended, or may not be moved
                os.sched_setaffinity(thread.native_id or 0, others)

    def _ring(self) -> None:
        with self._bell:
            self._rings += 1
            self._bell.notify_all()

    def _attend(self, number: int) -> None:
        attend = _driver()[1]
        seen = rings = launches = 0
        while True:
            seen = attend(self.state, number, seen, PATIENCE)
            if seen < 0:
                return
            if launches != self._launches:
                # One may have come after the worker's last look and before it got Python's lock, when nobody rang for it.
                launches = self._launches
                continue
            with self._bell:
                # A ring that came after the worker's last look and before it got here must not be slept through.
                if rings == self._rings and not self._ended:
                    self._asleep += 1
                    self._bell.wait()
                    self._asleep -= 1
                rings = self._rings
                if self._ended:
                    return

    def stop(self) -> None:
        """Send every worker home and wait for it."""
        with self._bell:
            self._ended, self._most = True, 0
            self._bell.notify_all()
        _driver()[2](self.state)
        for thread in self._threads:
            thread.join(timeout=1)


_workers: Workers | None = None
_birth = threading.Lock()


def workers() -> Workers:
    """The process's own."""
    global _workers
    if _workers is None:
        with _birth:
            if _workers is None:
                _driver()
                _workers = Workers()
                atexit.register(_workers.stop)
    return _workers


def _forget() -> None:
    """After a fork the threads are the parent's alone, and their state may be that of a launch half way through."""
    global _workers, _birth
    if _workers is not None:
        atexit.unregister(_workers.stop)
    _workers, _birth = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
