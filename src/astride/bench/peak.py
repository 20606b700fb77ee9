"""How fast this machine multiplies and adds at most: independent sums in registers, and nothing read."""

from __future__ import annotations

import time

from .. import settings
from ..backends.cpu.cache import functions
from ..backends.cpu.ir import module
from ..backends.cpu.ir_types import SHORT, element, vector
from ..backends.cpu.machine import Machine, machine
from ..backends.cpu.window import kernel_function
from ..backends.cpu.workers import run

STEPS = 10_000
"""Products of one sum and unit."""

UNITS = 16


def peak(seconds: float = 0.02) -> float:
    """GFLOP/s in float32 on the threads allowed here: the best of many short turns."""
    (address,) = functions("peak", STEPS, lambda: multiply_add(machine()), ("peak",))
    sums, lanes = _size(machine())
    threads = settings.threads()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        run(address, 0, 0, 0, 0, 0, UNITS * threads, 1)
        best = min(best, time.perf_counter() - begin)
    return 2.0 * UNITS * threads * STEPS * sums * lanes / best / 1e9


def _size(machine: Machine) -> tuple[int, int]:
    """Sums and their lanes: more than a multiplication takes cycles, fewer than there are registers."""
    return min(machine.registers - 4, 20), max(machine.lanes("float"), 2)


def multiply_add(machine: Machine) -> str:
    """The module of `peak`. All numbers are zeros, which the compiler does not know; so nothing is written at the end."""
    f, (sums, lanes) = kernel_function("peak"), _size(machine)
    kind = vector(lanes, "float")
    zero = f.splat((f.begin >> 62).to("float"), lanes)
    parts = [f.variable(kind, zero) for _ in range(sums)]
    with f.loop(f.begin, f.end), f.loop(0, STEPS):
        for part in parts:
            part.set(f.call(kind, f"llvm.fmuladd.v{lanes}{SHORT[element(kind)]}", part.get(), zero, zero))
    total = zero
    for part in parts:
        total = total + part.get()
    with f.when(f.any(total > 0)):
        f.store(total, f.d)
    return module(f)
