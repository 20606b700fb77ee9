"""What the demonstration has to show, as plain arrays: gathered by `demo.py`, drawn by `picture.py`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class Course:
    """How the training went."""

    losses: Floats
    tests: tuple[tuple[int, float], ...]
    seconds: float
    trained_on: int
    tested_on: int

    @property
    def accuracy(self) -> float:
        """The last test's."""
        return self.tests[-1][1]


@dataclass(frozen=True, eq=False)
class Way:
    """One digit's way through the net: maps (C, H, W), scores (10,)."""

    image: Floats
    label: int
    conv1: Floats
    pool1: Floats
    conv2: Floats
    pool2: Floats
    scores: Floats


@dataclass(frozen=True, eq=False)
class Routing:
    """A part of one feature map, its pooled values, the gradient that reaches those, and where it goes."""

    channel: int
    corner: tuple[int, int]
    values: Floats
    pooled: Floats
    pooled_gradient: Floats
    gradient: Floats


@dataclass(frozen=True, eq=False)
class Guesses:
    """Held-out digits and what the reloaded net says they are."""

    images: Floats
    labels: npt.NDArray[np.int64]
    predictions: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Story:
    """Everything in the picture."""

    course: Course
    kernels: Floats
    way: Way
    routing: Routing
    guesses: Guesses


def lively(maps: Floats, count: int = 6) -> list[int]:
    """The maps in which most happens, in their own order."""
    return sorted(np.argsort(-maps.std(axis=(1, 2)), kind="stable")[:count].tolist())
