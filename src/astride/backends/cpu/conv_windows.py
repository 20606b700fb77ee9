"""The windows of a convolution sorted by the taps they have inside the input.

Padding is never multiplied: windows that share their taps form one class, interior and edges, or one class a phase where
the input is stretched (which is how transposed convolution and the gradient of strided ones need no zeros between pixels).
Along an axis the windows of a class, and their first pixels, lie at constant distances; a class over three axes is a grid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...plan import StridedAxis
from .edges import taps_inside

Numbers = NDArray[np.int64]

MOST = 1 << 16
"""Classes a convolution may have."""


@dataclass(frozen=True, slots=True)
class Classes:
    """The classes of one axis, a number each: the first window and its first tap's pixel, the distance to the next of both,
    how many windows there are, the number of the first tap inside and how many are. From tap to tap it is `step` pixels
    and `skip` numbers."""

    window: Numbers
    window_step: Numbers
    pixel: Numbers
    pixel_step: Numbers
    windows: Numbers
    tap: Numbers
    taps: Numbers
    step: int
    skip: int


def classes_of(axis: StridedAxis) -> Classes:
    """The classes of an axis."""
    taps = taps_inside(axis)
    tap, pixel = np.where(taps.count > 0, taps.number, 0), np.where(taps.count > 0, taps.pixel, 0)
    found: list[tuple[int, ...]] = []
    keys, member = np.unique(np.stack([tap, taps.count], 1), axis=0, return_inverse=True)
    order = np.argsort(member.ravel(), kind="stable")
    bounds = np.searchsorted(member.ravel()[order], np.arange(len(keys) + 1))
    for key, begin, end in zip(keys, bounds, bounds[1:], strict=False):
        for part in _progressions(order[begin:end]):
            at = pixel[part]
            steps = (part[1] - part[0], at[1] - at[0]) if len(part) > 1 else (0, 0)
            found.append((part[0], steps[0], at[0], steps[1], len(part), *key))
    first, step, place, place_step, windows, number, count = np.array(found, np.int64).reshape(-1, 7).T
    return Classes(first, step, place, place_step, windows, number, count, taps.step, taps.skip)


def most_classes(axes: Sequence[StridedAxis]) -> int:
    """No fewer than the classes of these axes, without looking at any window."""
    return math.prod(_most(axis) for axis in axes)


def _most(axis: StridedAxis) -> int:
    skip = axis.input_dilation // math.gcd(axis.dilation, axis.input_dilation)
    phases = axis.input_dilation // math.gcd(axis.stride, axis.input_dilation)
    return min(axis.out, max(phases, skip) * (2 * -(-axis.kernel // skip) + 2) + 1)


def _progressions(windows: Numbers) -> list[Numbers]:
    """Ascending numbers as runs of constant distance."""
    runs = []
    while len(windows) > 2:
        steps = np.diff(windows)
        other = np.flatnonzero(steps != steps[0])
        end = int(other[0]) + 1 if len(other) else len(windows)
        runs.append(windows[:end])
        windows = windows[end:]
    return [*runs, windows] if len(windows) else runs


def stretched_back(axis: StridedAxis) -> StridedAxis:
    """The axis on which the gradient of the input is a convolution of the output's: taps turned, pixels `stride` apart."""
    reach, pad = axis.reach, axis.reach - 1 - axis.pad_lo
    stretched = (axis.out - 1) * axis.stride + 1 if axis.out else 0
    behind = (axis.size - 1) * axis.input_dilation + reach - stretched - pad if axis.size else 0
    return StridedAxis(
        size=axis.out,
        kernel=axis.kernel,
        stride=axis.input_dilation,
        dilation=axis.dilation,
        pad_lo=pad,
        pad_hi=behind,
        out=axis.size,
        input_dilation=axis.stride,
    )
