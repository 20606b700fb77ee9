"""Kernels in files: one safetensors file holds several, their parameters as JSON in its metadata, their weights as tensors."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from ..backends.protocol import Array
from ..backends.webgpu.device import Device
from ..errors import ArgumentError
from . import safetensors
from .base import DeviceKernel, _described

KERNELS: dict[str, str] = {
    "Convolution": "convolution",
    "ConvolutionGradient": "convolution",
    "ConvolutionTranspose": "convolution",
    "ConvolutionTransposeGradient": "convolution",
    "DilatedPoolingMax": "pooling",
    "DilatedPoolingMaxGradient": "pooling",
    "PoolingAverage": "pooling",
    "PoolingAverageGradient": "pooling",
    "PoolingL2Norm": "pooling",
    "PoolingL2NormGradient": "pooling",
    "PoolingMax": "pooling",
    "PoolingMaxGradient": "pooling",
    "PoolingMin": "pooling",
    "PoolingMinGradient": "pooling",
    "PoolingStochastic": "stochastic",
    "PoolingStochasticGradient": "stochastic",
}
"""Kernels that may stand in a file, and their modules. `Kernel` is not among them: its text is a program."""

KEY = "astride.gpu.kernels"


def from_dict(data: Mapping[str, Any], device: Device) -> DeviceKernel:
    """The kernel that some kernel's `to_dict` wrote, on a device. Raises ArgumentError: anything else."""
    return _class(_described(data)["kernel"]).from_dict(data, device)


def save(path: str | os.PathLike[str], kernels: Mapping[str, DeviceKernel]) -> None:
    """Write kernels under their names into one file, atomically."""
    arrays: dict[str, Array] = {}
    described: dict[str, Any] = {}
    for name, kernel in kernels.items():
        if type(kernel).__name__ not in KERNELS:
            raise ArgumentError(
                "such kernels are not saved in files", given={name: type(kernel).__name__}, hint="kernel.to_dict()"
            )
        described[name] = kernel._description()
        arrays |= {f"{name}.{part}": array for part, array in kernel._arrays().items()}
    safetensors.write(path, arrays, {KEY: json.dumps(described)})


def load(path: str | os.PathLike[str], device: Device) -> dict[str, DeviceKernel]:
    """The kernels of a file, made for a device. Raises ArgumentError: not such a file, or parameters that do not check out."""
    arrays, metadata = safetensors.read(path)
    try:
        described = json.loads(metadata[KEY], object_pairs_hook=safetensors.once)
        names = list(described.items())
    except (KeyError, ValueError, AttributeError, RecursionError) as error:
        raise ArgumentError("this file holds no kernels", given={"path": str(path)}, because=str(error)) from error
    parts: dict[str, dict[str, Array]] = {}
    for key, array in arrays.items():
        owner, _, part = key.rpartition(".")
        parts.setdefault(owner, {})[part] = array
    kernels: dict[str, DeviceKernel] = {}
    for name, data in names:
        kernels[name] = _class(_described(data)["kernel"])._made(data, parts.pop(name, {}), device)
    if parts:
        raise ArgumentError("the file has arrays of no kernel", given={"kernels": sorted(parts)[:8]})
    return kernels


def _class(name: str) -> type[DeviceKernel]:
    if name not in KERNELS:
        raise ArgumentError("there is no kernel of that name", given={"kernel": name}, required=f"one of {', '.join(KERNELS)}")
    found: type[DeviceKernel] = getattr(import_module(f".{KERNELS[name]}", __package__), name)
    return found
