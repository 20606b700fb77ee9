"""GPUs through WebGPU, after the manner of Metal Performance Shaders: kernels are objects that you encode into a command buffer,
your own among them.

device = astride.gpu.Device()
x = device.tensor(image)
commands = astride.gpu.CommandBuffer(device)
y = astride.gpu.PoolingMax(device, 3, 3, 2, 2).encode(commands, x)
commands.commit()
result = y.numpy()
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..backends.webgpu.commands import CommandBuffer
    from ..backends.webgpu.device import Device
    from ..backends.webgpu.tensor import Tensor
    from .convolution import Convolution, ConvolutionGradient, ConvolutionTranspose, ConvolutionTransposeGradient
    from .kernel import Kernel
    from .pooling import (
        DilatedPoolingMax,
        DilatedPoolingMaxGradient,
        PoolingAverage,
        PoolingAverageGradient,
        PoolingL2Norm,
        PoolingL2NormGradient,
        PoolingMax,
        PoolingMaxGradient,
        PoolingMin,
        PoolingMinGradient,
    )
    from .saving import from_dict, load, save
    from .stochastic import PoolingStochastic, PoolingStochasticGradient

LAZY = {
    "CommandBuffer": "..backends.webgpu.commands",
    "Convolution": ".convolution",
    "ConvolutionGradient": ".convolution",
    "ConvolutionTranspose": ".convolution",
    "ConvolutionTransposeGradient": ".convolution",
    "Device": "..backends.webgpu.device",
    "DilatedPoolingMax": ".pooling",
    "DilatedPoolingMaxGradient": ".pooling",
    "Kernel": ".kernel",
    "PoolingAverage": ".pooling",
    "PoolingAverageGradient": ".pooling",
    "PoolingL2Norm": ".pooling",
    "PoolingL2NormGradient": ".pooling",
    "PoolingMax": ".pooling",
    "PoolingMaxGradient": ".pooling",
    "PoolingMin": ".pooling",
    "PoolingMinGradient": ".pooling",
    "PoolingStochastic": ".stochastic",
    "PoolingStochasticGradient": ".stochastic",
    "Tensor": "..backends.webgpu.tensor",
    "from_dict": ".saving",
    "load": ".saving",
    "save": ".saving",
}
"""Public names and the modules they are imported from when first used."""

__all__ = [
    "CommandBuffer",
    "Convolution",
    "ConvolutionGradient",
    "ConvolutionTranspose",
    "ConvolutionTransposeGradient",
    "Device",
    "DilatedPoolingMax",
    "DilatedPoolingMaxGradient",
    "Kernel",
    "PoolingAverage",
    "PoolingAverageGradient",
    "PoolingL2Norm",
    "PoolingL2NormGradient",
    "PoolingMax",
    "PoolingMaxGradient",
    "PoolingMin",
    "PoolingMinGradient",
    "PoolingStochastic",
    "PoolingStochasticGradient",
    "Tensor",
    "from_dict",
    "load",
    "save",
]


def __getattr__(name: str) -> Any:
    if name not in LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(LAZY[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
