"""Blobs: the named arrays between layers. Each has data and a gradient, diff, of one shape.

A blob keeps its memory when it is reshaped: views of a smaller shape lie at the start of the same memory, and only a
shape that does not fit makes new memory. Memory is made at the first look, so that a network can be planned and
refused before any of it exists.
"""

from __future__ import annotations

import math
import operator
from typing import Any, Protocol

import numpy as np

from ..backends.protocol import Array
from ..errors import ArgumentError
from ..plan import Shape

MAX_AXES = 32
MAX_COUNT = 2**31 - 1
"""Caffe's limits: its sizes and indices are C ints."""


class Elsewhere(Protocol):
    """What memory has besides this machine's own: a device's copy, which may be newer."""

    newer: bool

    def to_host(self, array: Array) -> None:
        """Bring the array up to date; whoever asked may write to it."""


class Store:
    """One-dimensional memory that only grows; several blobs may hold the same one. `mirror` is its copy on a device."""

    __slots__ = ("array", "dtype", "mirror")

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.array: Array | None = None
        self.mirror: Elsewhere | None = None

    @property
    def used(self) -> bool:
        """False while nobody has looked, so that it takes no memory and is all zeros."""
        return self.array is not None or (self.mirror is not None and self.mirror.newer)

    def view(self, shape: Shape, count: int) -> Array:
        if self.array is None or self.array.size < count:
            self.array = np.zeros(count, self.dtype)
        if self.mirror is not None:
            self.mirror.to_host(self.array)
        return self.array[:count].reshape(shape)


class Blob:
    """An array and its gradient. `data` and `diff` are live, writable views of the memory; they outlive the network."""

    def __init__(self, shape: Shape = (), dtype: str = "float32") -> None:
        self.dtype = dtype
        self._data = Store(dtype)
        self._diff = Store(dtype)
        self.shape: Shape = ()
        self.count = 1
        self.reshape(*shape)

    @property
    def data(self) -> Array:
        return self._data.view(self.shape, self.count)

    @property
    def diff(self) -> Array:
        return self._diff.view(self.shape, self.count)

    @property
    def has_diff(self) -> bool:
        """False while nobody has looked at diff, so that it takes no memory and is all zeros."""
        return self._diff.used

    def reshape(self, *shape: int | Shape) -> None:
        """Another shape, the memory kept where it is large enough. Raises ArgumentError: a size or count no blob can have."""
        sizes: Any = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
        try:
            sizes = tuple(operator.index(n) for n in sizes)
        except TypeError:
            raise ArgumentError(
                "a shape is made of whole numbers",
                given={"shape": shape},
                required=f"an int for each axis: {sizes}",
                hint="reshape(1, 3, 224, 224)",
            ) from None
        if sizes == self.shape:
            return
        count = math.prod(sizes)
        if len(sizes) > MAX_AXES or any(n < 0 for n in sizes) or count > MAX_COUNT:
            raise ArgumentError(
                "no blob has such a shape",
                given={"shape": sizes},
                required=f"at most {MAX_AXES} axes, none negative, and product <= 2^31 - 1: {count}",
                because="Caffe, src/caffe/blob.cpp, counts in C ints",
            )
        self.shape, self.count = sizes, count

    def share(self, other: Blob, *, data: bool = True, diff: bool = False) -> None:
        """Use the other blob's memory: what is written to one is read from both."""
        if data:
            self._data = other._data
        if diff:
            self._diff = other._diff

    def hold(self, array: Array) -> None:
        """Use this array, C-contiguous and of the blob's dtype, as the memory of data; a read-only one freezes the blob."""
        if array.dtype.name != self.dtype or not array.flags.c_contiguous:
            raise ArgumentError(
                "a blob holds contiguous memory of its dtype",
                given={"array": array},
                required=f"dtype == {self.dtype}, C-contiguous",
                hint=f"numpy.ascontiguousarray(array, {self.dtype!r})",
            )
        self.reshape(*array.shape)
        self._data = Store(self.dtype)
        self._data.array = array.reshape(-1)

    def memory(self) -> tuple[Store, Store]:
        """What stands for the memory of data and of diff: blobs that share have the same objects."""
        return self._data, self._diff

    def legacy(self, index: int) -> int:
        """A size of the old four-dimensional view: 0 to 3 are num, channels, height, width; axes that are missing are 1."""
        if len(self.shape) > 4:
            raise ArgumentError(
                "a blob of more than four axes has no num, channels, height and width",
                given={"shape": self.shape},
                hint="blob.shape",
            )
        return self.shape[index] if index < len(self.shape) else 1

    @property
    def num(self) -> int:
        return self.legacy(0)

    @property
    def channels(self) -> int:
        return self.legacy(1)

    @property
    def height(self) -> int:
        return self.legacy(2)

    @property
    def width(self) -> int:
        return self.legacy(3)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype!r})"
