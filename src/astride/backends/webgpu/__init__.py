"""The WebGPU backend: kernels in WGSL, run through wgpu on Metal, Vulkan or D3D12. float32; the reference judges it.

It is never chosen by `auto`: arrays would travel to the device and back for every call. Name it, or keep data there by
`astride.gpu`.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec

from ...errors import BackendUnavailable
from ..protocol import Kernel

OPERATORS: dict[str, str] = {
    "avg_pool": "pooling",
    "broadcast": "dense",
    "conv": "conv",
    "conv_transpose": "conv",
    "elementwise": "dense",
    "lp_pool": "pooling",
    "lrn": "dense",
    "matmul": "dense",
    "max_pool": "pooling",
    "max_unpool": "max_unpool",
    "min_pool": "pooling",
    "reduce": "dense",
    "softmax": "dense",
    "softmax_loss": "dense",
    "stochastic_pool": "pooling",
}
"""Operators with kernels, and the modules whose KERNELS they are."""


class WebGpu:
    """Kernels by operator. Listing them opens no device; a kernel's `declines` does."""

    name = "webgpu"

    def kernels(self, op: str) -> tuple[Kernel, ...]:
        return _kernels(op)


@lru_cache
def _kernels(op: str) -> tuple[Kernel, ...]:
    if op not in OPERATORS:
        return ()
    if find_spec("wgpu") is None:
        raise BackendUnavailable("wgpu is not installed", given={"backend": "webgpu"}, hint="pip install 'astride[gpu]'")
    kernels: dict[str, tuple[Kernel, ...]] = import_module(f"{__name__}.{OPERATORS[op]}").KERNELS
    return kernels[op]


BACKEND = WebGpu()
