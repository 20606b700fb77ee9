"""The CPU backend: kernels written in Python as LLVM IR, compiled for this very CPU and kept on disk, run on threads that
Python starts. No C compiler, no Numba. docs/cpu.md tells how it works; the reference judges every result."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec

from ...errors import BackendUnavailable
from ..protocol import Kernel

OPERATORS = frozenset(
    {"max_pool", "min_pool", "avg_pool", "lp_pool", "stochastic_pool", "max_unpool", "conv", "conv_transpose", "conv_integer"}
)
"""Operators with kernels: modules of these names."""


class Cpu:
    """Kernels live in a module named like their operator."""

    name = "cpu"

    def kernels(self, op: str) -> tuple[Kernel, ...]:
        return _kernels(op)


@lru_cache
def _kernels(op: str) -> tuple[Kernel, ...]:
    if op not in OPERATORS:
        return ()
    if find_spec("llvmlite") is None:
        raise BackendUnavailable("llvmlite is not installed", given={"backend": "cpu"}, hint="pip install llvmlite")
    kernels: tuple[Kernel, ...] = import_module(f"{__name__}.{op}").KERNELS
    return kernels


BACKEND = Cpu()
