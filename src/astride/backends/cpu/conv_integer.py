"""Convolution of quantised numbers with int32 sums, four bytes of a window at a time (quads.py).

Bytes become unsigned in x (x + 128 where they are signed) and signed in w (w - 128 where they are not), zero points with them;
padding holds x's zero point and so counts for nothing. Then

    sum (x - p)(w - q) = sum x w - p sum w - q sum x + n p q        n taps and channels of a window

where sum w is known before, and sum x is needed only where some q is not 0. Whatever depends on x is done in the kernel
(conv_integer_kernel.py), unit by unit: padding, packing, sums, and what brings these back to bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ... import settings
from ...errors import UnsupportedError
from ...plan import ConvPlan
from ...plan.integer import IntegerConvPlan
from ..memory import contiguous
from ..protocol import Array, Arrays, Kernel, Saved
from . import conv_directions, conv_integer_cut, slots
from .conv_integer_alone import order
from .conv_integer_cut import QUAD, cut_of, schedule, shape_of, spec_of
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
    x, w, x_zero, w_zero, b, *scales, y_zero = arrays
    assert x is not None and w is not None
    if out.size:
        y = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
        _compute(plan, contiguous(x), w, (x_zero, w_zero, y_zero), b, scales, y)
        if y is not out:
            out[...] = y
    return out, Saved(tuple(None if a is None else a.shape for a in arrays)) if save else None


def backward(plan: IntegerConvPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """Rounding has no slope. Raises UnsupportedError."""
    raise UnsupportedError("integers have no gradient", operator=plan.op, hint="astride.conv on floating numbers")


def _compute(
    plan: IntegerConvPlan,
    x: Array,
    w: Array,
    zeros: tuple[Array | None, Array | None, Array | None],
    b: Array | None,
    scales: Sequence[Array | None],
    y: Array,
) -> None:
    """Contiguous y from contiguous x; `zeros` are x's zero point, w's and y's."""
    threads = settings.threads()
    found = schedule(plan, 1 if threads == 1 else -(-UNITS * threads // len(x)))
    flip = 128 if plan.dtype == "int8" else 0
    p = _number(zeros[0]) + flip
    weights = kept(w, ("quads", plan), lambda: _weights(plan, w))
    total = kept(w, ("total", plan.w_dtype), lambda: _signed(plan, w).reshape(len(w), -1).sum(1, dtype=np.int64))
    constant, less, ones = total * -p, None, None
    if zeros[1] is not None:
        q = zeros[1].reshape(-1).astype(np.int64) - (128 if plan.w_dtype == "uint8" else 0)
        if q.any():
            constant += math.prod(plan.weight_shape[1:]) * p * q
            less, ones = _lanes(plan, np.broadcast_to(q, total.shape).astype(np.int32)), _ones(plan)
    elif plan.w_dtype == "uint8":
        constant += math.prod(plan.weight_shape[1:]) * p * -128
        less, ones = _lanes(plan, np.full(total.shape, -128, np.int32)), _ones(plan)
    if b is not None:
        constant += b
    begin = _lanes(plan, constant.astype(np.int32))
    scale, limits = _scaled(plan, scales, zeros[2])
    end = address_of(x) + x.nbytes
    tables = [0 if a is None else address_of(a) for a in (begin, scale, less, ones)]
    units = found.units * len(x)
    block, memory = slots.block(found.slot, -(-units // found.taken), *tables, end, flip, p, *limits)
    places = (address_of(x), address_of(weights), address_of(block), address_of(y))
    run(found.address, found.geometry.address, *places, units, found.taken)
    del memory, begin, scale, less, ones


def _scaled(plan: IntegerConvPlan, scales: Sequence[Array | None], y_zero: Array | None) -> tuple[Array | None, tuple[int, ...]]:
    """The scale of each lane; and as words the limits of what is left of y's zero point, float64, and that."""
    if not plan.quantised:
        return None, ()
    x_scale, w_scale, y_scale = scales
    assert x_scale is not None and w_scale is not None and y_scale is not None
    with np.errstate(all="ignore"):
        scale = (x_scale.reshape(-1) * w_scale.reshape(-1) / y_scale.reshape(-1)).astype(np.float32)
    each = scale if len(scale) == plan.out_channels else np.broadcast_to(scale, (plan.out_channels,))
    return _lanes(plan, each), _limits(plan.y_dtype, _number(y_zero))


@lru_cache(maxsize=512)
def _limits(dtype: str, zero: int) -> tuple[int, ...]:
    limits = np.iinfo(dtype)
    return (*np.array([limits.min - zero, limits.max - zero], np.float64).view(np.int64).tolist(), zero)


def _lanes(plan: IntegerConvPlan, each: Array) -> Array:
    """A number of each output channel in the lanes of packed blocks, zeros where there is no channel."""
    groups, blocks, _, _, block = shape_of(plan)
    of_group = plan.out_channels if spec_of(plan).alone else plan.out_channels // plan.groups
    if groups * blocks * block == plan.out_channels and not spec_of(plan).alone:
        return np.ascontiguousarray(each)
    if spec_of(plan).alone:
        made = np.zeros(groups * block, each.dtype)
        made[:of_group] = each
        return np.ascontiguousarray(made.reshape(groups, block)[:, order(block)])
    made = np.zeros((groups, blocks * block), each.dtype)
    made[:, :of_group] = each.reshape(groups, of_group)
    return made


@lru_cache(maxsize=512)
def _ones(plan: IntegerConvPlan) -> Array:
    """Quads of ones where a run of taps has numbers, zeros behind its end."""
    cut = cut_of(plan)
    length = math.prod(axis.kernel for axis in cut.axes)
    if not spec_of(plan).alone:
        length = cut.inputs * (cut.axes[2].kernel if cut.run else 1)
    made = np.zeros(-(-length // QUAD) * QUAD, np.uint8)
    made[:length] = 1
    return made


def _weights(plan: IntegerConvPlan, w: Array) -> Array:
    """Signed bytes as kernels read them, zeros where runs and blocks end."""
    cut, (groups, blocks, runs, quads, block) = cut_of(plan), shape_of(plan)
    signed, taps = _signed(plan, w), math.prod(plan.weight_shape[2:])
    if spec_of(plan).alone:
        made = np.zeros((groups * block, runs * QUAD), np.int8)
        made[: len(w), :taps] = signed.reshape(len(w), taps)
        by_quad = made.reshape(groups, block, runs, QUAD)[:, order(block)]
        return np.ascontiguousarray(by_quad.transpose(0, 2, 1, 3))
    run = cut.axes[2].kernel if cut.run else 1
    parts = np.moveaxis(signed.reshape(groups, cut.outputs, cut.inputs, taps // run, run), 2, 4)
    whole = np.zeros((groups, blocks * block, runs, quads * QUAD), np.int8)
    whole[:, : cut.outputs, :, : run * cut.inputs] = parts.reshape(groups, cut.outputs, runs, run * cut.inputs)
    split = whole.reshape(groups, blocks, block, runs, quads, QUAD)
    return np.ascontiguousarray(split.transpose(0, 1, 3, 4, 2, 5))


def _number(zero: Array | None) -> int:
    return 0 if zero is None else int(zero.reshape(-1)[0])


def _signed(plan: IntegerConvPlan, w: Array) -> Array:
    return w if plan.w_dtype == "int8" else (w ^ np.uint8(128)).view(np.int8)


KERNELS = (Kernel("quads", forward, backward, declines, numpy=False),)
