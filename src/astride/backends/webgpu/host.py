"""Running kernels on NumPy arrays: up, compute, down. What `backend="webgpu"` does for one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ...errors import AstrideError, BackendUnavailable
from .commands import CommandBuffer
from .device import BINDING_MAX, Device, shared

T = TypeVar("T")


def unavailable(features: tuple[str, ...] = ()) -> str | None:
    """Why nothing can run here, or None: the last question of every `declines`, since it opens the device."""
    found = _missing()
    if found is not None:
        return found
    lacks = [f for f in features if f not in shared().features]
    return f"the adapter has no {', '.join(lacks)}" if lacks else None


def _missing() -> str | None:
    """Why there is no device. Asked anew each time: a variable that is set, or a driver installed, counts at once."""
    try:
        shared()
    except BackendUnavailable as error:
        return f"{error.problem}: {error.hint}"
    except AstrideError as error:
        return error.problem
    return None


def run(encode: Callable[[Device, CommandBuffer], T]) -> T:
    """Encode on the shared device, commit, and return what `encode` did; reading a tensor waits for it."""
    device = shared()
    commands = CommandBuffer(device)
    result = encode(device, commands)
    commands.commit()
    return result


def images_at_once(images: int, *bytes_each: int) -> int:
    """How many images of a batch fit WebGPU's bindings, where one image's arrays take these bytes; at least one."""
    return max(min(images, *(BINDING_MAX // max(size, 1) for size in bytes_each)), 1)
