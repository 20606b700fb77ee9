"""Scratch memory of a kernel, a slot for every thread that may be inside it.

Kernels do not know which thread they run on. Each takes a free slot when it begins and gives it back when it ends; there are
as many as threads may take part, so one is always free. What lies in a slot is left from earlier units: a kernel reads only
what it wrote. The memory is kept from call to call, since the system clears fresh memory page by page.
"""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np

from ... import settings
from ..memory import HUGE, Pool
from ..protocol import Array
from .ir import Function, Value
from .workers import address_of

SCRATCH, COUNT, FIRST_FREE = range(3)
"""Words of a block: the address of the first slot, how many there are, and what the kernel's own call has for it."""

MOST = (1 << 21) - (1 << 16)
"""Bytes of a slot that kernels of convolution ask for, at most: whoever needs more is computed in another way."""

FLAGS = 16
"""The word from which there is one for each slot: 1 while it is taken."""

_pool = Pool(64 * 2**20)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.after_fork)


def block(bytes_: int, units: int, *words: int) -> tuple[Array, Any]:
    """The block that a kernel of so many units is given, with the caller's own words from FIRST_FREE on; and the memory of
    the slots, which must live as long."""
    count = max(min(settings.threads(), units), 1)
    step = -(-bytes_ // 64) * 64
    memory = _memory(count * step)
    made = np.zeros(FLAGS + count, np.int64)
    made[: FIRST_FREE + len(words)] = (address_of(memory), count, *words)
    return made, memory


_own = threading.local()


def _memory(bytes_: int) -> Array:
    """Memory for a call of this thread: always the same if it is no more than HUGE, for calls follow each other and nothing in
    it is read by the next."""
    if bytes_ > HUGE:
        return _pool.empty((bytes_,), np.dtype(np.uint8))
    memory: Array | None = getattr(_own, "memory", None)
    if memory is None:
        memory = _own.memory = _pool.empty((HUGE,), np.dtype(np.uint8))
    return memory


def taker() -> Function:
    """The function `take_slot`: the number of a slot that was free."""
    f = Function("take_slot", private=True, result="i64", block="ptr")
    flags, count = f.at(f.block, FLAGS * 8), f.field(f.block, COUNT)
    f.line("br label %look")
    f.line("look:")
    f.line("%slot = phi i64 [ 0, %start ], [ %next, %taken ]")
    place = f.emit("ptr", f"getelementptr i64, ptr {flags.text}, i64 %slot")
    old = f.emit("i64", f"atomicrmw xchg ptr {place.text}, i64 1 acquire")
    f.line(f"br i1 {old.eq(0).text}, label %found, label %taken")
    f.line("taken:")
    f.line("%more = add i64 %slot, 1")
    f.line(f"%next = urem i64 %more, {count.text}")
    f.line("br label %look")
    f.line("found:")
    f.give(Value(f, "i64", "%slot"))
    return f


def slot(f: Function, block: Value, bytes_: Value) -> tuple[Value, Value]:
    """Take a slot, of so many bytes: its number and its memory."""
    number = f.call("i64", "take_slot", block)
    return number, f.at(f.load("ptr", f.at(block, SCRATCH * 8)), number * bytes_)


def give_back(f: Function, block: Value, number: Value) -> None:
    """Leave a slot to others."""
    f.line(f"store atomic i64 0, ptr {f.at(f.at(block, FLAGS * 8), number * 8).text} release, align 8")
