"""Kernels on a GPU, each by its own timestamps, beside the least that the machine could take for them.

What an operator must read, write, multiply and add is counted from its plan. The device's limits are measured in the same way,
by a kernel that copies and one that multiplies and adds in registers. A software adapter is no GPU: there everything is counted
and nothing timed.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from .. import dispatch
from ..backends.protocol import Array
from ..backends.webgpu import conv, pooling
from ..backends.webgpu.commands import CommandBuffer
from ..backends.webgpu.device import Device
from ..backends.webgpu.program import Program, flat_program
from ..backends.webgpu.tensor import Tensor
from ..errors import ArgumentError
from ..ops._run import plan as make_plan
from ..plan import ConvPlan, Plan, PoolPlan, Shape

CLOSE = 1e-4
"""How far results may lie from the CPU's, relative to the largest."""


@dataclass(frozen=True, slots=True)
class Case:
    """One operator at one size: `w_shape` of convolutions, canonical; the arguments are those of `astride.<op>`."""

    name: str
    op: str
    shape: Shape
    w_shape: Shape | None = None
    arguments: tuple[tuple[str, Any], ...] = ()

    def plan(self) -> Plan:
        weights: dict[str, Any] = {} if self.w_shape is None else {"w_shape": self.w_shape}
        made: Plan = make_plan(self.op, self.shape, **weights, **dict(self.arguments))
        return made


def _case(name: str, op: str, shape: Shape, w_shape: Shape | None = None, **arguments: Any) -> Case:
    return Case(name, op, shape, w_shape, tuple(arguments.items()))


LAST = "channels_last"
CASES = (
    _case("3x3, 64 channels", "conv", (8, 56, 56, 64), (64, 64, 3, 3), padding=1, layout=LAST),
    _case("3x3, 256 channels", "conv", (8, 28, 28, 256), (256, 256, 3, 3), padding=1, layout=LAST),
    _case("3x3, 256 channels, first", "conv", (8, 256, 28, 28), (256, 256, 3, 3), padding=1),
    _case("1x1, 256 to 512", "conv", (8, 28, 28, 256), (512, 256, 1, 1), layout=LAST),
    _case("7x7 of an image", "conv", (8, 3, 224, 224), (64, 3, 7, 7), stride=2, padding=3),
    _case("depthwise 3x3", "conv", (8, 112, 112, 64), (64, 1, 3, 3), padding=1, groups=64, layout=LAST),
    _case("4x4 back, stride 2", "conv_transpose", (8, 28, 28, 128), (128, 64, 4, 4), stride=2, padding=1, layout=LAST),
    _case("max 3x3, stride 2", "max_pool", (8, 112, 112, 64), kernel=3, stride=2, layout=LAST),
    _case("max 2x2, first", "max_pool", (8, 64, 112, 112), kernel=2, stride=2),
    _case("average 3x3", "avg_pool", (8, 56, 56, 128), kernel=3, stride=1, layout=LAST),
)


@dataclass(slots=True)
class Measured:
    """One direction of one case. `seconds` is the median of the rounds, None where no time was taken; `kernels` are its parts'.

    `bytes` are those of every input and output, once each; `flops` multiplications, additions and comparisons.
    """

    case: str
    op: str
    direction: str
    bytes: int
    flops: int
    seconds: float | None = None
    kernels: dict[str, float] = field(default_factory=dict)
    least: float | None = None
    agrees: bool | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Limits:
    """What the device does at most: bytes it copies, reading and writing counted, and operations, a second."""

    bytes: float
    flops: float


def asked_for(pattern: str | None) -> list[Case]:
    """The cases whose name or operator matches. Raises ArgumentError: none does, or it is no regular expression."""
    try:
        found = [case for case in CASES if re.search(pattern or "", f"{case.op} {case.name}")]
    except re.error as error:
        raise ArgumentError("this is no regular expression", given={"cases": pattern}, because=str(error)) from error
    if not found:
        raise ArgumentError("no case has such a name", given={"cases": pattern}, required="; ".join(c.name for c in CASES))
    return found


def timed_on(device: Device) -> bool:
    """Whether times can be taken: a GPU, and one that has timestamps."""
    return not device.software and "timestamp-query" in device.features


def measure(device: Device, cases: Sequence[Case], rounds: int = 5) -> Iterator[Measured | Limits]:
    """The limits first, where times can be taken; then every direction of every case, in turns within a case."""
    limits = None
    if timed_on(device):
        limits = measure_limits(device, rounds)
        yield limits
    for case in cases:
        plan = case.plan()
        work = dict(_directions(device, case, plan) if limits is not None else ())
        rows = counted(case, plan)
        if limits is None:
            yield from rows
            continue
        agrees = _agrees(device, case, plan)
        for row in rows:
            _run(device, work[row.direction])
        times: dict[str, list[dict[str, float]]] = {row.direction: [] for row in rows}
        for _ in range(rounds):
            for row in rows:
                times[row.direction].append(_run(device, work[row.direction]))
        for row in rows:
            taken = times[row.direction]
            row.kernels = {name: statistics.median(t[name] for t in taken) for name in taken[0]}
            row.seconds = statistics.median(sum(t.values()) for t in taken)
            row.least = max(row.bytes / limits.bytes, row.flops / limits.flops)
            row.agrees = agrees if row.direction == "forward" else None
            yield row


def counted(case: Case, plan: Plan) -> list[Measured]:
    """What each direction of a case reads, writes and computes at least."""
    y = plan.output_shape(case.shape, *([case.w_shape] if case.w_shape is not None else []))
    x, out = int(np.prod(case.shape)), int(np.prod(y))
    if isinstance(plan, ConvPlan):
        w = int(np.prod(plan.weight_shape))
        # every weight between two channels meets each place of the lesser grid once
        places = (out if plan.op == "conv" else x) // (plan.out_channels if plan.op == "conv" else plan.in_channels)
        flops = 2 * w * places
        moved = 4 * (x + w + out)
        return [Measured(case.name, case.op, d, moved, flops) for d in ("forward", "dx", "dw")]
    assert isinstance(plan, PoolPlan)
    taps = int(np.prod([axis.kernel for axis in plan.axes]))
    # backward reads dy and what forward kept, as much as y again, and writes dx
    parts = (("forward", 4 * (x + out)), ("dx", 4 * (x + 2 * out)))
    return [Measured(case.name, case.op, d, moved, taps * out) for d, moved in parts]


Encode = Callable[[CommandBuffer], object]


def _directions(device: Device, case: Case, plan: Plan) -> Iterator[tuple[str, Encode]]:
    x, w = _arrays(case)
    up = device.tensor(x)
    if isinstance(plan, ConvPlan):
        assert w is not None
        weights = device.tensor(w)
        dy = device.tensor(_random(plan.output_shape(case.shape, case.w_shape)))
        yield "forward", lambda c: conv.encode_forward(c, plan, up, weights)
        yield "dx", lambda c: conv.encode_input_gradient(c, plan, dy, weights, case.shape)
        yield "dw", lambda c: conv.encode_weights_gradient(c, plan, up, dy)
        return
    assert isinstance(plan, PoolPlan)
    commands = CommandBuffer(device)
    y, kept = pooling.encode_forward(commands, plan, up, save=True)
    commands.commit()
    yield "forward", lambda c: pooling.encode_forward(c, plan, up)
    yield "dx", lambda c: pooling.encode_backward(c, plan, y, kept, case.shape)


def _run(device: Device, work: Encode) -> dict[str, float]:
    """Encode, run and wait; seconds of each kernel, those of one name together."""
    commands = CommandBuffer(device, timed=True)
    work(commands)
    commands.commit()
    commands.wait()
    total: dict[str, float] = {}
    for name, seconds in commands.times:
        total[name] = total.get(name, 0.0) + seconds
    return total


def _agrees(device: Device, case: Case, plan: Plan) -> bool:
    """Whether the first image is what the CPU makes of it."""
    x, w = _arrays(case)
    given = [x[:1]] if w is None else [x[:1], w]
    expected = dispatch.forward(plan, *given)[0].astype(np.float64)
    commands = CommandBuffer(device)
    tensors = [device.tensor(a) for a in given]
    if isinstance(plan, ConvPlan):
        y: Tensor = conv.encode_forward(commands, plan, tensors[0], tensors[1])
    else:
        assert isinstance(plan, PoolPlan)
        y = pooling.encode_forward(commands, plan, tensors[0])[0]
    commands.commit()
    return bool(np.abs(y.numpy() - expected).max() <= CLOSE * np.abs(expected).max())


def _arrays(case: Case) -> tuple[Array, Array | None]:
    return _random(case.shape), None if case.w_shape is None else _random(case.w_shape)


def _random(shape: Shape) -> Array:
    return np.random.default_rng(1).random(shape, np.float32) - np.float32(0.5)


# What the device does at most

COPIED = 8 << 20
"""Vectors of four numbers that the copy moves: 128 MiB each way."""
THREADS, TURNS, CHAINS = 1 << 18, 512, 8


def measure_limits(device: Device, rounds: int) -> Limits:
    """The best of some turns of a copy, and of multiplications and additions that wait for nothing but each other."""
    source, target = device.empty((4 * COPIED,)), device.empty((4 * COPIED,))
    out = device.empty((4 * THREADS,))

    def copied(commands: CommandBuffer) -> None:
        commands.run(_copy(), [source], [target], COPIED)

    def computed(commands: CommandBuffer) -> None:
        commands.run(_chains(), [], [out], THREADS, by=1.0)

    best = []
    for work in (copied, computed):
        _run(device, work)
        best.append(min(sum(_run(device, work).values()) for _ in range(rounds)))
    return Limits(2 * 16 * COPIED / best[0], 2 * 4 * CHAINS * TURNS * THREADS / best[1])


def _copy() -> Program:
    return flat_program("copy", [("x", "vec4<f32>")], [("y", "vec4<f32>")], "y[i] = x[i];")


def _chains() -> Program:
    body = "".join(f"var s{c} = vec4<f32>(f32(i) + {c}.0);\n" for c in range(CHAINS))
    body += f"for (var k = 0; k < {TURNS}; k++) {{\n"
    body += "".join(f"s{c} = s{c} * params.by + params.by;\n" for c in range(CHAINS)) + "}\n"
    body += f"y[i] = {' + '.join(f's{c}' for c in range(CHAINS))};"
    return flat_program("chains", [], [("y", "vec4<f32>")], body, [("by", "f32")])


__all__ = ["CASES", "Case", "Limits", "Measured", "asked_for", "counted", "measure", "measure_limits", "timed_on"]
