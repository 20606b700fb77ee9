"""Convolution: from plans to kernels that compute channels last in float32 or float64."""

from __future__ import annotations

from ..protocol import Kernel
from .conv_directions import backward, declines, forward, ways

KERNELS = (Kernel("tiles", forward, backward, declines, numpy=False, finishes=True, ways=ways),)
