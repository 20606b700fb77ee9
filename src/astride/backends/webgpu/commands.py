"""Command buffers: work is encoded, committed once, and runs in the order in which it was encoded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import ArgumentError, ArrayError, AstrideError
from .device import GROUPS_MAX, LIMITS, Device
from .program import Program, element_dtype
from .tensor import Tensor

UNIFORM_STEP = LIMITS["min-uniform-buffer-offset-alignment"]
TIMESTAMPS_MAX = 4096


@dataclass(frozen=True, slots=True)
class _Dispatch:
    program: Program
    pipeline: Any
    tensors: tuple[Tensor, ...]
    params: bytes
    groups: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class _Clear:
    tensor: Tensor


class CommandBuffer:
    """Encode kernels into it, `commit` once, `wait` for the end. Encoding checks everything; commit alone touches the queue.

    `timed=True` measures each dispatch on the device: `times` are (name, seconds) after `wait`.
    Tensors written on the host (`Tensor.write`) between encoding and commit are seen as written.
    """

    def __init__(self, device: Device, *, timed: bool = False) -> None:
        device.check()
        if timed and "timestamp-query" not in device.features:
            raise ArgumentError("the adapter has no timestamps", given={"device": str(device)}, hint="timed=False")
        self.device, self.generation, self.timed = device, device.generation, timed
        self.times: list[tuple[str, float]] = []
        self._work: list[_Dispatch | _Clear] = []
        self._names: list[str] = []
        self._state = "open"
        self._fence: Any = None
        self._stamps: Any = None

    def __repr__(self) -> str:
        return f"<CommandBuffer {self._state}, {len(self._names)} dispatches on {self.device.name}>"

    def run(self, program: Program, inputs: Sequence[Tensor], outputs: Sequence[Tensor], threads: int, **params: Any) -> None:
        """Encode a program made by `flat_program` over `threads` invocations."""
        groups = -(-threads // program.workgroup)
        x = min(groups, GROUPS_MAX)
        self.dispatch(program, inputs, outputs, (x, -(-groups // x) if x else 0, 1), {"count": threads, **params})

    def dispatch(
        self,
        program: Program,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        groups: tuple[int, int, int],
        params: Mapping[str, Any] | bytes | None = None,
    ) -> None:
        """Encode a program over a grid of workgroups. An empty grid is nothing to do. `params` are values by name, or packed.

        Raises ArgumentError: the grid, the bindings or the parameters leave WebGPU's limits or the program's declaration;
        ArrayError: a tensor of another dtype, or bound for reading and writing at once; AstrideError: committed already,
        or a tensor of another or a lost device.
        """
        self._check_open()
        tensors = (*inputs, *outputs)
        _check_bindings(self.device, program, inputs, outputs)
        if max(groups) > GROUPS_MAX or min(groups) < 0:
            raise ArgumentError(
                "the grid has more workgroups than WebGPU allows along an axis",
                given={"groups": groups, "kernel": program.name},
                required=f"0 <= groups <= {GROUPS_MAX}: {max(groups)}",
                hint="a smaller tensor",
            )
        data = params if isinstance(params, bytes) else program.pack(params or {})
        if bool(data) != bool(program.params) or len(data) < 4 * len(program.params) or len(data) % 16:
            raise ArgumentError(
                f"the packed parameters of {program.name} are not its structure's",
                given={"bytes": len(data)},
                required=f"a multiple of 16 bytes, at least {4 * len(program.params)}",
            )
        if 0 in groups:
            return
        pipeline = self.device.pipeline(program.source, program.entry, program.constants, program.layout)
        with self.device.lock:
            self._check_open()
            self._work.append(_Dispatch(program, pipeline, tensors, data, groups))
            self._names.append(program.name)

    def clear(self, tensor: Tensor) -> None:
        """Encode setting every element to zero."""
        self._check_open()
        tensor.check(self.device)
        if tensor.size:
            self._work.append(_Clear(tensor))

    def commit(self) -> None:
        """Send everything encoded to the device, which runs it while Python goes on. Raises AstrideError: a second time."""
        self._check_open()
        with self.device.lock:
            self._check_open()
            for work in self._work:
                for tensor in (work.tensor,) if isinstance(work, _Clear) else work.tensors:
                    tensor.check(self.device)
            self._state = "committed"
            self.device.guard(self._submit)
            self._work = []

    def wait(self) -> None:
        """Return when everything committed here is done. Raises AstrideError: not committed, or the device was lost."""
        if self._state == "open":
            raise AstrideError("the command buffer has not been committed", hint="commit() before wait()")
        with self.device.lock:
            if self._fence is None:
                return
            self._check_device()
            fence, self._fence = self._fence, None
            self.device.guard(lambda: self.device.buffers.await_fence(fence))
            if self._stamps is not None:
                self._read_times()

    def _check_open(self) -> None:
        if self._state != "open":
            raise AstrideError(
                "a command buffer is committed once", given={"command buffer": self._state}, hint="a new CommandBuffer(device)"
            )
        self._check_device()

    def _check_device(self) -> None:
        self.device.check()
        if self.generation != self.device.generation:
            raise AstrideError("the device was lost after this command buffer was made", hint="a new CommandBuffer(device)")

    def _submit(self) -> None:
        device, buffers = self.device.wgpu, self.device.buffers
        dispatches = [work for work in self._work if isinstance(work, _Dispatch)]
        data = b"".join(d.params + b"\0" * (-len(d.params) % UNIFORM_STEP) for d in dispatches)
        uniform = buffers.uniform(data) if data else None
        encoder = device.create_command_encoder()
        if self.timed and dispatches:
            self._stamps = device.create_query_set(type="timestamp", count=2 * min(len(dispatches), TIMESTAMPS_MAX // 2))
        at = done = 0
        running = None
        for work in self._work:
            if running is not None and (self.timed or isinstance(work, _Clear)):
                running.end()
                running = None
            if isinstance(work, _Clear):
                encoder.clear_buffer(work.tensor.buffer, 0, -(-work.tensor.nbytes // 4) * 4)
                continue
            if running is None:
                running = encoder.begin_compute_pass(**self._stamping(done))
            self._encode(running, work, uniform, at)
            at += -(-len(work.params) // UNIFORM_STEP) * UNIFORM_STEP
            done += 1
        if running is not None:
            running.end()
        self._fence = buffers.fence()
        encoder.clear_buffer(self._fence.buffer, 0, 4)
        self.device.queue.submit([encoder.finish()])

    def _stamping(self, index: int) -> dict[str, Any]:
        if self._stamps is None or 2 * index + 1 >= self._stamps.count:
            return {}
        writes = {
            "query_set": self._stamps,
            "beginning_of_pass_write_index": 2 * index,
            "end_of_pass_write_index": 2 * index + 1,
        }
        return {"timestamp_writes": writes}

    def _encode(self, running: Any, work: _Dispatch, uniform: Any, at: int) -> None:
        declared = (*work.program.inputs, *work.program.outputs)
        resources = [_resource(t, kind) for t, (_, kind) in zip(work.tensors, declared, strict=True)]
        if work.params:
            resources.insert(0, {"buffer": uniform.buffer, "offset": at, "size": len(work.params)})
        layout = self.device.layout(work.program.layout)
        entries = [{"binding": i, "resource": resource} for i, resource in enumerate(resources)]
        running.set_pipeline(work.pipeline)
        running.set_bind_group(0, self.device.wgpu.create_bind_group(layout=layout, entries=entries))
        running.dispatch_workgroups(*work.groups)

    def _read_times(self) -> None:
        """Resolve the timestamps of every dispatch."""
        import numpy as np
        import wgpu

        stamps, self._stamps = self._stamps, None
        usage = wgpu.BufferUsage.QUERY_RESOLVE | wgpu.BufferUsage.COPY_SRC
        resolved = self.device.wgpu.create_buffer(size=8 * stamps.count, usage=usage)
        encoder = self.device.wgpu.create_command_encoder()
        encoder.resolve_query_set(stamps, 0, stamps.count, resolved, 0)
        self.device.queue.submit([encoder.finish()])
        ticks = self.device.buffers.read(resolved, 8 * stamps.count).view(np.uint64).reshape(-1, 2)
        tick = _tick(self.device.queue)
        self.times = [(name, float(end - begin) * tick) for name, (begin, end) in zip(self._names, ticks, strict=False)]


def _tick(queue: Any) -> float:
    """Seconds of one step of a queue's timestamps: the native library gives them as the adapter counts, not in nanoseconds."""
    try:
        from wgpu.backends.wgpu_native import lib

        return float(lib.wgpuQueueGetTimestampPeriod(queue._internal)) * 1e-9
    except (ImportError, AttributeError):
        return 1e-9


def _resource(tensor: Tensor, kind: str) -> dict[str, Any]:
    """What a tensor binds: its own bytes, in whole elements."""
    step = 16 if kind.startswith("vec") else 4
    return {"buffer": tensor.buffer, "offset": 0, "size": max(-(-tensor.nbytes // step), 1) * step}


def _check_bindings(device: Device, program: Program, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
    """Raise for tensors that do not fit the program's declaration or each other."""
    if (len(inputs), len(outputs)) != (len(program.inputs), len(program.outputs)):
        raise ArgumentError(
            f"{program.name} takes other numbers of tensors",
            given={"inputs": len(inputs), "outputs": len(outputs)},
            required=f"{len(program.inputs)} inputs, {len(program.outputs)} outputs",
        )
    if len(inputs) + len(outputs) > LIMITS["max-storage-buffers-per-shader-stage"]:
        raise ArgumentError(
            "more tensors than WebGPU binds at once",
            given={"kernel": program.name},
            required=f"inputs + outputs <= 8: {len(inputs) + len(outputs)}",
        )
    for tensor, (name, kind) in zip((*inputs, *outputs), (*program.inputs, *program.outputs), strict=True):
        if not isinstance(tensor, Tensor):
            raise ArrayError(f"{name} is not a tensor", given={name: type(tensor).__name__}, hint="device.tensor(array)")
        tensor.check(device)
        if tensor.dtype.name != element_dtype(kind):
            raise ArrayError(
                f"{name} has another dtype than {program.name} declares",
                given={name: tensor},
                required=f"dtype == {element_dtype(kind)}: {tensor.dtype.name}",
            )
    written = [id(tensor.memory) for tensor in outputs]
    if len(set(written)) < len(written) or any(id(tensor.memory) in written for tensor in inputs):
        raise ArrayError(
            f"{program.name} would read and write one tensor at once",
            required="outputs that are no inputs, each given once",
            because="WebGPU binds a buffer for reading or for writing",
            hint="device.empty(shape)",
        )
