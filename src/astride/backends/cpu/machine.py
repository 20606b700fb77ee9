"""The CPU that kernels are written for: its name and features as LLVM has them, and how wide its vectors are."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from functools import lru_cache

from ...errors import ArgumentError


@dataclass(frozen=True, slots=True)
class Machine:
    """`vector_bytes` is the width kernels are written for; `registers` how many vectors fit into the CPU at once; `halves`
    whether it reads and writes float16, for which LLVM would call a library that need not be there."""

    triple: str
    cpu: str
    features: str
    vector_bytes: int
    registers: int
    halves: bool = True

    def lanes(self, kind: str) -> int:
        """Elements of this type in one vector."""
        from .ir_types import size

        return max(self.vector_bytes // size(kind), 1)

    @property
    def relax(self) -> str:
        """The instruction that tells the CPU that a loop only waits."""
        if self.triple.startswith(("x86", "i686")):
            return "pause"
        return "yield" if self.triple.startswith(("aarch64", "arm64")) else ""


NAMED = {
    "avx512": ("x86_64", "skylake-avx512", "", 64, 32, True),
    "avx2": ("x86_64", "haswell", "", 32, 16, True),
    "neon": ("aarch64", "generic", "+neon", 16, 32, True),
    "plain": ("", "generic", "", 8, 16, False),
}
"""Machines by name, for `ASTRIDE_CPU` and for looking at code of another CPU: architecture, CPU, features, bytes,
registers, float16."""


@lru_cache(None)
def machine(name: str | None = None) -> Machine:
    """This machine, or one of those named. `ASTRIDE_CPU` names another for the whole process: ASTRIDE_CPU=avx2.

    Raises ArgumentError: no such machine.
    """
    name = name or os.environ.get("ASTRIDE_CPU") or None
    import llvmlite.binding as llvm

    triple = llvm.get_process_triple()
    if name is None:
        features = llvm.get_host_cpu_features()
        width, registers = _width(features, triple)
        halves = bool(features.get("f16c")) or triple.startswith(("aarch64", "arm64"))
        return Machine(triple, llvm.get_host_cpu_name(), features.flatten(), width, registers, halves)
    if name not in NAMED:
        raise ArgumentError("there is no such CPU", given={"ASTRIDE_CPU": name}, required=f"one of {', '.join(NAMED)}")
    architecture, cpu, features_text, width, registers, halves = NAMED[name]
    if architecture and not triple.startswith(architecture):
        triple = f"{architecture}-unknown-linux-gnu"
    return Machine(triple, cpu, features_text, width, registers, halves)


def _width(features: dict[str, bool], triple: str) -> tuple[int, int]:
    """Bytes of a vector, and how many registers there are. AVX-512 counts where bytes and words can be masked."""
    if all(features.get(f) for f in ("avx512f", "avx512bw", "avx512vl", "avx512dq")):
        return 64, 32
    if features.get("avx2") and features.get("fma"):
        return 32, 16
    if triple.startswith(("aarch64", "arm64")):
        return 16, 32
    return (16, 16) if platform.machine().lower() in ("x86_64", "amd64") else (8, 16)
