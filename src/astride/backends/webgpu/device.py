"""A GPU, opened through WebGPU within its default limits, so that what runs on one adapter runs on every one.

Everything that makes `queue.submit` end the process (another device's buffer, a buffer of a device that is gone, a command buffer
submitted twice) is refused before it gets there. One lock guards a device; a process that was forked must open its own.
"""

from __future__ import annotations

import math
import operator
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ...errors import ArgumentError, AstrideError, BackendUnavailable, UnsupportedError
from ..protocol import Array
from .buffers import Buffers
from .tensor import DTYPES, Tensor, checked_array

LIMITS = {
    "max-bind-groups": 4,
    "max-bindings-per-bind-group": 1000,
    "max-buffer-size": 256 << 20,
    "max-compute-invocations-per-workgroup": 256,
    "max-compute-workgroup-size-x": 256,
    "max-compute-workgroup-size-y": 256,
    "max-compute-workgroup-size-z": 64,
    "max-compute-workgroup-storage-size": 16384,
    "max-compute-workgroups-per-dimension": 65535,
    "max-storage-buffer-binding-size": 128 << 20,
    "max-storage-buffers-per-shader-stage": 8,
    "max-uniform-buffer-binding-size": 64 << 10,
    "max-uniform-buffers-per-shader-stage": 12,
    "min-storage-buffer-offset-alignment": 256,
    "min-uniform-buffer-offset-alignment": 256,
}
"""WebGPU's default limits, https://www.w3.org/TR/webgpu/#limits: asked for by name, though the adapter may have more."""

BINDING_MAX = LIMITS["max-storage-buffer-binding-size"]
GROUPS_MAX = LIMITS["max-compute-workgroups-per-dimension"]
LOOP_MAX = 65_535
"""Some drivers stop an invocation's loops silently after this many turns, all its loops counted together."""

TENSORS_KEPT, PIPELINES_KEPT = 512, 1024
"""How many tensors of constants, and how many compiled programs, a device keeps before it starts anew."""

OPTIONAL = ("shader-f16", "timestamp-query")
KINDS = ("DiscreteGPU", "IntegratedGPU", "VirtualGPU", "Unknown", "CPU")
INTERFACES = ("Metal", "Vulkan", "D3D12", "OpenGL")
INSTALL = "pip install 'astride[gpu]'"
DRIVERS = "a GPU driver with Vulkan, Metal or D3D12; a software one for tests: apt-get install mesa-vulkan-drivers libvulkan1"

SPAWN = 'multiprocessing.get_context("spawn"), or opening devices in the children alone'

T = TypeVar("T")


class Device:
    """The best GPU of this machine, or with `allow_software` a driver that computes on the CPU where there is none.

    `software` takes the software driver even beside a GPU. ASTRIDE_GPU=software does the same, ASTRIDE_GPU=any allows it.
    `name`, `kind`, `interface`, `software`, `features` say what was found; `str(device)` says it in a line.
    Raises BackendUnavailable: wgpu is not installed or no adapter serves, with what would help.
    """

    def __init__(self, allow_software: bool = False, *, software: bool = False) -> None:
        wish = os.environ.get("ASTRIDE_GPU", "")
        if wish not in ("", "any", "software"):
            raise ArgumentError(
                "ASTRIDE_GPU has no such value",
                given={"ASTRIDE_GPU": wish},
                required="one of any, software",
                hint="unset ASTRIDE_GPU",
            )
        self._only_software = software or wish == "software"
        self._allow_software = allow_software or self._only_software or wish == "any"
        self.lock = threading.RLock()
        self.generation = 0
        self._open()

    def _open(self) -> None:
        adapter = _adapter(self._allow_software, self._only_software)
        info = adapter.info
        self.name = str(info.get("device") or info.get("description") or "unnamed")
        self.vendor, self.kind, self.interface = str(info["vendor"]), str(info["adapter_type"]), str(info["backend_type"])
        self.software = self.kind == "CPU"
        self.features = frozenset(f for f in OPTIONAL if f in adapter.features)
        self.missing = tuple(f for f in OPTIONAL if f not in adapter.features)
        have = adapter.limits
        limits = {n: max(v, have[n]) if n.startswith("min") else min(v, have[n]) for n, v in LIMITS.items() if n in have}
        self.below = tuple(n for n, v in limits.items() if v != LIMITS[n])
        self.wgpu: Any = adapter.request_device_sync(required_features=list(self.features), required_limits=limits)
        self.queue: Any = self.wgpu.queue
        self.pid, self.lost = os.getpid(), ""
        self.buffers = Buffers(self.wgpu)
        self._modules: dict[str, Any] = {}
        self._pipelines: dict[Any, Any] = {}
        self._layouts: dict[Any, Any] = {}
        self._kept: dict[Any, Tensor] = {}

    def __str__(self) -> str:
        parts = [f"{self.name} ({self.kind} through {self.interface})"]
        parts += ["a software driver: no GPU is used"] * self.software
        parts += [f"without {', '.join(self.missing)}"] * bool(self.missing)
        parts += [f"below WebGPU's default {', '.join(self.below)}"] * bool(self.below)
        return "; ".join(parts)

    def __repr__(self) -> str:
        return f"<Device {self}>"

    def tensor(self, array: Any) -> Tensor:
        """A copy of an array on this device: float32, float16 where the adapter has it, int32 or uint32.

        Raises ArrayError: not an array of these dtypes; ArgumentError: larger than a WebGPU binding.
        """
        source = checked_array(array, self.features)
        made = self.empty(source.shape, source.dtype)
        made.write(source)
        return made

    def empty(self, shape: tuple[int, ...], dtype: Any = "float32") -> Tensor:
        """A tensor whose contents are whatever was there before."""
        kind = np.dtype(dtype)
        if kind.name not in DTYPES or (kind.name == "float16" and "shader-f16" not in self.features):
            raise UnsupportedError(
                "the device has no such numbers", given={"dtype": kind.name, "device": str(self)}, hint='dtype="float32"'
            )
        try:
            sizes = tuple(map(operator.index, shape))
        except TypeError as error:
            raise ArgumentError("a shape is a tuple of whole numbers", given={"shape": shape}) from error
        size = math.prod(sizes) * kind.itemsize
        if min(sizes, default=0) < 0:
            raise ArgumentError("a size is negative", given={"shape": sizes}, required=f"every size >= 0: {min(sizes)}")
        if size > BINDING_MAX:
            raise ArgumentError(
                "the tensor is larger than a WebGPU binding",
                given={"tensor": f"{sizes} {kind.name}"},
                required=f"its bytes <= {BINDING_MAX}: {size}",
                because="WebGPU's default limits, maxStorageBufferBindingSize",
                hint="a smaller batch",
            )
        with self.lock:
            self.check()
            return Tensor(self, sizes, kind, self.guard(lambda: self.buffers.take(size)))

    def kept(self, key: Any, make: Callable[[], Array]) -> Tensor:
        """A tensor of constants, made once for a key: tables of plans, and the like."""
        with self.lock:
            found = self._kept.get(key)
            if found is None or found.generation != self.generation:
                if len(self._kept) >= TENSORS_KEPT:
                    self._kept.clear()
                found = self._kept[key] = self.tensor(make())
            return found

    def check(self) -> None:
        """Raise AstrideError where a submit would fail: the device is lost or closed, or belongs to the parent process."""
        self.check_process()
        if self.lost:
            raise AstrideError(
                "the device is lost", given={"device": str(self)}, because=self.lost, hint="device.restore(), then upload anew"
            )

    def check_process(self) -> None:
        """Raise AstrideError in a process that was forked after the device was opened."""
        if self.pid != os.getpid():
            raise AstrideError(
                "this device was opened before the process was forked",
                given={"opened by process": self.pid, "this process": os.getpid()},
                hint=SPAWN,
            )

    def restore(self) -> None:
        """Open the adapter again after a loss or `close`. Tensors and command buffers from before are refused from then on."""
        self.check_process()
        with self.lock:
            self.generation += 1
            self._open()

    def close(self) -> None:
        """Give the device back now. Whatever was made for it is refused from then on."""
        with self.lock:
            if not self.lost and self.pid == os.getpid():
                self.lost = "it was closed"
                self.wgpu.destroy()

    def guard(self, step: Callable[[], T]) -> T:
        """Run a step of wgpu's; a lost device becomes an error that can be caught. Other validation errors pass unchanged."""
        import wgpu

        try:
            return step()
        except wgpu.GPUValidationError as error:
            if "device is lost" not in str(error).lower():
                raise
            self.lost = "the driver gave it up"
            self.check()
            raise
        except wgpu.GPUOutOfMemoryError as error:
            raise ArgumentError(
                "the device has no memory left", given={"device": str(self)}, because=str(error), hint="smaller tensors"
            ) from error
        except (RuntimeError, wgpu.GPUError) as error:
            self.lost = str(error) or type(error).__name__
            self.check()
            raise

    def pipeline(self, source: str, entry: str, constants: tuple[tuple[str, float], ...], layout: tuple[bool, int, int]) -> Any:
        """The compiled program, made once. Raises wgpu's GPUValidationError for WGSL that does not compile."""
        key = (source, entry, constants, layout)
        with self.lock:
            found = self._pipelines.get(key)
            if found is None:
                self.check()
                if len(self._pipelines) >= PIPELINES_KEPT:
                    self._pipelines.clear()
                    self._modules.clear()
                module = self._modules.get(source)
                if module is None:
                    module = self._modules[source] = self.guard(lambda: self.wgpu.create_shader_module(code=source))
                bind = self.wgpu.create_pipeline_layout(bind_group_layouts=[self.layout(layout)])
                stage = {"module": module, "entry_point": entry, "constants": dict(constants)}
                found = self.guard(lambda: self.wgpu.create_compute_pipeline(layout=bind, compute=stage))
                self._pipelines[key] = found
            return found

    def layout(self, shape: tuple[bool, int, int]) -> Any:
        """The bind group layout of (has parameters, inputs, outputs): parameters first, then inputs, then outputs."""
        found = self._layouts.get(shape)
        if found is None:
            params, inputs, outputs = shape
            kinds = ["uniform"] * params + ["read-only-storage"] * inputs + ["storage"] * outputs
            entries = [{"binding": i, "visibility": 4, "buffer": {"type": kind}} for i, kind in enumerate(kinds)]  # 4: compute
            found = self._layouts[shape] = self.wgpu.create_bind_group_layout(entries=entries)
        return found

    def read(self, tensor: Tensor) -> Array:
        """The tensor's contents, after everything committed before."""
        with self.lock:
            tensor.check(self)
            return self.guard(lambda: self.buffers.read(tensor.buffer, tensor.nbytes)).view(tensor.dtype).reshape(tensor.shape)


_asked: list[int] = []
"""The process that first asked the drivers for adapters: a copy of it, forked, would wait for ever for the driver's threads."""

_shared: list[Device] = []
_sharing = threading.Lock()


def shared() -> Device:
    """The device on which `backend="webgpu"` computes, opened when first asked for, anew after a loss."""
    with _sharing:
        if not _shared:
            _shared[:] = [Device()]
        _shared[0].check_process()
        if _shared[0].lost:
            _shared[0].restore()
        return _shared[0]


def _adapter(allow_software: bool, only_software: bool) -> Any:
    """The adapter to open. Raises BackendUnavailable."""
    try:
        import wgpu
    except ImportError as error:
        raise BackendUnavailable(f"wgpu cannot be imported: {error}", given={"backend": "webgpu"}, hint=INSTALL) from error
    if _asked and _asked[0] != os.getpid():
        raise BackendUnavailable(
            "drivers do not survive a fork, and this process's parent has used them",
            given={"used by process": _asked[0], "this process": os.getpid()},
            hint=SPAWN,
        )
    _asked[:] = [os.getpid()]
    wanted = os.environ.get("WGPU_BACKEND_TYPE", "")
    found = [a for a in wgpu.gpu.enumerate_adapters_sync() if not wanted or a.info["backend_type"] == wanted]
    real = [a for a in found if a.info["adapter_type"] != "CPU"]
    usable = [a for a in found if a.info["adapter_type"] == "CPU"] if only_software else found if allow_software else real
    if not usable:
        seen = ", ".join(f"{a.info['device']} ({a.info['adapter_type']})" for a in found) or "none"
        raise BackendUnavailable(
            "no adapter serves" if found else "there is no adapter",
            given={"adapters": seen},
            required="a software adapter" if only_software else "an adapter that is a GPU",
            hint="Device(allow_software=True) or ASTRIDE_GPU=any" if found and not only_software else DRIVERS,
        )
    return min(usable, key=lambda a: (_place(KINDS, a.info["adapter_type"]), _place(INTERFACES, a.info["backend_type"])))


def _place(order: tuple[str, ...], name: str) -> int:
    return order.index(name) if name in order else len(order)
