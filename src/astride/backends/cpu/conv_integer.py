"""Convolution of quantised numbers with int32 sums, four bytes of a window at a time (quads.py).

Bytes become unsigned in x (x + 128 where they are signed) and signed in w (w - 128 where they are not), zero points with them;
padding holds x's zero point and so counts for nothing. Then

    sum (x - p)(w - q) = sum x w - p sum w - q sum x + n p q        n taps and channels of a window

where sum w is known before, and sum x is needed only where some q is not 0. Whatever depends on x is done in the kernel
(conv_integer_kernel.py), unit by unit: padding, packing, sums, and what brings these back to bytes.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ... import settings
from ...errors import UnsupportedError
from ...plan import ConvPlan
from ...plan.integer import IntegerConvPlan
from ...plan.kinds import Layout
from ..memory import contiguous
from ..protocol import Array, Arrays, Kernel, Saved
from . import conv_directions, conv_integer_cut, slots
from .conv_integer_cut import QUAD, Cut, Integers, Schedule, cut_of, schedule, shape_of, spec_of
from .conv_integer_finish import order_of
from .kept import kept
from .workers import address_of, run

UNITS = 4
"""Units that each thread has, if there is more than one thread."""


def declines(plan: IntegerConvPlan) -> str | None:
    """Why this backend does not compute a plan; None if it does."""
    return conv_directions.declines(_floating(plan)) or conv_integer_cut.declines(plan)


@lru_cache(maxsize=512)
def _floating(plan: IntegerConvPlan) -> ConvPlan:
    """The same windows over floating numbers."""
    return ConvPlan(
        dtype="float64",
        axes=plan.axes,
        in_channels=plan.in_channels,
        out_channels=plan.out_channels,
        layout=plan.layout,
        groups=plan.groups,
        accumulate="float64",
    )


def forward(plan: IntegerConvPlan, *arrays: Array | None, out: Array, save: bool) -> tuple[Array, Saved | None]:
    """Convolve into out."""
    x, w, *others = arrays
    assert x is not None and w is not None
    if out.size:
        y = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
        _compute(plan, contiguous(x), w, others, y)
        if y is not out:
            out[...] = y
    return out, Saved(tuple(None if a is None else a.shape for a in arrays)) if save else None


def backward(plan: IntegerConvPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """Rounding has no slope. Raises UnsupportedError."""
    raise UnsupportedError("integers have no gradient", operator=plan.op, hint="astride.conv on floating numbers")


def _compute(plan: IntegerConvPlan, x: Array, w: Array, others: Sequence[Array | None], y: Array) -> None:
    """Contiguous y from contiguous x; `others` are the plan's further roles."""
    threads = settings.threads()
    way = prepared(plan, 1 if threads == 1 else -(-UNITS * threads // len(x)))
    weights = kept(w, ("quads", way.packing.form), lambda: _weights(plan, w))
    totals = weights[weights.size - 4 * plan.out_channels :].tobytes()
    given = _given(way.packing, totals, *[None if a is None else a.tobytes() for a in others])
    if given is None:
        _in_steps(plan, x, w, others, y)
        return
    found, units = way.schedule, way.schedule.units * len(x)
    begin = address_of(x)
    block, memory = slots.block(found.slot, -(-units // found.taken), *given.words, begin + x.nbytes)
    places = (begin, address_of(weights), address_of(block), address_of(y))
    run(found.address, found.geometry.address, *places, units, found.taken)
    del memory, given  # both must live until here


def _in_steps(plan: IntegerConvPlan, x: Array, w: Array, others: Sequence[Array | None], y: Array) -> None:
    """First the sums and then what becomes of them, for scales that are infinite or no numbers: what is none gives 0."""
    x_zero, w_zero, b, *scales, y_zero = others
    sums = np.empty(y.shape, np.int32)
    _compute(replace(plan, y_dtype="int32"), x, w, (x_zero, w_zero, b, None, None, None, None), sums)
    view, into = (np.moveaxis(a, 1, -1) if plan.layout is Layout.CHANNELS_FIRST else a for a in (sums, y))
    x_scale, w_scale, y_scale = (np.empty(0) if scale is None else scale.reshape(-1) for scale in scales)
    limits, zero = np.iinfo(plan.y_dtype), 0 if y_zero is None else int(y_zero.reshape(-1)[0])
    with np.errstate(all="ignore"):
        moved = np.rint(view.astype(np.float32) * (x_scale * w_scale / y_scale).astype(np.float32)) + np.float32(zero)
    into[...] = np.where(np.isnan(moved), 0, np.clip(moved, limits.min, limits.max)).astype(plan.y_dtype)


@dataclass(frozen=True, eq=False, slots=True)
class Packing:
    """How numbers of output channels lie for the kernel of a plan; all that packed weights depend on. Equal to itself only."""

    plan: IntegerConvPlan
    spec: Integers
    cut: Cut
    shape: tuple[int, int, int, int, int]
    form: tuple[Hashable, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Prepared:
    """All that is known of a call beforehand."""

    packing: Packing
    schedule: Schedule


@lru_cache(maxsize=512)
def _packing(plan: IntegerConvPlan) -> Packing:
    spec, cut, shape = spec_of(plan), cut_of(plan), shape_of(plan)
    form = (plan.w_dtype, spec.alone, *shape, cut.inputs, cut.outputs, cut.axes[2].kernel if cut.run else 1)
    return Packing(plan, spec, cut, shape, form)


@lru_cache(maxsize=512)
def prepared(plan: IntegerConvPlan, wanted: int) -> Prepared:
    """What is known of a plan whose images should have so many units."""
    return Prepared(_packing(plan), schedule(plan, wanted))


@dataclass(frozen=True, slots=True)
class Given:
    """A call's words (conv_integer_finish.py) but for the last, and the arrays whose addresses are among them."""

    words: tuple[int, ...]
    arrays: tuple[Array | None, ...]


@lru_cache(maxsize=256)
def _given(
    packing: Packing,
    totals: bytes,
    x_zero: bytes | None,
    w_zero: bytes | None,
    b: bytes | None,
    x_scale: bytes | None,
    w_scale: bytes | None,
    y_scale: bytes | None,
    y_zero: bytes | None,
) -> Given | None:
    """What a call is given beside x and w, of whose channels `totals` are the sums; None if a scale is no finite number."""
    plan = packing.plan
    flip = 128 if plan.dtype == "int8" else 0
    p = flip + (0 if x_zero is None else int(np.frombuffer(x_zero, plan.dtype)[0]))
    begin, less, ones = _beginning(packing, totals, p, w_zero, b)
    scale, limits = None, (0, 0, 0)
    if plan.quantised:
        scale = _scale(packing, *(np.frombuffer(s or b"", np.float32) for s in (x_scale, w_scale, y_scale)))
        if scale is None:
            return None
        limits = _limits(plan.y_dtype, 0 if y_zero is None else int(np.frombuffer(y_zero, plan.y_dtype)[0]))
    arrays = (begin, scale, less, ones)
    return Given((*[0 if a is None else address_of(a) for a in arrays], flip, p, *limits), arrays)


def _beginning(
    packing: Packing, totals: bytes, p: int, q: bytes | None, b: bytes | None
) -> tuple[Array, Array | None, Array | None]:
    """What sums begin with; and if zero points of w are not 0, these in lanes, and quads of ones."""
    plan = packing.plan
    total, kind = np.frombuffer(totals, np.int32).astype(np.int64), np.dtype(plan.w_dtype)
    less = np.zeros(1, np.int64) if q is None else np.frombuffer(q, kind).astype(np.int64)
    less = less - (128 if plan.w_dtype == "uint8" else 0)
    constant = (math.prod(plan.weight_shape[1:]) * less - total) * p
    if b is not None:
        constant = constant + np.frombuffer(b, np.int32)
    begin = _lanes(packing, constant.astype(np.int32))
    if not less.any():
        return begin, None, None
    return begin, _lanes(packing, np.broadcast_to(less, total.shape).astype(np.int32)), _ones(packing)


def _scale(packing: Packing, x: Array, w: Array, y: Array) -> Array | None:
    """The scale of each lane; None if one is no finite number."""
    with np.errstate(all="ignore"):
        scale = x * w / y
    return _lanes(packing, np.broadcast_to(scale, (packing.plan.out_channels,))) if np.isfinite(scale).all() else None


def _limits(dtype: str, zero: int) -> tuple[int, int, int]:
    """Limits of what is left of y's zero point, float64, and that, as words."""
    limits = np.iinfo(dtype)
    low, high = np.array([limits.min - zero, limits.max - zero], np.float64).view(np.int64).tolist()
    return low, high, zero


def _lanes(packing: Packing, each: Array) -> Array:
    """A number of each output channel in the lanes of packed blocks, zeros where there is no channel."""
    groups, blocks, _, _, block = packing.shape
    if packing.spec.alone:
        return _in_blocks(each, groups, block)
    made = np.zeros((groups, blocks * block), each.dtype)
    made[:, : packing.cut.outputs] = each.reshape(groups, packing.cut.outputs)
    return made


def _in_blocks(each: Array, groups: int, block: int) -> Array:
    """Channels that are by themselves (the first axis) in the order of their lanes. The last block begins early enough to be
    full, if there are channels enough."""
    if len(each) < block:
        each = np.concatenate([each, np.zeros((block - len(each), *each.shape[1:]), each.dtype)])
    first = np.minimum(np.arange(groups) * block, len(each) - block)
    return np.ascontiguousarray(each[first[:, None] + order_of(block)])


def _ones(packing: Packing) -> Array:
    """Quads of ones where a run of taps has numbers, zeros behind its end."""
    cut = packing.cut
    length = cut.inputs * (cut.axes[2].kernel if cut.run else 1)
    if packing.spec.alone:
        length = math.prod(axis.kernel for axis in cut.axes)
    made = np.zeros(-(-length // QUAD) * QUAD, np.uint8)
    made[:length] = 1
    return made


def _weights(plan: IntegerConvPlan, w: Array) -> Array:
    """Signed bytes as kernels read them, zeros where runs and blocks end; behind them the sum of each output channel, int32."""
    signed = w if plan.w_dtype == "int8" else (w ^ np.uint8(128)).view(np.int8)
    totals = signed.reshape(len(w), math.prod(w.shape[1:])).sum(1, dtype=np.int32)
    packed = _alone(plan, signed) if spec_of(plan).alone else _summed(plan, signed)
    return np.concatenate([packed.reshape(-1).view(np.uint8), totals.view(np.uint8)])


def _alone(plan: IntegerConvPlan, w: Array) -> Array:
    """(groups, quads of taps, lanes, 4)."""
    (groups, _, quads, _, block), taps = shape_of(plan), math.prod(w.shape[2:])
    made = np.zeros((len(w), quads * QUAD), np.int8)
    made[:, :taps] = w.reshape(len(w), taps)
    return np.ascontiguousarray(_in_blocks(made.reshape(len(w), quads, QUAD), groups, block).transpose(0, 2, 1, 3))


def _summed(plan: IntegerConvPlan, w: Array) -> Array:
    """(groups, blocks, runs, quads, lanes, 4)."""
    cut, (groups, blocks, runs, quads, block) = cut_of(plan), shape_of(plan)
    run = cut.axes[2].kernel if cut.run else 1
    parts = np.moveaxis(w.reshape(groups, cut.outputs, cut.inputs, runs, run), 2, 4)
    whole = np.zeros((groups, blocks * block, runs, quads * QUAD), np.int8)
    whole[:, : cut.outputs, :, : run * cut.inputs] = parts.reshape(groups, cut.outputs, runs, run * cut.inputs)
    split = whole.reshape(groups, blocks, block, runs, quads, QUAD)
    return np.ascontiguousarray(split.transpose(0, 1, 3, 4, 2, 5))


KERNELS = (Kernel("quads", forward, backward, declines, numpy=False),)
