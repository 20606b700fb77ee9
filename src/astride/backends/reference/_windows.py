"""Which pixel each tap of each window reads: index arithmetic shared by the rungs of the ladder.

Two views of the same relation. `place` is one window and its taps, for loops over positions; `taps` is one tap
and all windows it belongs to, as strided slices, for whole-array steps. Taps outside the input are absent from both,
found by arithmetic and not by trying each, so that a kernel far larger than the input costs what the input does;
an edge mode that reads something there is brought in by `extension`, which grows the input first.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...plan import Axis, ExplicitAxis, Shape, StridedAxis
from ...plan.kinds import Edge, Layout
from ...settings import refuse_beyond_memory
from ..protocol import Array

Indices = NDArray[np.int64]
Selection = slice | Indices
EVERY: Any = slice(None)


@dataclass(frozen=True, slots=True, eq=False)
class Tap:
    """One place of the kernel: its offset in the window, the windows that have it, and the pixels they read."""

    offset: int
    windows: tuple[Any, ...]
    pixels: tuple[Any, ...]
    distinct: bool
    """Whether no pixel is read twice, so that `+=` through `pixels` is safe."""

    def read(self, x: Array) -> Array:
        """The tap's pixel for every window that has it; x (..., *size)."""
        return x[(..., *self.pixels)]

    def of(self, y: Array) -> Array:
        """The part of a per-window array (..., *out) that belongs to windows with this tap."""
        return y[(..., *self.windows)]

    def put(self, y: Array, values: Array) -> None:
        y[(..., *self.windows)] = values

    def add(self, dx: Array, values: Array) -> None:
        """Add to the pixels this tap reads, (..., *size)."""
        if self.distinct:
            dx[(..., *self.pixels)] += values
        else:
            np.add.at(dx, (..., *self.pixels), values)


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """One window: the offsets of its taps inside the input, and the pixels they read, one index array per axis."""

    window: tuple[Any, ...]
    offsets: Indices
    pixels: tuple[Any, ...]


@lru_cache(maxsize=512)
def taps(axes: tuple[Axis, ...]) -> tuple[Tap, ...]:
    """Every place of the kernel that some window has inside the input, in row-major order."""
    strides = _row_major(tuple(axis.kernel for axis in axes))
    result = []
    for chosen in itertools.product(*map(_taps_of_axis, axes)):
        offset = sum(k * stride for (k, _, _), stride in zip(chosen, strides, strict=True))
        windows, pixels = tuple(w for _, w, _ in chosen), tuple(p for _, _, p in chosen)
        distinct = all(isinstance(p, slice) or len(np.unique(p)) == len(p) for p in pixels)
        result.append(Tap(offset, _index(windows, axes), _index(pixels, axes), distinct))
    return tuple(result)


def places(axes: tuple[Axis, ...]) -> Iterator[Place]:
    """Every window in row-major order."""
    return (place(axes, window) for window in np.ndindex(*(axis.out for axis in axes)))


def place(axes: tuple[Axis, ...], window: tuple[int, ...]) -> Place:
    """One window and its taps inside the input."""
    per_axis = [_inside(axis, i) for axis, i in zip(axes, window, strict=True)]
    offsets, pixels = [], []
    strides = _row_major(tuple(axis.kernel for axis in axes))
    for combination in itertools.product(*per_axis):
        offsets.append(sum(k * stride for (k, _), stride in zip(combination, strides, strict=True)))
        pixels.append([pixel for _, pixel in combination])
    columns = np.array(pixels, np.int64).reshape(len(pixels), len(axes))
    return Place(window, np.array(offsets, np.int64), tuple(columns[:, a] for a in range(len(axes))))


def counts_inside(axis: Axis) -> Indices:
    """How many taps of each window lie inside the input, along one axis."""
    if isinstance(axis, ExplicitAxis):
        return np.array(axis.ends, np.int64) - np.array(axis.starts, np.int64)
    if axis.input_dilation == 1:
        return counts_between(axis, 0, axis.size)
    total = np.zeros(axis.out, np.int64)
    for _, windows, _ in _taps_of_axis(axis):
        total[windows] += 1
    return total


def counts_between(axis: StridedAxis, lo: int, hi: int) -> Indices:
    """How many taps of each window lie at positions in [lo, hi), along one axis."""
    first, last = (_taps_before(axis, position) for position in (lo, hi))
    return last - first


def _taps_before(axis: StridedAxis, position: int) -> Indices:
    """How many taps of each window lie before a position."""
    start = np.arange(axis.out, dtype=np.int64) * axis.stride - axis.pad_lo
    return np.clip(-((start - position) // axis.dilation), 0, axis.kernel)


def everywhere_inside(axes: tuple[Axis, ...]) -> bool:
    """True where no window has a tap outside the input."""
    return all(bool((counts_inside(axis) == axis.kernel).all()) for axis in axes)


def as_channels_first(array: Array, layout: Layout) -> Array:
    """A view (N, C, *size)."""
    return array if layout is Layout.CHANNELS_FIRST else np.moveaxis(array, -1, 1)


def as_channels_last(array: Array, layout: Layout) -> Array:
    """A view (N, *size, C)."""
    return array if layout is Layout.CHANNELS_LAST else np.moveaxis(array, 1, -1)


def empty_like_layout(shape: Shape, dtype: Any, layout: Layout) -> tuple[Array, Array]:
    """Zeros, C-contiguous in their layout, and their (N, C, *size) view; `shape` is that of the layout."""
    array: Array = np.zeros(shape, dtype)
    return array, as_channels_first(array, layout)


@dataclass(frozen=True, slots=True, eq=False)
class Extension:
    """An input grown so that no window leaves it, and the way gradients return to the input."""

    axes: tuple[Axis, ...]
    sizes: Shape
    sources: tuple[Indices, ...] | None
    """Per axis, the pixel each place of the grown input shows, -1 for the constant; None where nothing was grown."""

    def grow(self, x: Array, value: float) -> Array:
        """x (N, C, *size) -> (N, C, *grown). Raises ArgumentError: it is larger than the memory that is free."""
        if self.sources is None:
            return x
        shape = (*x.shape[:2], *map(len, self.sources))
        refuse_beyond_memory(
            "the input with its padding", shape, x.dtype.name, x.dtype.itemsize, "less padding or a smaller kernel"
        )
        for a, source in enumerate(self.sources):
            if not x.shape[a + 2]:  # no pixel to show anywhere
                x = np.zeros((*x.shape[: a + 2], len(source), *x.shape[a + 3 :]), x.dtype)
            else:
                x = np.take(x, np.maximum(source, 0), axis=a + 2)
            outside = (EVERY,) * (a + 2) + (source < 0,)
            x[outside] = value
        return x

    def fold(self, grown: Array) -> Array:
        """The adjoint of `grow`: gradients of repeated pixels summed, those of the constant dropped."""
        if self.sources is None:
            return grown
        for a, source in enumerate(self.sources):
            moved = np.moveaxis(grown, a + 2, 0)
            folded = np.zeros((self.sizes[a], *moved.shape[1:]), moved.dtype)
            inside = source >= 0
            np.add.at(folded, source[inside], moved[inside])
            grown = np.moveaxis(folded, 0, a + 2)
        return grown


class PixelGradient:
    """dx being summed: at the input's own size in its own memory where that will do, else grown or in a wider dtype."""

    def __init__(self, shape: Shape, dtype: np.dtype[Any], layout: Layout, grown: Extension, accumulate: str) -> None:
        self._dx, self._view = empty_like_layout(shape, dtype, layout)
        self._grown = grown
        wide = np.result_type(np.dtype(accumulate), dtype) if dtype.kind == "f" else np.dtype(accumulate)
        self.total: Array = self._view
        if grown.sources is not None or wide != dtype:
            self.total = np.zeros((*self._view.shape[:2], *(axis.size for axis in grown.axes)), wide)

    def finish(self) -> Array:
        """The gradient in the input's layout and dtype."""
        if self.total is not self._view:
            self._view[...] = self._grown.fold(self.total)
        return self._dx


@lru_cache(maxsize=512)
def extension(axes: tuple[Axis, ...], edge: Edge) -> Extension:
    """How to grow an input of these axes for an edge mode; nothing for SKIP."""
    sizes = tuple(axis.size for axis in axes)
    if edge is Edge.SKIP:
        return Extension(axes, sizes, None)
    grown, sources = [], []
    for axis in axes:
        assert isinstance(axis, StridedAxis)
        lo = max(axis.pad_lo, 0)
        hi = max(axis.start(axis.out - 1) + axis.reach - axis.size, 0) if axis.out else 0
        length = (axis.size + lo + hi,)
        refuse_beyond_memory("the input with its padding", length, "int64", 8, "less padding or a smaller kernel")
        grown.append(replace(axis, size=axis.size + lo + hi, pad_lo=axis.pad_lo - lo, pad_hi=min(axis.pad_hi - hi, 0)))
        sources.append(_source(np.arange(-lo, axis.size + hi), axis.size, edge))
    return Extension(tuple(grown), sizes, tuple(sources))


def _source(position: Indices, size: int, edge: Edge) -> Indices:
    """The pixel an edge mode shows at positions that may lie outside [0, size)."""
    if edge is Edge.CLAMP:
        return np.clip(position, 0, size - 1)
    if edge is Edge.WRAP:
        return position % size
    if edge is Edge.MIRROR:
        period = max(2 * (size - 1), 1)
        folded = np.abs(position) % period
        return np.minimum(folded, period - folded) if size > 1 else np.zeros_like(position)
    if edge is Edge.MIRROR_EDGE:
        folded = position % (2 * size)
        return np.minimum(folded, 2 * size - 1 - folded)
    return np.where((position >= 0) & (position < size), position, -1)


def _inside(axis: Axis, window: int) -> list[tuple[int, int]]:
    """(place in the kernel, pixel) of the taps of one window inside the input."""
    step = axis.input_dilation if isinstance(axis, StridedAxis) else 1
    positions = axis.taps(window)
    first, last = bisect_left(positions, 0), bisect_left(positions, axis.stretched)
    return [(k, positions[k] // step) for k in range(first, last) if positions[k] % step == 0]


def _taps_of_axis(axis: Axis) -> list[tuple[int, Selection, Selection]]:
    """(place in the kernel, windows, pixels) of the taps that some window has inside the input, along one axis."""
    every = ((k, *_tap_of_axis(axis, k)) for k in _places_of_axis(axis))
    return [(k, windows, pixels) for k, windows, pixels in every if not _is_empty(windows)]


def _is_empty(windows: Selection) -> bool:
    return windows.start == windows.stop if isinstance(windows, slice) else not len(windows)


def _places_of_axis(axis: Axis) -> Iterator[int]:
    """The places in the kernel at which some window may have a pixel, in order.

    Those of one window are a run, and runs move back as windows move on: the last window has the first.
    """
    if isinstance(axis, ExplicitAxis):
        yield from range(axis.kernel)
        return
    done = 0
    for first, last in zip(_taps_before(axis, 0)[::-1].tolist(), _taps_before(axis, axis.stretched)[::-1].tolist(), strict=True):
        yield from range(max(first, done), last)
        done = max(last, done)


def _tap_of_axis(axis: Axis, k: int) -> tuple[Selection, Selection]:
    """The windows that have tap k inside the input, and the pixels they read, along one axis."""
    if isinstance(axis, ExplicitAxis):
        starts, ends = np.array(axis.starts, np.int64), np.array(axis.ends, np.int64)
        windows = np.flatnonzero(starts + k < ends)
        return windows, starts[windows] + k
    position = np.arange(axis.out, dtype=np.int64) * axis.stride - axis.pad_lo + k * axis.dilation
    inside = (position >= 0) & (position < axis.stretched) & (position % axis.input_dilation == 0)
    windows = np.flatnonzero(inside)
    return _as_slice(windows), _as_slice(position[windows] // axis.input_dilation)


def _as_slice(indices: Indices) -> slice:
    """The slice equal to an arithmetic progression, which the windows and pixels of a strided tap always are."""
    if len(indices) == 0:
        return slice(0, 0)
    step = int(indices[1] - indices[0]) if len(indices) > 1 else 1
    return slice(int(indices[0]), int(indices[-1]) + 1, step)


def _index(per_axis: tuple[Selection, ...], axes: tuple[Axis, ...]) -> tuple[Any, ...]:
    """Slices as they are; where one axis needs an index array, all become arrays, so that NumPy takes their product."""
    if all(isinstance(s, slice) for s in per_axis):
        return per_axis
    arrays = [np.arange(s.start, s.stop, s.step) if isinstance(s, slice) else s for s in per_axis]
    return np.ix_(*arrays)


def _row_major(kernels: tuple[int, ...]) -> list[int]:
    strides = [1] * len(kernels)
    for a in range(len(kernels) - 2, -1, -1):
        strides[a] = strides[a + 1] * kernels[a + 1]
    return strides
