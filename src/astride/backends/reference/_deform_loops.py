"""Deformable convolution as loops over everything: one tap of one window at a time, in Python numbers. The judge."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from ...plan.deform import DeformPlan
from ..protocol import Array, Arrays, Saved
from ._windows import as_channels_first

Place = tuple[int, ...]


def forward(plan: DeformPlan, *arrays: Array | None, out: Array, save: bool) -> tuple[Array, Saved | None]:
    x, offset, w, mask, b = (None if a is None else a.astype(np.float64) for a in arrays)
    assert x is not None and offset is not None and w is not None
    xv, ov, yv = (as_channels_first(a, plan.layout) for a in (x, offset, out))
    mv = None if mask is None else as_channels_first(mask, plan.layout)
    for n, o, *window in np.ndindex(*yv.shape):
        here = tuple(window)
        total = 0.0 if b is None else float(b[o])
        for c, tap, flat in _taps(plan, o):
            value = sum(
                weight * float(xv[(n, c, *pixel)]) for pixel, weight, _ in _corners(plan, ov, n, c, flat, tap, here) if weight
            )
            total += float(w[(o, c % (plan.in_channels // plan.groups), *tap)]) * value * _mask(plan, mv, n, c, flat, here)
        yv[(n, o, *here)] = total
    if not save:
        return out, None
    shapes = tuple(None if a is None else a.shape for a in arrays)
    return out, Saved(shapes, x=arrays[0], w=arrays[2], extra={"offset": arrays[1], "mask": arrays[3]})


def backward(plan: DeformPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    given = (saved.x, saved.extra["offset"], saved.w, saved.extra["mask"])
    x, offset, w, mask = (None if a is None else a.astype(np.float64) for a in given)
    assert x is not None and offset is not None and w is not None
    xv, ov, gv = (as_channels_first(a, plan.layout) for a in (x, offset, dy.astype(np.float64)))
    mv = None if mask is None else as_channels_first(mask, plan.layout)
    dx, doffset, dw = np.zeros(x.shape), np.zeros(offset.shape), np.zeros(w.shape)
    dmask, db = None if mask is None else np.zeros(mask.shape), np.zeros(plan.out_channels)
    dxv, dov = as_channels_first(dx, plan.layout), as_channels_first(doffset, plan.layout)
    dmv = None if dmask is None else as_channels_first(dmask, plan.layout)
    for n, o, *window in np.ndindex(*gv.shape):
        here, g = tuple(window), float(gv[(n, o, *window)])
        db[o] += g
        for c, tap, flat in _taps(plan, o):
            row = _row(plan, c, flat)
            kernel, weighed = (o, c % (plan.in_channels // plan.groups), *tap), _mask(plan, mv, n, c, flat, here)
            value = 0.0
            for pixel, weight, slopes in _corners(plan, ov, n, c, flat, tap, here):
                sample = float(xv[(n, c, *pixel)])
                value += weight * sample if weight else 0.0
                dxv[(n, c, *pixel)] += g * float(w[kernel]) * weighed * weight
                for a, slope in enumerate(slopes):
                    dov[(n, row * len(plan.axes) + a, *here)] += g * float(w[kernel]) * weighed * slope * sample
            dw[kernel] += g * weighed * value
            if dmv is not None:
                dmv[(n, row, *here)] += g * float(w[kernel]) * value
    found = (dx, doffset, dw, dmask, None if len(saved.shapes) < 5 or saved.shapes[4] is None else db)
    return tuple(a.astype(dy.dtype) if a is not None and i < len(want) and want[i] else None for i, a in enumerate(found))


def _taps(plan: DeformPlan, o: int) -> Iterator[tuple[int, Place, int]]:
    """(input channel, tap, its number) of everything output channel `o` sums."""
    inner = plan.in_channels // plan.groups
    first = o // (plan.out_channels // plan.groups) * inner
    for c in range(first, first + inner):
        for flat, tap in enumerate(np.ndindex(*plan.kernel)):
            yield c, tap, flat


def _row(plan: DeformPlan, c: int, flat: int) -> int:
    """The mask's channel of a tap; the offsets' begin at rank times it."""
    return c // (plan.in_channels // plan.offset_groups) * plan.taps + flat


def _mask(plan: DeformPlan, mask: Array | None, n: int, c: int, flat: int, here: Place) -> float:
    return 1.0 if mask is None else float(mask[(n, _row(plan, c, flat), *here)])


def _corners(
    plan: DeformPlan, offset: Array, n: int, c: int, flat: int, tap: Place, here: Place
) -> list[tuple[Place, float, tuple[float, ...]]]:
    """(pixel, weight, the weight's slope along every axis) of the pixels around one tap, those inside the input."""
    rank, row = len(plan.axes), _row(plan, c, flat)
    position = [
        float(i * axis.stride - axis.pad_lo + k * axis.dilation + offset[(n, row * rank + a, *here)])
        for a, (axis, i, k) in enumerate(zip(plan.axes, here, tap, strict=True))
    ]
    if any(p <= -1 or p >= axis.size for p, axis in zip(position, plan.axes, strict=True)):
        return []
    low = [math.floor(p) if math.isfinite(p) else 0 for p in position]
    found = []
    for bits in itertools.product((0, 1), repeat=rank):
        pixel = tuple(i + bit for i, bit in zip(low, bits, strict=True))
        if all(0 <= i < axis.size for i, axis in zip(pixel, plan.axes, strict=True)):
            shares = [p - i if bit else 1 - (p - i) for p, i, bit in zip(position, low, bits, strict=True)]
            slopes = tuple((1 if bits[a] else -1) * math.prod(shares[:a] + shares[a + 1 :]) for a in range(rank))
            found.append((pixel, math.prod(shares), slopes))
    return found
