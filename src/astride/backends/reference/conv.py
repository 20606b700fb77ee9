"""Convolution: gather forward, scatter for dx, the product of both sides for dw. See _correlation."""

from __future__ import annotations

from ._conv_ladder import RUNGS, kernel

KERNELS = tuple(kernel(rung, transposed=False) for rung in RUNGS)
