"""Deformable convolution: pixels sampled where the offsets point, then a convolution's matrix product.

columns   every tap of every window sampled at once; the corners of a tap are the loop that is left
loops4    _deform_loops: one tap of one window as Python numbers
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...plan.deform import DeformPlan
from ..protocol import Array, Arrays, Kernel, Saved
from . import _deform_loops as loops
from ._windows import Indices, as_channels_first


@dataclass(frozen=True, slots=True, eq=False)
class Corner:
    """One of the 2^rank pixels around every tap: flat places (N, G, taps * out), whether they are in the input, and per axis
    the share of the weight, which grows (sign 1) or falls (-1) as the tap moves on."""

    places: Indices
    inside: Array
    shares: tuple[Array, ...]
    signs: tuple[int, ...]

    def read(self, x: Array) -> Array:
        """x (N, G, C/G, plane) at these places: (N, G, C/G, taps * out)."""
        return np.take_along_axis(x, self.places[:, :, None], axis=-1)

    def slope(self, *axes: int) -> Array:
        """The derivative of the weight by the tap's place on these axes, each named once; by none the weight itself."""
        sign = math.prod(self.signs[a] for a in axes)
        rest = [share for a, share in enumerate(self.shares) if a not in axes]
        return np.where(self.inside, math.prod(rest, start=np.full_like(self.shares[0], sign)), 0)

    def along(self, steps: Array, *axes: int) -> Array:
        """How the slope by these axes changes along steps, (rank, N, G, taps * out); axes already there bend no further."""
        return np.asarray(
            sum((self.slope(*axes, a) * step for a, step in enumerate(steps) if a not in axes), np.zeros_like(steps[0]))
        )

    @property
    def weight(self) -> Array:
        return self.slope()


def corners(plan: DeformPlan, offset: Array) -> Iterator[Corner]:
    """The pixels each tap lies between. Those outside the input weigh nothing, nor does anything of a tap far outside."""
    rank, images = len(plan.axes), offset.shape[0]
    outs = tuple(axis.out for axis in plan.axes)
    moved = offset.reshape(images, plan.offset_groups, plan.taps, rank, *outs)
    lows, parts, near = [], [], np.ones((images, plan.offset_groups, plan.taps, *outs), bool)
    for a, axis in enumerate(plan.axes):
        tap = np.array([place[a] for place in np.ndindex(*plan.kernel)]) * axis.dilation
        grid = np.arange(axis.out).reshape(-1, *[1] * (rank - 1 - a)) * axis.stride - axis.pad_lo
        position = tap.reshape(-1, *[1] * rank) + grid + moved[:, :, :, a]
        near &= ~((position <= -1) | (position >= axis.size))
        low = np.floor(np.where(np.isfinite(position), position, 0))
        lows.append(np.clip(low, -1, axis.size).astype(np.int64))
        parts.append(position - low)
    flat = (images, plan.offset_groups, plan.taps * positions(plan))
    for bits in itertools.product((0, 1), repeat=rank):
        places, inside = np.zeros(near.shape, np.int64), near
        shares = [part if bit else 1 - part for part, bit in zip(parts, bits, strict=True)]
        for axis, low, bit in zip(plan.axes, lows, bits, strict=True):
            inside = inside & (low + bit >= 0) & (low + bit < axis.size)
            places = places * axis.size + np.clip(low + bit, 0, axis.size - 1)
        yield Corner(
            places.reshape(flat),
            inside.reshape(flat),
            tuple(share.reshape(flat) for share in shares),
            tuple(1 if bit else -1 for bit in bits),
        )


def forward_columns(plan: DeformPlan, *arrays: Array | None, out: Array, save: bool) -> tuple[Array, Saved | None]:
    x, offset, w, mask, b = arrays
    assert x is not None and offset is not None and w is not None
    parts = parted(plan, x, offset, mask)
    sampled, images = samples(plan, parts), x.shape[0]
    weighed = sampled if parts.mask is None else sampled * parts.mask[:, :, None]
    y = np.matmul(matrix(plan, w), columns_of(plan, weighed)).reshape(images, plan.out_channels, *[a.out for a in plan.axes])
    if b is not None:
        y += b.astype(y.dtype).reshape(-1, *[1] * len(plan.axes))
    as_channels_first(out, plan.layout)[...] = y
    return out, saved_of(x, offset, w, mask, b) if save else None


def backward_columns(plan: DeformPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """The matrix product's gradients, then a tap's to the corners it was taken from, to its place and to its mask."""
    x, offset, w, mask = saved.x, saved.extra["offset"], saved.w, saved.extra["mask"]
    assert x is not None and w is not None
    parts = parted(plan, x, offset, mask)
    g = np.ascontiguousarray(as_channels_first(dy, plan.layout), plan.accumulate)
    rows = g.reshape(g.shape[0], plan.groups, plan.out_channels // plan.groups, positions(plan))
    sampled = samples(plan, parts)
    weighed = sampled if parts.mask is None else sampled * parts.mask[:, :, None]
    dw = np.matmul(rows, columns_of(plan, weighed).swapaxes(-1, -2)).sum(axis=0).reshape(plan.weight_shape)
    arriving = np.matmul(matrix(plan, w).swapaxes(-1, -2), rows).reshape(sampled.shape)
    dmask = (arriving * sampled).sum(axis=2)
    if parts.mask is not None:
        arriving = arriving * parts.mask[:, :, None]
    dx, doffset = np.zeros(parts.x.shape, g.dtype), np.zeros((len(plan.axes), *dmask.shape), g.dtype)
    for corner in corners(plan, parts.offset):
        along = (arriving * corner.read(parts.x)).sum(axis=2)
        for a in range(len(plan.axes)):
            doffset[a] += along * corner.slope(a)
        add_at(dx, corner, arriving * corner.weight[:, :, None])
    db = g.sum(axis=(0, *range(2, g.ndim)))
    return returned(plan, saved, dy.dtype, (dx, doffset, dw, None if mask is None else dmask, db), want)


def twice(plan: DeformPlan, dy: Array, saved: Saved, cotangents: Arrays, *, want: Sequence[bool]) -> tuple[Array, Arrays]:
    """The sum of cotangents times gradients is that of dy times the output's change as all arrays move along their cotangents:
    this is the change, and the change's own way back. Between whole pixels a weight is a product of one factor an axis, so its
    second derivative by one axis is 0."""
    x, offset, w, mask = saved.x, saved.extra["offset"], saved.w, saved.extra["mask"]
    assert x is not None and w is not None
    moves = [
        None if a is None else np.zeros_like(a) if c is None else c
        for a, c in zip((x, offset, w, mask), cotangents, strict=False)
    ]
    assert moves[0] is not None and moves[1] is not None and moves[2] is not None
    parts, moved = parted(plan, x, offset, mask), parted(plan, moves[0], moves[1], moves[3])
    weights, turned, steps = matrix(plan, w), matrix(plan, moves[2]), steps_of(plan, moved.offset)
    weighed, reweighed = np.ones((1, 1, 1, 1), parts.x.dtype), np.zeros((1, 1, 1, 1), parts.x.dtype)
    if parts.mask is not None and moved.mask is not None:
        weighed, reweighed = parts.mask[:, :, None], moved.mask[:, :, None]

    sampled = samples(plan, parts)
    change = np.zeros_like(sampled)
    for corner in corners(plan, parts.offset):
        change += corner.weight[:, :, None] * corner.read(moved.x) + corner.along(steps)[:, :, None] * corner.read(parts.x)
    columns, changed = columns_of(plan, sampled * weighed), columns_of(plan, change * weighed + sampled * reweighed)
    y = (np.matmul(weights, changed) + np.matmul(turned, columns)).reshape(
        x.shape[0], plan.out_channels, *[a.out for a in plan.axes]
    )
    if len(cotangents) > 4 and cotangents[4] is not None:
        y += cotangents[4].astype(y.dtype).reshape(-1, *[1] * len(plan.axes))
    by_dy = np.empty(dy.shape, dy.dtype)
    as_channels_first(by_dy, plan.layout)[...] = y

    rows = np.ascontiguousarray(as_channels_first(dy, plan.layout), plan.accumulate)
    rows = rows.reshape(x.shape[0], plan.groups, plan.out_channels // plan.groups, positions(plan))
    by_w = np.matmul(rows, changed.swapaxes(-1, -2)).sum(axis=0).reshape(plan.weight_shape)
    to_changed = np.matmul(weights.swapaxes(-1, -2), rows).reshape(sampled.shape)
    to_columns = np.matmul(turned.swapaxes(-1, -2), rows).reshape(sampled.shape)
    by_mask = None if mask is None else (to_changed * change + to_columns * sampled).sum(axis=2)
    to_sampled, to_change = to_columns * weighed + to_changed * reweighed, to_changed * weighed
    by_x, by_offset = np.zeros_like(parts.x), np.zeros_like(steps)
    for corner in corners(plan, parts.offset):
        add_at(by_x, corner, to_sampled * corner.weight[:, :, None] + to_change * corner.along(steps)[:, :, None])
        still, moving = corner.read(parts.x), corner.read(moved.x)
        straight, bent = (to_sampled * still + to_change * moving).sum(axis=2), (to_change * still).sum(axis=2)
        for a in range(len(plan.axes)):
            by_offset[a] += straight * corner.slope(a) + bent * corner.along(steps, a)
    return by_dy, returned(plan, saved, dy.dtype, (by_x, by_offset, by_w, by_mask, None), want)


def steps_of(plan: DeformPlan, offset: Array) -> Array:
    """Offsets by axis: (rank, N, G, taps * out)."""
    rank = len(plan.axes)
    steps = offset.reshape(offset.shape[0], plan.offset_groups, plan.taps, rank, positions(plan))
    return np.moveaxis(steps, 3, 0).reshape(rank, offset.shape[0], plan.offset_groups, -1)


def add_at(dx: Array, corner: Corner, values: Array) -> None:
    """Add to the pixels of one corner; dx (N, G, C/G, plane), values (N, G, C/G, taps * out)."""
    index = np.ogrid[tuple(slice(n) for n in dx.shape[:3])]
    np.add.at(dx, (*(i[..., None] for i in index), corner.places[:, :, None]), values)


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """The arrays channels first in the dtype sums are formed in, x (N, G, C/G, plane), the mask (N, G, taps * out)."""

    x: Array
    offset: Array
    mask: Array | None


def parted(plan: DeformPlan, x: Array, offset: Array, mask: Array | None) -> Parts:
    wide = [
        None if a is None else np.ascontiguousarray(as_channels_first(a, plan.layout), plan.accumulate) for a in (x, offset, mask)
    ]
    assert wide[0] is not None and wide[1] is not None
    images = x.shape[0]
    planes = wide[0].reshape(
        images, plan.offset_groups, plan.in_channels // plan.offset_groups, math.prod(a.size for a in plan.axes)
    )
    return Parts(
        planes, wide[1], None if wide[2] is None else wide[2].reshape(images, plan.offset_groups, plan.taps * positions(plan))
    )


def samples(plan: DeformPlan, parts: Parts) -> Array:
    """Every tap of every channel: (N, G, C/G, taps * out). A corner of no weight is not multiplied."""
    total = None
    for corner in corners(plan, parts.offset):
        weight = corner.weight[:, :, None]
        share = np.where(weight == 0, weight, corner.read(parts.x) * weight)
        total = share if total is None else total + share
    assert total is not None
    return total


def columns_of(plan: DeformPlan, sampled: Array) -> Array:
    """Samples as the columns of a product per group of the weights: (N, g, I/g * taps, out)."""
    return sampled.reshape(sampled.shape[0], plan.groups, plan.in_channels // plan.groups * plan.taps, positions(plan))


def positions(plan: DeformPlan) -> int:
    """Windows of one image."""
    return math.prod(axis.out for axis in plan.axes)


def matrix(plan: DeformPlan, w: Array) -> Array:
    """The weights as one matrix per group: (g, O/g, I/g * taps)."""
    return np.ascontiguousarray(w, plan.accumulate).reshape(
        plan.groups, plan.out_channels // plan.groups, plan.in_channels // plan.groups * plan.taps
    )


def saved_of(x: Array, offset: Array, w: Array, mask: Array | None, b: Array | None) -> Saved:
    shapes = (x.shape, offset.shape, w.shape, None if mask is None else mask.shape, None if b is None else b.shape)
    return Saved(shapes, x=x, w=w, extra={"offset": offset, "mask": mask})


def returned(
    plan: DeformPlan, saved: Saved, dtype: np.dtype[np.generic], found: tuple[Array | None, ...], want: Sequence[bool]
) -> Arrays:
    """The gradients somebody wants, in the arrays' own shapes, layout and dtype."""
    dx, doffset, dw, dmask, db = found
    assert doffset is not None
    rank, outs = len(plan.axes), tuple(axis.out for axis in plan.axes)
    doffset = np.moveaxis(doffset.reshape(rank, doffset.shape[1], plan.offset_groups, plan.taps, *outs), 0, 3)
    results: list[Array | None] = []
    for role, gradient, shape, wanted in zip(plan.roles, (dx, doffset, dw, dmask, db), saved.shapes, want, strict=False):
        if gradient is None or shape is None or not wanted:
            results.append(None)
            continue
        result = np.empty(shape, dtype)
        view = result if role in ("w", "b") else as_channels_first(result, plan.layout)
        view[...] = gradient.reshape(view.shape)
        results.append(result)
    return tuple(results) + (None,) * (len(plan.roles) - len(results))


KERNELS = (
    Kernel("columns", forward_columns, backward_columns, twice=twice),
    Kernel("loops4", loops.forward, loops.backward, twice=twice),
)
