"""The ladder of the reference, the CPU backend on top of it, each rung beside the one below: first held to equal it, then timed.

All rungs of a problem are timed in turns, round after round, so that whatever else the machine does meets them alike; of the
rounds' times the median counts. Times are the processor's, so that waiting for it does not count.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .. import dispatch
from ..backends.protocol import Array
from ..errors import ArgumentError
from ..ops._run import plan as make_plan
from ..plan import Plan
from ..proto import nearest

RUNGS = ("loops4", "loops3", "loops2", "im2col", "cpu")
"""From the plainest up; the last is not the reference any more, but the kernels written for this processor."""

WINDOWS = ("conv", "conv_transpose", "max_pool", "avg_pool", "lp_pool")
"""Operators whose reference is a ladder of these rungs."""

LAYOUTS = {"NHWC": "channels_last", "NCHW": "channels_first"}
DIRECTIONS = ("forward", "backward")

CLOCK = time.process_time if time.get_clock_info("process_time").resolution <= 1e-6 else time.perf_counter
"""Windows counts processor time in steps of 16 ms; there the wall's clock is the better one."""

LEAST_TURN = 0.002
"""Seconds that one turn of a rung lasts at least, where one call is shorter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One operator on images of one size: `kernel` and `stride` on both axes, as many channels out as in, float32."""

    op: str
    layout: str
    images: int = 4
    channels: int = 8
    size: int = 12
    kernel: int = 3
    stride: int = 1

    @property
    def shape(self) -> tuple[int, ...]:
        plane = (self.size, self.size)
        return (self.images, self.channels, *plane) if self.layout == "NCHW" else (self.images, *plane, self.channels)

    @property
    def weighted(self) -> bool:
        return self.op in ("conv", "conv_transpose")

    def plan(self) -> Plan:
        """What is computed. Raises ArgumentError: sizes that do not fit together."""
        arguments: dict[str, Any] = {"stride": self.stride, "layout": LAYOUTS[self.layout]}
        if self.weighted:
            arguments["w_shape"] = (self.channels, self.channels, self.kernel, self.kernel)
        else:
            arguments["kernel"] = self.kernel
        made: Plan = make_plan(self.op, self.shape, **arguments)
        return made


@dataclass(frozen=True, slots=True)
class Timed:
    """One rung on one problem: the median of `calls` times, and whether its numbers are those of the rung below."""

    op: str
    direction: str
    layout: str
    rung: str
    seconds: float
    calls: int
    agrees: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def problems(ops: Sequence[str] = WINDOWS, **sizes: int) -> Iterator[Problem]:
    """The operators in both layouts. Raises ArgumentError: an operator that has no ladder."""
    for op in ops:
        if op not in WINDOWS:
            raise ArgumentError(
                "this operator has no ladder of rungs",
                given={"op": op},
                required=f"one of {', '.join(WINDOWS)}",
                hint=nearest(op, WINDOWS),
            )
    return (Problem(op=op, layout=layout, **sizes) for op in ops for layout in LAYOUTS)


def measure(problem: Problem, rounds: int = 5, seconds: float = 4.0) -> list[Timed]:
    """Check and time every rung on one problem, forward and backward.

    After each has had a turn, rungs go on in turns until `rounds` are done or `seconds` are over, so that the plain ones
    do not take minutes.
    """
    plan = problem.plan()
    arrays, dy = _filled(problem, plan)
    results = {rung: _run(plan, arrays, dy, rung) for rung in RUNGS}
    timed = []
    for direction in DIRECTIONS:
        calls = {rung: _call(direction, plan, arrays, dy, rung) for rung in RUNGS}
        times = in_turns(calls, rounds, seconds)
        for rung, below in zip(RUNGS, (RUNGS[0], *RUNGS), strict=False):
            agrees = _equal(plan, results[rung][direction], results[below][direction])
            median = statistics.median(times[rung])
            timed.append(Timed(problem.op, direction, problem.layout, rung, median, len(times[rung]), agrees))
    return timed


def in_turns(calls: dict[str, Callable[[], object]], rounds: int, seconds: float) -> dict[str, list[float]]:
    """The times of each call, taken round by round; a short call is made several times a turn. The first is not counted."""
    counts = {}
    for name, call in calls.items():
        counts[name] = max(1, int(LEAST_TURN / max(_time(call), 1e-9)))
    times: dict[str, list[float]] = {name: [] for name in calls}
    begin = time.perf_counter()
    for _ in range(max(rounds, 1)):
        for name, call in calls.items():
            times[name] += [_time(call) for _ in range(counts[name])]
        if time.perf_counter() - begin > seconds:
            break
    return times


def _time(call: Callable[[], object]) -> float:
    begin = CLOCK()
    call()
    return CLOCK() - begin


def _filled(problem: Problem, plan: Plan) -> tuple[tuple[Array | None, ...], Array]:
    """Small whole numbers: their sums are exact in any order, so that equal means equal."""
    rng = np.random.default_rng(0)

    def whole(shape: tuple[int, ...]) -> Array:
        return rng.integers(-4, 5, shape).astype(np.float32)

    arrays: tuple[Array | None, ...] = (whole(problem.shape),)
    if problem.weighted:
        arrays += (whole((problem.channels, problem.channels, problem.kernel, problem.kernel)),)
    shapes = [None if a is None else a.shape for a in arrays]
    return arrays, whole(plan.output_shape(*shapes, *[None] * (len(plan.roles) - len(shapes))))


def _backend(rung: str) -> str:
    """The backend, or its kernel, that a rung is."""
    return rung if rung == "cpu" else f"reference:{rung}"


def _run(plan: Plan, arrays: tuple[Array | None, ...], dy: Array, rung: str) -> dict[str, list[Array]]:
    """The value and the gradients of one rung."""
    y, saved = dispatch.forward(plan, *arrays, save=True, backend=_backend(rung))
    assert saved is not None
    return {"forward": [y], "backward": [g for g in dispatch.backward(plan, dy, saved) if g is not None]}


def _call(direction: str, plan: Plan, arrays: tuple[Array | None, ...], dy: Array, rung: str) -> Callable[[], object]:
    name = _backend(rung)
    if direction == "forward":
        return lambda: dispatch.forward(plan, *arrays, backend=name)
    _, saved = dispatch.forward(plan, *arrays, save=True, backend=name)
    assert saved is not None
    kept = saved
    return lambda: dispatch.backward(plan, dy, kept)


def _equal(plan: Plan, here: list[Array], below: list[Array]) -> bool:
    """Equal to the last bit, but for quotients and roots, which each rung rounds in its own order."""
    if plan.op in ("avg_pool", "lp_pool"):
        return all(np.allclose(a, b, rtol=1e-5, atol=1e-5) for a, b in zip(here, below, strict=True))
    return all(np.array_equal(a, b) for a, b in zip(here, below, strict=True))


__all__ = ["DIRECTIONS", "LAYOUTS", "RUNGS", "WINDOWS", "Problem", "Timed", "in_turns", "measure", "problems"]
