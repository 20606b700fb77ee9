"""Convolution of quantised numbers with int32 sums, four bytes of input channels at a time (quads.py).

Bytes become unsigned in x (x + 128 where they are signed) and signed in w (w - 128 where they are not), zero points with them;
x lies in memory with its padding, which holds its zero point and so counts for nothing. Then

    sum (x - p)(w - q) = sum x w - p sum w - q sum x + n p q        n taps and channels of a window

where sum w is known before, and sum x, needed only where some q is not 0, is one more output channel whose weights are 1.
Groups of one channel would fill no quads: there the kernels of floating numbers are exact, and compute it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from ...errors import UnsupportedError
from ...plan import ConvPlan
from ...plan.integer import IntegerConvPlan
from ...plan.kinds import Layout
from ..protocol import Array, Arrays, Kernel, Saved
from . import conv_directions
from .conv_gather import Relation, compute
from .conv_pack import packed, packed_bias
from .kept import kept

QUAD = 4
"""Bytes of one lane."""

EXACT = 1 << 24
"""Whole numbers that float32 holds are smaller."""


def declines(plan: IntegerConvPlan) -> str | None:
    """Why this backend does not compute a plan; None if it does."""
    return conv_directions.declines(_floating(plan))


@lru_cache(maxsize=512)
def _floating(plan: IntegerConvPlan) -> ConvPlan:
    """The same windows over floating numbers that hold every sum exactly: float32 where each channel is by itself and windows
    are small, since no form of convolution rounds there; else float64."""
    terms = math.prod(plan.weight_shape[1:])
    alone = plan.groups == plan.in_channels == plan.out_channels > 1
    dtype = "float32" if alone and terms * 255 * 255 < EXACT else "float64"
    return ConvPlan(
        dtype=dtype,
        axes=plan.axes,
        in_channels=plan.in_channels,
        out_channels=plan.out_channels,
        layout=plan.layout,
        groups=plan.groups,
        accumulate=dtype,
    )


def forward(plan: IntegerConvPlan, *arrays: Array | None, out: Array, save: bool) -> tuple[Array, Saved | None]:
    """Convolve into out."""
    x, w, x_zero, w_zero, b, *scales, y_zero = arrays
    assert x is not None and w is not None
    one = plan.groups > 1 and plan.in_channels == plan.groups
    sums = _in_floats(plan, x, w, x_zero, w_zero, b) if one else _in_quads(plan, x, w, x_zero, w_zero, b)
    _finished(plan, sums, scales, y_zero, out)
    return out, Saved(tuple(None if a is None else a.shape for a in arrays)) if save else None


def backward(plan: IntegerConvPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """Rounding has no slope. Raises UnsupportedError."""
    raise UnsupportedError("integers have no gradient", operator=plan.op, hint="astride.conv on floating numbers")


def _in_floats(plan: IntegerConvPlan, x: Array, w: Array, x_zero: Array | None, w_zero: Array | None, b: Array | None) -> Array:
    """int32 sums, channels last."""
    floating = _floating(plan)
    x_less, w_less = (a.astype(floating.dtype) for a in (x, w))
    if x_zero is not None:
        x_less -= x_zero.astype(floating.dtype).reshape(())
    if w_zero is not None:
        w_less -= w_zero.astype(floating.dtype).reshape(-1, *[1] * (w.ndim - 1))
    first = plan.layout is Layout.CHANNELS_FIRST
    shape = floating.output_shape(x.shape, w.shape, None)
    y, _ = conv_directions.forward(floating, x_less, w_less, None, out=np.empty(shape, floating.dtype), save=False)
    sums: Array = np.rint(np.moveaxis(y, 1, -1) if first else y).astype(np.int64)
    if b is not None:
        sums += b
    return sums.astype(np.int32)


def _in_quads(plan: IntegerConvPlan, x: Array, w: Array, x_zero: Array | None, w_zero: Array | None, b: Array | None) -> Array:
    """int32 sums, channels last."""
    p = _number(x_zero) + (128 if plan.dtype == "int8" else 0)
    q = np.zeros(1, np.int64) if w_zero is None else w_zero.reshape(-1).astype(np.int64)
    q = q - (128 if plan.w_dtype == "uint8" else 0)
    extra = bool(q.any())
    groups, terms = plan.groups, math.prod(plan.weight_shape[1:])
    of_group = plan.out_channels // groups
    total = kept(w, ("total", plan.w_dtype), lambda: _signed(plan, w).reshape(len(w), -1).sum(1, dtype=np.int64))
    constant = (terms * q - total) * p
    if b is not None:
        constant = constant + b
    relation = _relation(plan, extra)
    whole = _padded(plan, x, p)
    y = np.empty((len(x), *(axis.out for axis in plan.axes), relation.outputs), np.int32)
    begin = np.zeros((groups, of_group + extra), np.int32)
    begin[:, :of_group] = constant.astype(np.int32).reshape(groups, of_group)
    weights = kept(w, ("quads", relation), lambda: packed(relation, _weights(plan, w, extra)))
    compute(relation, whole, weights, packed_bias(relation, begin, y.dtype), y)
    if not extra:
        return y
    parts = y.reshape(*y.shape[:-1], groups, of_group + 1)
    less = np.broadcast_to(q, (plan.out_channels,)).astype(np.int32).reshape(groups, of_group)
    return (parts[..., :-1] - parts[..., -1:] * less).reshape(*y.shape[:-1], plan.out_channels)


def _weights(plan: IntegerConvPlan, w: Array, extra: bool) -> Array:
    """Signed bytes in quads of input channels, as int32; with `extra` one more output channel a group, all ones."""
    signed = _signed(plan, w)
    if extra:
        signed = signed.reshape(plan.groups, -1, *signed.shape[1:])
        signed = np.concatenate([signed, np.ones_like(signed[:, :1])], 1).reshape(-1, *signed.shape[2:])
    return np.ascontiguousarray(_quads(signed, 1).view(np.int32)[..., 0])


@lru_cache(maxsize=512)
def _relation(plan: IntegerConvPlan, extra: bool) -> Relation:
    """What is gathered: quads of the padded input, and with `extra` one more output channel a group."""
    axes = tuple(
        replace(
            axis,
            size=axis.size + max(axis.pad_lo, 0) + max(axis.pad_hi, 0),
            pad_lo=min(axis.pad_lo, 0),
            pad_hi=min(axis.pad_hi, 0),
        )
        for axis in plan.axes
    )
    inputs = plan.groups * -(-plan.in_channels // plan.groups // QUAD)
    return Relation("int32", axes, inputs, plan.out_channels + plan.groups * extra, plan.groups, False, False)


def _number(zero: Array | None) -> int:
    return 0 if zero is None else int(zero.reshape(-1)[0])


def _signed(plan: IntegerConvPlan, w: Array) -> Array:
    return w if plan.w_dtype == "int8" else (w ^ np.uint8(128)).view(np.int8)


def _quads(array: Array, axis: int) -> Array:
    """An axis of channels as one of quads, their four bytes as last axis; zeros where channels end."""
    missing = -array.shape[axis] % QUAD
    if missing:
        array = np.concatenate([array, np.zeros_like(array[:, :1]).repeat(missing, axis)], axis)
    split = array.reshape(*array.shape[:axis], -1, QUAD, *array.shape[axis + 1 :])
    return np.ascontiguousarray(np.moveaxis(split, axis + 1, -1))


def _padded(plan: IntegerConvPlan, x: Array, p: int) -> Array:
    """x as unsigned bytes, channels last and in quads, (N, *size, quads), with its padding, which holds p."""
    first, groups = plan.layout is Layout.CHANNELS_FIRST, plan.groups
    x = np.moveaxis(x, 1, -1) if first else x
    of_group = plan.in_channels // groups
    sizes = [axis.size + max(axis.pad_lo, 0) + max(axis.pad_hi, 0) for axis in plan.axes]
    wide = -(-of_group // QUAD) * QUAD
    whole = np.full((len(x), *sizes, groups, wide), p, np.uint8)
    inner = tuple(slice(max(axis.pad_lo, 0), max(axis.pad_lo, 0) + axis.size) for axis in plan.axes)
    place = whole[(slice(None), *inner)][..., :of_group]
    given = x.view(np.uint8) if x.dtype == np.int8 and x.flags.c_contiguous else x.astype(np.uint8, copy=False)
    given = given.reshape(*given.shape[:-1], groups, of_group)
    if plan.dtype == "int8":
        np.bitwise_xor(given, np.uint8(128), out=place)
    else:
        place[...] = given
    return whole.reshape(len(x), *sizes, groups * wide).view(np.int32)


def _finished(plan: IntegerConvPlan, sums: Array, scales: Sequence[Array | None], y_zero: Array | None, out: Array) -> None:
    """Into out, as they are or scaled, rounded, moved and clipped."""
    view = np.moveaxis(out, 1, -1) if plan.layout is Layout.CHANNELS_FIRST else out
    if not plan.quantised:
        view[...] = sums
        return
    x_scale, w_scale, y_scale = scales
    assert x_scale is not None and w_scale is not None and y_scale is not None
    limits, zero = np.iinfo(plan.y_dtype), _number(y_zero)
    with np.errstate(all="ignore"):
        scale = (x_scale.reshape(-1) * w_scale.reshape(-1) / y_scale.reshape(-1)).astype(np.float32)
        scaled = sums.astype(np.float32)
        scaled *= scale
        np.rint(scaled, out=scaled)
        np.clip(scaled, limits.min - zero, limits.max - zero, out=scaled)  # small whole numbers: adding zero is exact
        scaled += np.float32(zero)
        view[...] = scaled.astype(plan.y_dtype)


KERNELS = (Kernel("quads", forward, backward, declines, numpy=False),)
