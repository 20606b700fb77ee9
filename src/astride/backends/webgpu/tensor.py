"""Arrays on a device."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ...errors import ArrayError, AstrideError
from ..protocol import Array
from .buffers import Memory

if TYPE_CHECKING:
    from .device import Device

DTYPES = {"float32": "f32", "float16": "f16", "int32": "i32", "uint32": "u32"}
"""What a tensor may hold, and WGSL's name for it."""


class Tensor:
    """A C-contiguous array in a device's memory: `shape`, `dtype`, `numpy()`, `write(array)`, `reshape(shape)`."""

    __slots__ = ("device", "dtype", "generation", "memory", "shape")

    def __init__(self, device: Device, shape: tuple[int, ...], dtype: np.dtype[Any], memory: Memory) -> None:
        self.device, self.shape, self.dtype, self.memory = device, shape, dtype, memory
        self.generation = device.generation

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def buffer(self) -> Any:
        """wgpu's buffer; it may be larger than the tensor."""
        return self.memory.buffer

    @property
    def wgsl(self) -> str:
        """WGSL's name of the element type."""
        return DTYPES[self.dtype.name]

    def __repr__(self) -> str:
        return f"<Tensor {self.shape} {self.dtype.name} on {self.device.name}>"

    def numpy(self) -> Array:
        """A copy as a NumPy array, after everything committed before."""
        return self.device.read(self)

    def write(self, array: Any) -> None:
        """Replace the contents, for everything committed from now on. Raises ArrayError: another shape or dtype."""
        source = checked_array(array, self.device.features)
        if source.shape != self.shape or source.dtype != self.dtype:
            raise ArrayError("the array does not fit the tensor", given={"array": source, "tensor": self})
        data = np.ascontiguousarray(source).reshape(-1).view(np.uint8)
        if len(data) % 4:
            data = np.concatenate([data, np.zeros(-len(data) % 4, np.uint8)])
        with self.device.lock:
            self.check(self.device)
            if len(data):
                self.device.guard(lambda: self.device.buffers.upload(self.buffer, data))

    def reshape(self, *sizes: int | tuple[int, ...]) -> Self:
        """The same memory under another shape, as sizes or a tuple of them. Raises ArrayError: another number of elements."""
        shape = tuple(n for size in sizes for n in (size if isinstance(size, tuple) else (size,)))
        if math.prod(shape) != self.size or min(shape, default=1) < 0:
            raise ArrayError("the shape has another number of elements", required=f"prod(shape) == {self.size}: {shape}")
        view = type(self)(self.device, shape, self.dtype, self.memory)
        view.generation = self.generation
        return view

    def check(self, device: Device) -> None:
        """Raise AstrideError where a submit with this tensor would fail."""
        device.check()
        if self.device is not device:
            raise AstrideError(
                "the tensor belongs to another device",
                given={"tensor": self, "device": str(device)},
                hint="device.tensor(tensor.numpy())",
            )
        if self.generation != device.generation:
            raise AstrideError(
                "the tensor was on the device when that was lost",
                given={"tensor": self},
                hint="device.tensor(array), once more",
            )


def checked_array(array: Any, features: frozenset[str]) -> Array:
    """A NumPy array that a tensor can hold. Raises ArrayError."""
    if not isinstance(array, np.ndarray):
        raise ArrayError("this is not a NumPy array", given={"array": type(array).__name__}, hint="numpy.asarray(array)")
    source = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    if source.dtype.name not in DTYPES or (source.dtype.name == "float16" and "shader-f16" not in features):
        names = [name for name in DTYPES if name != "float16" or "shader-f16" in features]
        raise ArrayError(
            "the device has no such numbers; nothing is converted unasked",
            given={"array": source},
            required=f"dtype one of {', '.join(names)}",
            hint="array.astype('float32')",
        )
    return source
