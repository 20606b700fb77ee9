"""The reference: every plan in NumPy, readable, and the judge of all other backends. Each operator is a ladder of
rungs, `reference:loops4` to `reference:im2col`; which rung declines what is printed by `astride explain`."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec

from ..protocol import Kernel


class Reference:
    """Kernels live in a module named like their operator."""

    name = "reference"

    def kernels(self, op: str) -> tuple[Kernel, ...]:
        return _kernels(op)


@lru_cache
def _kernels(op: str) -> tuple[Kernel, ...]:
    if op.startswith("_") or find_spec(f"{__name__}.{op}") is None:
        return ()
    kernels: tuple[Kernel, ...] = import_module(f"{__name__}.{op}").KERNELS
    return kernels


BACKEND = Reference()
