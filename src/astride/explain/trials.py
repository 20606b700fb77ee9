"""Two ways of computing one thing, run beside each other on inputs that frameworks treat differently."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ..errors import AstrideError
from .steps import Array, Computed

Run = Callable[[Array, "Array | None", "Array | None"], Computed]
"""(x, w, dy) -> what comes out."""

TOLERANCE = 1e-9
SHOWN = 8
"""Places of one difference that are kept."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two results differ first, both values there, and in how many places."""

    place: tuple[int, ...]
    source: float
    target: float
    count: int
    of: int


@dataclass(frozen=True, slots=True)
class Trial:
    """One input. None is no difference; `gradient_asked` tells whether gradients were compared."""

    name: str
    forward: Difference | None
    gradient: Difference | None
    gradient_asked: bool

    @property
    def equal(self) -> bool:
        return self.forward is None and self.gradient is None


def inputs(shape: tuple[int, ...], *, pooling: bool, seed: int = 0) -> Iterator[tuple[str, Array]]:
    """Inputs by what is special about them."""
    rng = np.random.default_rng(seed)
    x = rng.permutation(np.linspace(-1, 1, int(np.prod(shape)))).reshape(shape)
    yield "distinct numbers", x
    yield "all negative", x - 2
    if pooling:
        yield "ties", rng.integers(0, 3, shape).astype(np.float64)
        yield "zeros", np.zeros(shape)
    yield "NaN", np.where(rng.random(shape) < 0.15, np.nan, x)
    infinite = np.where(rng.random(shape) < 0.3, -np.inf, x)
    infinite[..., : max(shape[-1] // 2, 1)] = -np.inf
    yield "-infinity", infinite


def difference(ours: Array, theirs: Array) -> Difference | None:
    """None where two arrays of one shape are equal within rounding, NaN equal to NaN."""
    same = np.isclose(ours, theirs, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True) & (np.isnan(ours) == np.isnan(theirs))
    if same.all():
        return None
    place = tuple(int(i) for i in np.argwhere(~same)[0])
    return Difference(place, float(ours[place]), float(theirs[place]), int((~same).sum()), same.size)


def same_values(source: Run, target: Run, shape: tuple[int, ...], w: Array | None, *, positive: bool = False) -> bool:
    """Whether two runs agree on ordinary numbers, of either sign unless `positive`."""
    for name, x in inputs(shape, pooling=False):
        if name not in ("distinct numbers", "all negative"):
            continue
        try:
            ours, theirs = source(abs(x) if positive else x, w, None).y, target(abs(x) if positive else x, w, None).y
        except AstrideError:
            return False
        if ours.shape != theirs.shape or not _equal(ours, theirs):
            return False
    return True


def _equal(ours: Array, theirs: Array) -> bool:
    return difference(ours, theirs) is None


def tried(
    source: Run, target: Run, shape: tuple[int, ...], w: Array | None, *, gradients: bool, pooling: bool
) -> tuple[Trial, ...]:
    """Every input, forward and, where asked, back. dy are whole numbers, so that sums are exact."""
    found = []
    for name, x in inputs(shape, pooling=pooling):
        dy = None
        ours, theirs = source(x, w, None), target(x, w, None)
        forward, gradient = difference(ours.y, theirs.y), None
        if gradients:
            dy = np.random.default_rng(1).integers(1, 5, ours.y.shape).astype(np.float64)
            ours, theirs = source(x, w, dy), target(x, w, dy)
            assert ours.dx is not None and theirs.dx is not None
            gradient = difference(ours.dx, theirs.dx)
            if gradient is None and ours.dw is not None and theirs.dw is not None:
                gradient = difference(ours.dw, theirs.dw)
        found.append(Trial(name, forward, gradient, gradients))
    return tuple(found)
