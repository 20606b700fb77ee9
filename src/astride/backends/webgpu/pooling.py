"""Pooling on a device: which plans it takes, how they are encoded on tensors, and the kernels behind `backend="webgpu"`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...plan import Axis, ExplicitAxis, PoolPlan, Shape, StridedAxis
from ...plan.kinds import Divisor, Edge, Layout, Reduce
from ..protocol import Array, Arrays, Kernel, Saved, no_offset, offset_dtype
from . import host, pool_forward, pool_gradient
from .commands import CommandBuffer
from .device import LOOP_MAX, Device
from .pool_rule import Rule, numbers_of, rule_of
from .program import Program
from .scan import Scan, parts
from .tensor import Tensor
from .windows import Form, form_of, geometry, taps_between, taps_inside, turns_over_taps, turns_over_windows

COUNT_MAX = 2**31 - 1
TABLE_MAX = 1 << 24
"""Pairs of windows and taps that a table may list."""
NONE = 0xFFFFFFFF
"""The offset that means no tap, on the device."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What forward keeps on the device for backward: offsets (uint32, laid out like y), x, y, as far as the rule needs them."""

    offsets: Tensor | None = None
    x: Tensor | None = None
    y: Tensor | None = None


def declines(plan: PoolPlan) -> str | None:
    """Why this backend does not take a plan, or None."""
    return refusal(plan) or host.unavailable(("shader-f16",) if plan.dtype == "float16" else ())


@lru_cache(maxsize=1024)
def refusal(plan: PoolPlan) -> str | None:
    """Why no device takes a plan, or None."""
    rule = rule_of(plan)
    if plan.dtype not in ("float32", "float16"):
        return f"computes float32 and float16, not {plan.dtype}"
    if not rule.extreme and plan.accumulate != "float32":
        return f"sums in float32, not {plan.accumulate}"
    if rule.draws and plan.threshold != "float32":
        return f"draws by float32 thresholds, not {plan.threshold}"
    if rule.reduce is Reduce.LP and plan.p < 0:
        return "has no norm of negative order"
    if plan.edge is not Edge.SKIP and any(axis.size == 0 for axis in plan.axes):
        return "has no edge of an axis without pixels"
    if any(_extent(axis) > COUNT_MAX for axis in plan.axes) or math.prod(a.kernel for a in plan.axes) > COUNT_MAX:
        return "counts positions in 32 bits"
    if any(_listed(axis, plan.edge) > TABLE_MAX for axis in plan.axes):
        return f"lists the taps that read a pixel, at most {TABLE_MAX} an axis"
    for what, (_, inner) in (("taps", turns_over_taps(plan.axes)), ("windows", turns_over_windows(plan.axes, plan.edge))):
        if inner >= LOOP_MAX:
            return f"an invocation loops {LOOP_MAX} times at most: too many {what} along the inner axes"
    return None


def _extent(axis: Axis) -> int:
    if isinstance(axis, ExplicitAxis):
        return axis.size
    return axis.stretched + abs(axis.pad_lo) + abs(axis.pad_hi) + axis.stride * (axis.out + 1) + axis.reach


def _listed(axis: Axis, edge: Edge) -> int:
    if isinstance(axis, StridedAxis):
        return 0 if edge in (Edge.SKIP, Edge.CONSTANT) else axis.out * axis.kernel
    return sum(end - start for start, end in zip(axis.starts, axis.ends, strict=True))


def encode_forward(
    commands: CommandBuffer, plan: PoolPlan, x: Tensor, uniform: Tensor | None = None, *, save: bool = False
) -> tuple[Tensor, Kept]:
    """Encode a plan that `refusal` does not refuse. With `save`, keep what `encode_backward` needs."""
    device, rule = commands.device, rule_of(plan)
    loops = turns_over_taps(plan.axes)
    form = form_for(plan, x.shape, 1 + rule.twofold, loops)
    shapes = (x.shape,) if uniform is None else (x.shape, uniform.shape)
    y = device.empty(plan.output_shape(*shapes), plan.dtype)
    picks = rule.picks and (save or rule.draws)
    offsets = device.empty(y.shape, "uint32") if picks else None
    inputs = [x, *_tables(device, plan, rule), *([uniform] if rule.draws and uniform is not None else [])]
    outputs = [y] if offsets is None else [y, offsets]
    scan = pool_forward.scan(form, rule, picks)
    _run(commands, pool_forward.program(form, rule, save), inputs, outputs, _Over(y, plan, x.shape, form, rule, scan, loops))
    keeps_x, keeps_y = save and pool_gradient.needs_x(rule), save and pool_gradient.needs_y(rule)
    return y, Kept(offsets if save else None, x if keeps_x else None, y if keeps_y else None)


def encode_backward(commands: CommandBuffer, plan: PoolPlan, dy: Tensor, kept: Kept, x_shape: Shape) -> Tensor:
    """Encode the gradient of x, of x's shape."""
    device, rule = commands.device, rule_of(plan)
    loops = turns_over_windows(plan.axes, plan.edge)
    form = form_for(plan, x_shape, 1, loops)
    dx = device.empty(x_shape, plan.dtype)
    tables = _tables(device, plan, rule)
    best: list[Tensor] = []
    sent = dy
    if pool_gradient.prepares(rule):
        assert kept.x is not None
        best, sent = [device.empty(dy.shape, "float32")], device.empty(dy.shape, "float32")
        _prepare(commands, plan, rule, [kept.x, tables[0], dy], [best[0], sent])
    offsets = kept.offsets if rule.picks else None
    x = kept.x if pool_gradient.needs_x(rule) else None
    y = kept.y if pool_gradient.needs_y(rule) else None
    inputs = [sent, *tables, *(t for t in (offsets, x, y) if t is not None), *best]
    scan = pool_gradient.gathering(form, rule)
    _run(commands, pool_gradient.program(form, rule), inputs, [dx], _Over(dx, plan, x_shape, form, rule, scan, loops))
    return dx


def _prepare(commands: CommandBuffer, plan: PoolPlan, rule: Rule, inputs: list[Tensor], outputs: list[Tensor]) -> None:
    """Encode the pass over the windows that some gradients need first: x, table, dy -> best, share."""
    x_shape, loops = inputs[0].shape, turns_over_taps(plan.axes)
    form = form_for(plan, x_shape, 2, loops)
    over = _Over(outputs[0], plan, x_shape, form, None, pool_gradient.preparing(form, rule), loops)
    _run(commands, pool_gradient.preparation(form, rule), inputs, outputs, over)


def form_for(plan: PoolPlan, x_shape: Shape, steps: int, loops: tuple[int, int]) -> Form:
    """Four channels at once where they lie together in fours; in parts where the loops of all steps turn too often."""
    vector = plan.layout is Layout.CHANNELS_LAST and x_shape[-1] % 4 == 0
    first, inner = loops
    return form_of(plan.axes, plan.edge, vector, plan.dtype == "float16", steps * first * (1 + inner) > LOOP_MAX)


@dataclass(frozen=True, slots=True)
class _Over:
    """What a program runs over: an invocation for each element of `result`, or for every four channels; its scan and loops."""

    result: Tensor
    plan: PoolPlan
    x_shape: Shape
    form: Form
    rule: Rule | None
    scan: Scan
    loops: tuple[int, int]


def _run(commands: CommandBuffer, program: Program, inputs: Sequence[Tensor], outputs: Sequence[Tensor], over: _Over) -> None:
    """Encode a program, once or in parts."""
    lanes = 4 if over.form.vector else 1
    threads, plan = over.result.size // lanes, over.plan
    places = geometry(plan.axes, plan.edge, plan.layout, over.x_shape, lanes)
    numbers: dict[str, Any] = places.numbers | numbers_of(plan)
    if over.rule is not None:
        numbers |= _factor_places(plan, over.rule)
    if not over.form.parted:
        commands.run(program, inputs, outputs, threads, **numbers)
        return
    state = commands.device.empty((len(over.scan.variables) * threads * lanes,), "uint32")
    for part in parts(len(over.scan.steps), *over.loops):
        commands.run(program, inputs, [*outputs, state], threads, **numbers, **part)


def _tables(device: Device, plan: PoolPlan, rule: Rule) -> list[Tensor]:
    """The tables of the axes, and the factors of averages and norms, kept on the device for the next call."""
    kept = [device.kept(("axes", plan.axes, plan.edge), lambda: geometry(plan.axes, plan.edge, plan.layout, _UNIT, 1).table)]
    if rule.divides or rule.counts:
        kept.append(device.kept(("factors", plan), lambda: _factors(plan, rule)))
    return kept


_UNIT: Shape = (1, 1)
"""Any shape: tables do not depend on it."""


def _factor_places(plan: PoolPlan, rule: Rule) -> dict[str, int]:
    """Where each axis's divisors and counts begin in the table of factors."""
    places, at = {}, 0
    for name in ["divisors"] * rule.divides + ["counts"] * rule.counts:
        for a, axis in enumerate(plan.axes):
            places[f"{name}{a}"] = at
            at += axis.out
    return places


def _factors(plan: PoolPlan, rule: Rule) -> NDArray[np.float32]:
    """Divisors of averages and numbers of taps inside, one of each per window and axis: their products are those of windows."""
    parts = [_divisors(plan, a) for a in range(len(plan.axes)) if rule.divides]
    if rule.counts:
        parts += [taps_inside(a) if plan.edge is Edge.SKIP else np.full(a.out, a.kernel, np.int64) for a in plan.axes]
    return np.concatenate([*parts, np.ones(1, np.int64)]).astype(np.float32)


def _divisors(plan: PoolPlan, a: int) -> NDArray[np.int64]:
    """One axis's part of the divisors."""
    axis = plan.axes[a]
    if plan.divisor is Divisor.OVERRIDE:
        return np.full(axis.out, 1 if a else plan.divisor_override, np.int64)
    if plan.divisor is Divisor.VALID:
        return taps_inside(axis)
    if isinstance(axis, ExplicitAxis):
        lo, hi = plan.divisor_pad[a] if plan.divisor_pad is not None and plan.divisor is Divisor.PADDED else (0, 0)
        return taps_between(axis, -lo, axis.size + hi)
    if plan.divisor is Divisor.KERNEL:
        return np.full(axis.out, axis.kernel, np.int64)
    if plan.divisor is Divisor.CAFFE:
        start = np.arange(axis.out, dtype=np.int64) * axis.stride - axis.pad_lo
        return np.minimum(start + axis.kernel, axis.size + axis.pad_lo) - start
    lo, hi = plan.divisor_pad[a] if plan.divisor_pad is not None else (axis.pad_lo, axis.pad_hi)
    return taps_between(axis, -lo, axis.stretched + hi)


def forward(plan: PoolPlan, x: Array, uniform: Array | None = None, *, out: Array, save: bool) -> tuple[Array, Saved | None]:
    """The plan on NumPy arrays, in as many images at once as WebGPU binds."""
    rule, saved_offsets = rule_of(plan), None
    if save and rule.picks:
        kind = offset_dtype(plan.taps)
        first = plan.layout is Layout.CHANNELS_FIRST
        saved_offsets = np.empty(out.shape if first else (out.shape[0], out.shape[-1], *out.shape[1:-1]), kind)
    for part in _parts(x.shape, out.shape, plan.dtype):

        def encode(device: Device, commands: CommandBuffer, part: slice = part) -> tuple[Tensor, Kept]:
            draws = None if uniform is None else device.tensor(uniform[part])
            return encode_forward(commands, plan, device.tensor(x[part]), draws, save=save)

        y, kept = host.run(encode)
        out[part] = y.numpy()
        if saved_offsets is not None and kept.offsets is not None:
            saved_offsets[part] = _narrow(plan, kept.offsets.numpy(), saved_offsets.dtype)
    if not save:
        return out, None
    keeps = (x if rule.infinite or pool_gradient.needs_x(rule) else None, out if _keeps_y(rule) else None)
    shapes = (x.shape, None if uniform is None else uniform.shape)
    return out, Saved(shapes=shapes, offsets=saved_offsets, x=keeps[0], y=keeps[1])


def backward(plan: PoolPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """dx on NumPy arrays; `saved` may be any backend's."""
    shape = saved.shapes[0]
    assert shape is not None
    if not want[0]:
        return (None, None)
    dx = np.empty(shape, dy.dtype)
    for part in _parts(shape, dy.shape, plan.dtype):

        def encode(device: Device, commands: CommandBuffer, part: slice = part) -> Tensor:
            x, y = (None if a is None else device.tensor(a[part]) for a in (saved.x, saved.y))
            offsets = None if saved.offsets is None else device.tensor(_widen(plan, saved.offsets[part]))
            here = (part.stop - part.start, *shape[1:])
            return encode_backward(commands, plan, device.tensor(dy[part]), Kept(offsets, x, y), here)

        dx[part] = host.run(encode).numpy()
    return (dx, None)


def _keeps_y(rule: Rule) -> bool:
    """All rules that compare keep y, as the record of a comparing rule is (x, y)."""
    return pool_gradient.needs_y(rule) or (rule.extreme and not rule.picks)


def _parts(x_shape: Shape, y_shape: Shape, dtype: str) -> list[slice]:
    """Runs of images; one where there is none."""
    images = x_shape[0]
    each = (math.prod(x_shape[1:]) * np.dtype(dtype).itemsize, math.prod(y_shape[1:]) * 4)
    step = host.images_at_once(images, *each)
    return [slice(i, min(i + step, images)) for i in range(0, images, step)] or [slice(0, 0)]


def _narrow(plan: PoolPlan, offsets: NDArray[np.uint32], kind: np.dtype[Any]) -> Array:
    """Offsets laid out like y as the record has them: (N, C, *out), the smallest type."""
    moved = offsets if plan.layout is Layout.CHANNELS_FIRST else np.moveaxis(offsets, -1, 1)
    return np.where(moved == NONE, no_offset(kind), moved).astype(kind)


def _widen(plan: PoolPlan, offsets: Array) -> NDArray[np.uint32]:
    wide = np.where(offsets == no_offset(offsets.dtype), NONE, offsets).astype(np.uint32)
    return wide if plan.layout is Layout.CHANNELS_FIRST else np.moveaxis(wide, 1, -1)


POOL = (Kernel("wgsl", forward, backward, declines, numpy=False),)
KERNELS = dict.fromkeys(("max_pool", "min_pool", "avg_pool", "lp_pool", "stochastic_pool"), POOL)
"""One kernel serves all: plans say what it does."""
