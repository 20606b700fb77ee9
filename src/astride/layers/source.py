"""Where a data layer's batches come from: whatever answers these three questions."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..backends.protocol import Array
from ..errors import ArrayError
from ..plan import Shape


class Source(Protocol):
    """Samples in an order that is the source's own, without an end."""

    def shapes(self) -> tuple[Shape, ...]:
        """The shape of one sample for each top: ((1, 28, 28), ()) for small images and their labels."""
        ...

    def batch(self, size: int) -> tuple[Array, ...]:
        """The next `size` samples, one array (size, *sample) for each top. After the last sample comes the first."""
        ...

    def reset(self, position: int = 0) -> None:
        """Go on as if `position` samples had been drawn since the beginning."""
        ...


@runtime_checkable
class Chance(Protocol):
    """A source that leaves something to chance, which follows from a seed."""

    def reseed(self, seed: int) -> None:
        """Let chance follow from another seed."""
        ...


class ArraySource:
    """Arrays of equal length, in their own order, round and round: Caffe's MemoryData. The arrays are not copied."""

    def __init__(self, *arrays: Any) -> None:
        self.arrays = tuple(np.asarray(a) for a in arrays)
        lengths = [a.shape[0] if a.ndim else 0 for a in self.arrays]
        if not lengths or min(lengths) < 1 or len(set(lengths)) != 1:
            raise ArrayError(
                "a source needs arrays of one length, at least 1",
                given={f"array {i}": a for i, a in enumerate(self.arrays)},
                required=f"equal first sizes: {lengths}",
            )
        self.position = 0

    def __len__(self) -> int:
        return int(self.arrays[0].shape[0])

    def shapes(self) -> tuple[Shape, ...]:
        return tuple(a.shape[1:] for a in self.arrays)

    def batch(self, size: int) -> tuple[Array, ...]:
        begin, end = self.position, self.position + size
        self.position = end % len(self)
        if end <= len(self):
            return tuple(a[begin:end] for a in self.arrays)
        places = np.arange(begin, end) % len(self)
        return tuple(a[places] for a in self.arrays)

    def reset(self, position: int = 0) -> None:
        self.position = position % len(self)
