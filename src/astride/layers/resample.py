"""Resample: images at another size, by a filter."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..backends.protocol import Array
from ..errors import ArgumentError
from ._composed import Composed
from ._resampling import Taps, four_axes, resample
from ._steps import Steps
from .layer import Blobs

SOURCE = "FlowNet's Caffe, src/caffe/layers/resample_layer.cu"
Values = npt.NDArray[Any]


class Filter(StrEnum):
    """The weight of an input at a distance."""

    NEAREST = "nearest"
    LINEAR = "linear"
    CUBIC = "cubic"


class Resample(Composed):
    """Each output is the weighted mean of the inputs around its place; weights are a triangle, or a cubic with a = -1/2.

    Where an axis shrinks and `antialias` is set, the filter widens by the ratio. Output i of n lies at
    i * own ratio + other axis's ratio / 2 - 1/2. The size is `size`, or that of a second bottom.

    Quirks      half of the other axis's ratio, where the axis's own would be expected: so it is in FlowNet. Its layer has no
                gradient; here it is the exact adjoint. A second bottom has none
    Source      FlowNet's Caffe, src/caffe/layers/resample_layer.cpp and resample_layer.cu
    """

    type = "Resample"
    bottoms: ClassVar[tuple[int, int | None]] = (1, 2)

    def __init__(self, *, filter: Filter = Filter.LINEAR, size: tuple[int, int] | None = None, antialias: bool = True) -> None:
        super().__init__()
        self.filter, self.size, self.antialias = filter, size, antialias

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        shape = bottom[0].shape
        four_axes(shape, SOURCE)
        size = bottom[1].shape[2:] if len(bottom) > 1 else (self.size or (0, 0))
        if len(size) != 2 or min(size) < 1:
            raise ArgumentError(
                "the top has no size",
                given={"height, width": self.size, "bottoms": tuple(b.shape for b in bottom)},
                required="height >= 1 and width >= 1, or a second bottom of that size",
                because=SOURCE,
                hint="resample_param { width: 64 height: 48 }",
            )
        top[0].reshape(*shape[:2], *size)
        self._top_size = size

    def compose(self, steps: Steps, *arrays: Array) -> Array:
        x = arrays[0]
        ratios = [n / out for n, out in zip(x.shape[2:], self._top_size, strict=True)]
        shrinks = self.antialias and max(ratios) > 1
        taps = [
            self._taps(n, out, own, other, shrinks)
            for n, out, own, other in zip(x.shape[2:], self._top_size, ratios, reversed(ratios), strict=True)
        ]
        return resample(steps, x, taps)

    def _taps(self, size: int, out: int, own: float, other: float, shrinks: bool) -> Taps:
        at = np.arange(out) * own + other / 2 - 0.5
        middle = np.floor(np.abs(at) + 0.5).astype(np.int64) * np.where(at < 0, -1, 1)
        if self.filter is Filter.NEAREST:
            return Taps([np.clip(middle, 0, size - 1)])
        shape, width = SHAPES[self.filter]
        narrow = 1 / own if shrinks else 1.0
        reach = 2 if own < 1 else int(np.ceil(width / narrow))
        places = [middle + k for k in range(-reach, reach + 1)]
        inside = [(p >= 0) & (p < size) for p in places]
        weights = [np.where(i, shape(narrow * (at - p)), 0.0) for p, i in zip(places, inside, strict=True)]
        total = np.sum(weights, axis=0)
        total = np.where(total == 0, 1.0, total)
        return Taps([np.clip(p, 0, size - 1) for p in places], [w / total for w in weights])

    def allow_force_backward(self, index: int) -> bool:
        return index == 0


def _triangle(x: Values) -> Values:
    curve: Values = np.maximum(1 - np.abs(x), 0)
    return curve


def _cubic(x: Values) -> Values:
    x = np.abs(x)
    near, far = x * x * (1.5 * x - 2.5) + 1, x * (x * (-0.5 * x + 2.5) - 4) + 2
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


SHAPES: dict[Filter, tuple[Callable[[Values], Values], int]] = {Filter.LINEAR: (_triangle, 2), Filter.CUBIC: (_cubic, 4)}
"""Each filter's curve, and the width it is said to have."""
