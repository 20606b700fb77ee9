"""Images at another size: each output row, and then each column, is a weighted sum of a few of the input's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..plan import BroadcastPlan, LayoutPlan, Shape
from ..plan.dense import Function
from ..plan.layout import Move
from ..plan.norms import Along
from ._steps import Steps


@dataclass(frozen=True, eq=False)
class Taps:
    """Along one axis: `places[k][i]` and `weights[k][i]` say what the k-th part of output i is; no weights stand for ones."""

    places: Sequence[npt.NDArray[np.int64]]
    weights: Sequence[npt.NDArray[Any]] | None = None

    def __len__(self) -> int:
        return len(self.places[0])


def resample(steps: Steps, x: Array, taps: Sequence[Taps], axis: int = 2) -> Array:
    """x with the axes from `axis` on resampled, the last one first, as those who write out the four corners do."""
    for a in reversed(range(axis, axis + len(taps))):
        x = _along(steps, x, taps[a - axis], a)
    return x


def _along(steps: Steps, x: Array, taps: Taps, axis: int) -> Array:
    take = LayoutPlan(dtype=x.dtype.name, move=Move.TAKE, axis=axis)
    if taps.weights is None:
        return steps.run(take, x, taps.places[0])
    weigh = BroadcastPlan(dtype=x.dtype.name, function=Along.MULTIPLY, axis=axis)
    total: Array | None = None
    for places, weights in zip(taps.places, taps.weights, strict=True):
        part = steps.run(weigh, steps.run(take, x, places), weights.astype(x.dtype))
        total = part if total is None else steps.apply(Function.ADD, total, part)
    assert total is not None
    return total


def nearest(size: int, out: int, factor: int) -> Taps:
    """Every value `factor` times."""
    return Taps([np.repeat(np.arange(size), factor)[:out]])


def corners_aligned(size: int, out: int, *, first: int = 0, nearest: bool = False) -> Taps:
    """Linear or the nearest, the first and last output on the first and last input; computed in float32, as Caffe's forks do.

    The `size` inputs begin at `first`.
    """
    if size == out:
        return Taps([first + np.arange(size)])
    ratio = np.float32(size - 1) / np.float32(out - 1) if out > 1 else np.float32(0)
    at = ratio * np.arange(out, dtype=np.float32)
    return Taps([first + np.floor(at + 0.5).astype(np.int64)]) if nearest else _linear(at, size, first)


def from_zero(size: int, out: int, ratio: float) -> Taps:
    """Linear, output i at i * ratio; beyond the last input there is nothing, so its weight is missing."""
    taps = _linear(np.float32(ratio) * np.arange(out, dtype=np.float32), size, 0)
    assert taps.weights is not None
    inside = taps.places[0] + 1 < size
    return Taps(taps.places, [taps.weights[0], np.where(inside, taps.weights[1], np.float32(0))])


def _linear(at: npt.NDArray[np.float32], size: int, first: int) -> Taps:
    low = np.minimum(at.astype(np.int64), size - 1)
    upper = (at - low).astype(np.float32)
    return Taps([first + low, first + np.minimum(low + 1, size - 1)], [np.float32(1) - upper, upper])


def four_axes(shape: Shape, because: str) -> None:
    """Raise ArgumentError unless it is a batch of images with pixels."""
    if len(shape) != 4 or min(shape[2:]) < 1:
        raise ArgumentError(
            "images have four axes, and at least a pixel",
            given={"bottom": shape},
            required=f"(N, C, H, W) with H, W >= 1: {shape}",
            because=because,
        )
