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

LAZY = {
    "CommandBuffer": "..backends.webgpu.commands",
    "Device": "..backends.webgpu.device",
    "Tensor": "..backends.webgpu.tensor",
}
"""Public names and the modules they are imported from when first used."""

__all__ = ["CommandBuffer", "Device", "Tensor"]


def __getattr__(name: str) -> Any:
    if name not in LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(LAZY[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
