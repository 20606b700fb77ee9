"""Samples one at a time in an endless sequence that depends on nothing but the seed: what sources of files have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ArgumentError, ArrayError
from ..plan import Shape

Array = npt.NDArray[Any]


class Samples:
    """A Source over numbered samples. Subclasses say how many there are and what one is.

    shuffle     each epoch in an order of its own
    rand_skip   begin at a place below this, left to chance

    What is left to chance follows from the seed and a sample's place in the sequence, so that `reset` finds it again.
    """

    def __init__(self, *, shuffle: bool = False, rand_skip: int = 0) -> None:
        self.shuffle, self.rand_skip = shuffle, rand_skip
        self.position = 0
        self._epoch = -1
        self._order: npt.NDArray[np.int64] = np.arange(0)
        self.reseed(0)

    def __len__(self) -> int:
        raise NotImplementedError

    def sample(self, place: int, random: np.random.Generator) -> Sequence[Array]:
        """The parts of the sample of that number."""
        raise NotImplementedError

    def reseed(self, seed: int) -> None:
        """Let chance follow from another seed."""
        self.seed = seed
        self._epoch = -1
        self._skip = int(np.random.default_rng([seed, 0]).integers(self.rand_skip)) if self.rand_skip else 0

    def shapes(self) -> tuple[Shape, ...]:
        return tuple(part.shape for part in self._at(0))

    def batch(self, size: int) -> tuple[Array, ...]:
        """The next samples. Raises ArrayError where they are of different sizes."""
        drawn = [self._at(self.position + k) for k in range(size)]
        self.position += size
        return tuple(self.stacked(parts) for parts in zip(*drawn, strict=True))

    def reset(self, position: int = 0) -> None:
        self.position = position

    def _at(self, position: int) -> Sequence[Array]:
        count = len(self)
        if self._skip >= count:
            raise ArgumentError(
                "there are not enough samples" if count else "there are no samples",
                given={"samples": count, "rand_skip": self.rand_skip},
                required=f"samples > {self._skip}: {count}",
                hint="rand_skip: 0" if count else "another source",
            )
        epoch, place = divmod(position + self._skip, count)
        if self.shuffle:
            if epoch != self._epoch:
                self._order = np.random.default_rng([self.seed, 1, epoch]).permutation(count)
                self._epoch = epoch
            place = int(self._order[place])
        return self.sample(place, np.random.default_rng([self.seed, 2, position]))

    @staticmethod
    def stacked(parts: Sequence[Array]) -> Array:
        """One array of arrays of one shape."""
        if len({part.shape for part in parts}) > 1:
            raise ArrayError(
                "samples of one batch have different sizes",
                given={"shapes": sorted({part.shape for part in parts})[:4]},
                required="one shape",
                because="Caffe, src/caffe/data_transformer.cpp",
                hint="crop_size, or new_height and new_width; or batch_size: 1",
            )
        return np.stack(parts)
