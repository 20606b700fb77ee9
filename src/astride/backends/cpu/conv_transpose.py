"""Transposed convolution: the windows of the output that an input pixel is spread over, gathered from the output's side."""

from __future__ import annotations

from ..protocol import Kernel
from .conv_directions import backward, declines, forward, ways

KERNELS = (Kernel("tiles", forward, backward, declines, numpy=False, finishes=True, ways=ways),)
