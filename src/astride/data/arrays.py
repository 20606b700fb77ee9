"""Batches from arrays in memory, shuffled by a seed. In the arrays' own order they come from `layers.source.ArraySource`.

The samples form one endless sequence, epoch after epoch, that depends on nothing but the seed. So a run that is restored
finds its place again (`reset(position)`), and two runs see the same batches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ArgumentError
from ..layers.source import ArraySource

Array = npt.NDArray[Any]
Augment = Callable[[Array, np.random.Generator], Array]


class ShuffledSource(ArraySource):
    """Arrays of equal length: each epoch is a permutation of its own, made from the seed and the epoch's number.

    `augment(images, rng)` gets a copy of the first array's batch and a generator made from the seed and the batch's place in
    the sequence, and returns what to use in its stead, of the same shape.
    """

    def __init__(self, *arrays: Any, seed: int, augment: Augment | None = None) -> None:
        super().__init__(*arrays)
        if seed < 0:
            raise ArgumentError("a seed counts from 0", given={"seed": seed}, required=f"seed >= 0: {seed}", hint="seed=0")
        self.seed, self.augment = seed, augment
        self._epoch = -1
        self._order: npt.NDArray[np.int64] = np.arange(0)

    def batch(self, size: int) -> tuple[Array, ...]:
        """The next `size` samples, all arrays fresh."""
        chosen = np.array([self._sample(index) for index in range(self.position, self.position + size)], dtype=np.int64)
        first, *others = (array[chosen] for array in self.arrays)
        if self.augment is not None:
            first = self.augment(first, np.random.default_rng([self.seed, self.position, 1]))
        self.position += size
        return first, *others

    def reset(self, position: int = 0) -> None:
        """Go on as if `position` samples had been drawn since the beginning; epochs differ, so it is not taken modulo one."""
        self.position = position

    def _sample(self, index: int) -> int:
        epoch, place = divmod(index, len(self))
        if epoch != self._epoch:
            self._order = np.random.default_rng([self.seed, epoch, 0]).permutation(len(self))
            self._epoch = epoch
        return int(self._order[place])
