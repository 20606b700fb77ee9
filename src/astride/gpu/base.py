"""What all kernels that are objects share: made for a device, checked, and turned into plain data and back."""

from __future__ import annotations

import base64
import binascii
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np

from ..backends.protocol import Array
from ..backends.webgpu.device import Device
from ..backends.webgpu.tensor import DTYPES, Tensor
from ..errors import ArgumentError, AstrideError

FORMAT, VERSION = "astride.gpu.kernel", 1
FLOAT_MAX = float(np.finfo(np.float32).max)
"""The largest number that a kernel's parameter may be."""
ARRAY_BYTES_MAX = 128 << 20
"""The largest array a kernel may hold: WebGPU binds no more."""


@dataclass(eq=False)
class DeviceKernel:
    """Base of kernels made for a device. Its fields are its parameters, those named in ARRAYS its arrays (weights).

    A parameter may be set at any time; it is checked at once by its type and, together with the others, by `check`.
    """

    ARRAYS: ClassVar[frozenset[str]] = frozenset()

    device: Device = field(repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_ready", True)
        self.check()

    def __setattr__(self, name: str, value: Any) -> None:
        hints = _hints(type(self))  # type: ignore[arg-type]
        if name not in hints:
            raise ArgumentError(
                f"{type(self).__name__} has no such parameter", given={name: value}, required=f"one of {', '.join(hints)}"
            )
        if name == "device":
            value = made_for(value)
        elif name not in self.ARRAYS:
            value = _typed(type(self).__name__, name, value, hints[name])
        before = getattr(self, name, None)
        object.__setattr__(self, name, value)
        if getattr(self, "_ready", False):
            try:
                self.check()
            except AstrideError:
                object.__setattr__(self, name, before)
                raise

    def check(self) -> None:
        """Raise ArgumentError where the parameters do not go together."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold, arrays included: `from_dict` makes an equal kernel of it on any device."""
        data = self._description()
        data["arrays"] = {name: _array_to_dict(value) for name, value in self._arrays().items()}
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], device: Device) -> Self:
        """The kernel that `to_dict` wrote. Raises ArgumentError: anything else, an unknown version included."""
        description = _described(data)
        if description["kernel"] != cls.__name__:
            raise ArgumentError(
                f"this is no saved {cls.__name__}",
                given={"kernel": description["kernel"]},
                hint="astride.gpu.from_dict(data, device)",
            )
        arrays = description.get("arrays", {})
        if not isinstance(arrays, Mapping):
            raise ArgumentError("a saved kernel's arrays are a table", given={"arrays": type(arrays).__name__})
        return cls._made(description, {str(name): _array_from_dict(name, value) for name, value in arrays.items()}, device)

    def _description(self) -> dict[str, Any]:
        """Everything but the arrays."""
        names = [f.name for f in fields(self) if f.name != "device" and f.name not in self.ARRAYS]
        parameters = {name: _plain(getattr(self, name)) for name in names}
        return {"format": FORMAT, "version": VERSION, "kernel": type(self).__name__, "parameters": parameters}

    def _arrays(self) -> dict[str, Array]:
        """The arrays that are there, as NumPy's."""
        found = {name: getattr(self, name) for name in sorted(self.ARRAYS)}
        return {name: a.numpy() if isinstance(a, Tensor) else np.asarray(a) for name, a in found.items() if a is not None}

    @classmethod
    def _made(cls, description: Mapping[str, Any], arrays: Mapping[str, Array], device: Device) -> Self:
        parameters = description.get("parameters")
        if not isinstance(parameters, Mapping):
            raise ArgumentError("a saved kernel's parameters are a table", given={"parameters": type(parameters).__name__})
        known = {f.name for f in fields(cls)} - {"device"} - cls.ARRAYS
        unknown = sorted(map(str, {*parameters} - known)) + sorted({*arrays} - cls.ARRAYS)
        if unknown:
            raise ArgumentError(f"{cls.__name__} has no such parameters", given={"unknown": unknown[:8]})
        given = {name: tuple(v) if isinstance(v, list) else v for name, v in parameters.items()}
        try:
            return cls(device, **given, **arrays)
        except TypeError as error:
            raise ArgumentError(f"this is no saved {cls.__name__}", because=str(error)) from error


def _described(data: Any) -> Mapping[str, Any]:
    """The data, if it says that it is a kernel of a version that is known. Raises ArgumentError."""
    if not isinstance(data, Mapping) or data.get("format") != FORMAT or not isinstance(data.get("kernel"), str):
        raise ArgumentError(
            "this is no saved kernel", required=f'a table with "format": "{FORMAT}" and "kernel"', hint="kernel.to_dict()"
        )
    if data.get("version") != VERSION:
        raise ArgumentError(
            "the kernel was saved in another version", given={"version": data.get("version")}, required=f"version == {VERSION}"
        )
    unknown = sorted(map(str, {*data} - {"format", "version", "kernel", "parameters", "arrays"}))
    if unknown:
        raise ArgumentError("a saved kernel has no such entries", given={"unknown": unknown[:8]})
    return data


@cache
def _hints(cls: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    return {f.name: hints[f.name] for f in fields(cls)}


def made_for(value: Any) -> Device:
    """The device, if it is one. Raises ArgumentError."""
    if not isinstance(value, Device):
        raise ArgumentError("a kernel is made for a device", given={"device": type(value).__name__}, hint="astride.gpu.Device()")
    return value


def _typed(kernel: str, name: str, value: Any, hint: Any) -> Any:
    """The value, if it is of the type that the field declares. Raises ArgumentError."""
    if _is(value, hint):
        return value
    wanted = getattr(hint, "__name__", str(hint)) if not typing.get_args(hint) else str(hint)
    raise ArgumentError(f"{kernel}'s {name} has another type", given={name: value}, required=f"{name}: {wanted}")


def _is(value: Any, hint: Any) -> bool:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_is(value, arg) for arg in args)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        members = (args[0],) * len(value) if args[-1] is Ellipsis else args
        return len(value) == len(members) and all(map(_is, value, members))
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= FLOAT_MAX
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**64
    return isinstance(value, hint)


def _plain(value: Any) -> Any:
    return [_plain(v) for v in value] if isinstance(value, tuple) else value


def _array_to_dict(array: Array) -> dict[str, Any]:
    data = base64.b64encode(np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
    return {"dtype": array.dtype.name, "shape": list(array.shape), "base64": data.decode("ascii")}


def _array_from_dict(name: Any, data: Any) -> Array:
    """Raises ArgumentError: bytes that are not those of the dtype and shape stated."""
    try:
        dtype, shape, text = data["dtype"], data["shape"], data["base64"]
        if len(data) != 3 or dtype not in DTYPES or not isinstance(text, str) or len(shape) > 8:
            raise ValueError("dtype, shape and base64, of a dtype that devices have")
        if not all(_is(n, int) and n >= 0 for n in shape):
            raise ValueError("a shape of whole numbers")
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if size > ARRAY_BYTES_MAX or len(text) != -(-size // 3) * 4:
            raise ValueError(f"{size} bytes, at most {ARRAY_BYTES_MAX}, in as much text")
        raw = base64.b64decode(text, validate=True)
        found = np.frombuffer(raw, np.dtype(dtype).newbyteorder("<")).astype(dtype)
        return found.reshape(shape)
    except (TypeError, KeyError, ValueError, binascii.Error) as error:
        raise ArgumentError("this is no saved array", given={"array": str(name)[:40]}, because=str(error)) from error
