"""Fractional max pooling: the windows' places are data, a plane's own.

loops4    for each image, channel and window: one window as Python numbers
gather    a pass over the taps of the kernel, all windows at once
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...plan.fractional import FractionalPlan
from ...plan.kinds import Tie
from ..protocol import Array, Arrays, Kernel, Saved, offset_dtype
from ._windows import Indices, as_channels_first


def starts(plan: FractionalPlan, samples: Array) -> tuple[Indices, ...]:
    """Per axis, where every window of every plane starts: (N, C, out). Each step is rounded to the samples' dtype."""
    number = samples.dtype.type
    found = []
    for n, k, out, column in zip(plan.size, plan.kernel, plan.out, plan.sample_axes, strict=True):
        u = samples[..., column, None]
        first = np.full((*samples.shape[:2], out), n - k, np.int64)
        if out > 1:
            step = number(n - k) / number(out - 1)
            moved = ((np.arange(out - 1).astype(samples.dtype) + u) * step).astype(np.int64)
            first[..., :-1] = moved - (u * step).astype(np.int64)
        found.append(first)
    return tuple(found)


def forward_gather(plan: FractionalPlan, *arrays: Array | None, out: Array, save: bool) -> tuple[Array, Saved | None]:
    x, samples = arrays
    assert x is not None and samples is not None
    xv, yv = as_channels_first(x, plan.layout), as_channels_first(out, plan.layout)
    begins = starts(plan, samples)
    best, last = np.full(yv.shape, -np.inf, x.dtype), plan.tie is Tie.LAST_NAN
    offsets = np.zeros(yv.shape, offset_dtype(plan.taps))
    for offset, tap in enumerate(np.ndindex(*plan.kernel)):
        value = xv[_pixels(begins, tap)]
        better = (value > best) | (np.isnan(value) & (last | ~np.isnan(best)))
        best = np.where(better, value, best)
        offsets[better] = offset
    yv[...] = best
    return out, _saved(x, samples, offsets, begins) if save else None


def backward_gather(plan: FractionalPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """To the winner of each window; places are not differentiated."""
    if not want[0]:
        return (None, None)
    assert saved.offsets is not None and saved.shapes[0] is not None
    dx = np.zeros(saved.shapes[0], dy.dtype)
    view, dyv = as_channels_first(dx, plan.layout), as_channels_first(dy, plan.layout)
    total = np.zeros(view.shape, np.result_type(np.dtype(plan.accumulate), dy.dtype))
    for offset, tap in enumerate(np.ndindex(*plan.kernel)):
        share = np.where(saved.offsets == offset, dyv, dy.dtype.type(0))
        np.add.at(total, _pixels(saved.extra["starts"], tap), share)
    view[...] = total
    return (dx, None)


def forward_loops4(plan: FractionalPlan, *arrays: Array | None, out: Array, save: bool) -> tuple[Array, Saved | None]:
    x, samples = arrays
    assert x is not None and samples is not None
    xv, yv = as_channels_first(x, plan.layout), as_channels_first(out, plan.layout)
    begins = starts(plan, samples)
    offsets = np.zeros(yv.shape, offset_dtype(plan.taps))
    for here in np.ndindex(*yv.shape):
        best, picked = -math.inf, 0
        for offset, pixel in enumerate(_window(plan, begins, here)):
            value = float(xv[pixel])
            if value > best or (math.isnan(value) and (plan.tie is Tie.LAST_NAN or not math.isnan(best))):
                best, picked = value, offset
        yv[here], offsets[here] = best, picked
    return out, _saved(x, samples, offsets, begins) if save else None


def backward_loops4(plan: FractionalPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    if not want[0]:
        return (None, None)
    assert saved.offsets is not None and saved.shapes[0] is not None
    dx = np.zeros(saved.shapes[0], dy.dtype)
    view, dyv = as_channels_first(dx, plan.layout), as_channels_first(dy, plan.layout)
    total = np.zeros(view.shape, np.result_type(np.dtype(plan.accumulate), dy.dtype))
    for here in np.ndindex(*dyv.shape):
        total[_window(plan, saved.extra["starts"], here)[int(saved.offsets[here])]] += dyv[here]
    view[...] = total
    return (dx, None)


def twice(plan: FractionalPlan, dy: Array, saved: Saved, cotangents: Arrays, *, want: Sequence[bool]) -> tuple[Array, Arrays]:
    """The gradient moves dy and is piecewise constant in x: dy's own is the cotangent of each window's winner."""
    assert saved.offsets is not None and cotangents[0] is not None
    arriving = as_channels_first(cotangents[0], plan.layout)
    gradient = np.empty(dy.shape, dy.dtype)
    view = as_channels_first(gradient, plan.layout)
    for offset, tap in enumerate(np.ndindex(*plan.kernel)):
        np.copyto(view, arriving[_pixels(saved.extra["starts"], tap)], where=saved.offsets == offset)
    return gradient, (None, None)


def _pixels(begins: Sequence[Indices], tap: tuple[int, ...]) -> tuple[Indices, ...]:
    """The pixel one tap reads in every window, as an index of (N, C, *size)."""
    rank = len(begins)
    n, c = begins[0].shape[:2]
    planes = [np.arange(n).reshape(-1, *[1] * (rank + 1)), np.arange(c).reshape(1, -1, *[1] * rank)]
    places = []
    for a, (first, k) in enumerate(zip(begins, tap, strict=True)):
        places.append((first + k).reshape(n, c, *[first.shape[-1] if b == a else 1 for b in range(rank)]))
    return (*planes, *places)


def _window(plan: FractionalPlan, begins: Sequence[Indices], here: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The pixels of one window in row-major order."""
    first = [int(begin[here[0], here[1], i]) for begin, i in zip(begins, here[2:], strict=True)]
    return [(*here[:2], *(f + k for f, k in zip(first, tap, strict=True))) for tap in np.ndindex(*plan.kernel)]


def _saved(x: Array, samples: Array, offsets: Array, begins: tuple[Indices, ...]) -> Saved:
    return Saved((x.shape, samples.shape), offsets=offsets, extra={"starts": begins})


KERNELS = (
    Kernel("gather", forward_gather, backward_gather, twice=twice),
    Kernel("loops4", forward_loops4, backward_loops4, twice=twice),
)
