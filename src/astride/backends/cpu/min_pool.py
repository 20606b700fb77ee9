"""Min pooling: the least tap of each window, in vectors."""

from __future__ import annotations

from ..protocol import Kernel
from .pooling import backward, declines, forward

KERNELS = (Kernel("vectors", forward, backward, declines, numpy=False),)
