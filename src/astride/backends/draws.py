"""Random draws by their place alone. Every backend gives the same ones, so that whose they are is a matter of speed only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .. import settings
from ..errors import BackendUnavailable
from . import backend
from .reference import philox

MANY = 1 << 14
"""Draws from which it pays to load compiled code for them."""


def draws(count: int, seed: int, stream: int = 0) -> NDArray[np.float32]:
    """`count` draws in (0, 1], multiples of 2^-24: draw i is a function of (seed, stream, i)."""
    wanted = settings.current().backend.partition(":")[0]
    if wanted == "cpu" or (wanted == "auto" and count >= MANY):
        try:
            backend("cpu").kernels("stochastic_pool")  # raises where the compiler is missing
        except (BackendUnavailable, ImportError):
            return philox.draws(count, seed, stream)
        from .cpu.philox import draws as compiled

        return compiled(count, seed, stream)
    return philox.draws(count, seed, stream)
