"""A row of windows cut into tiles: runs of neighbouring windows whose taps are written out in the code, edges and all.

A tile knows where the taps of each of its windows lie, in pixels from the tile's own first one, and their numbers. Tiles inside
a row are alike, those at its ends have windows with taps outside; where the input is stretched, neighbours have other taps.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...plan import StridedAxis
from .edges import taps_inside

Numbers = NDArray[np.int64]

Tile = tuple[tuple[tuple[int, int], ...], ...]
"""For each window the pixel and the number of every tap inside."""

RUN = 6
"""Numbers of a run of equal tiles: which one, how many, the first pixel of the first and from there to the next, the first window
of the first and from there to the next."""

CALL = 2
"""Windows that could be computed in the time a tile takes before its first and after its last."""

NEW = 4
"""Windows that one more piece of code must save."""


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """The different tiles of a row, and its runs (n, RUN)."""

    tiles: tuple[Tile, ...]
    runs: Numbers

    @property
    def taps(self) -> int:
        """Taps that are written out."""
        return sum(len(window) for tile in self.tiles for window in tile)


@lru_cache(maxsize=512)
def row_of(axis: StridedAxis, most: int, *, overlap: bool) -> Row:
    """A row cut into tiles of at most so many windows; with `overlap` the last is as wide as the others and begins earlier."""
    widths = range(min(most, axis.out), 0, -1) if axis.out <= most else range(most, most // 2, -1)
    return min((_cut(axis, width, overlap) for width in widths), key=_cost) if axis.out else Row((), np.zeros((0, RUN), np.int64))


def _cost(row: Row) -> int:
    windows = sum(int(count) * (len(row.tiles[which]) + CALL) for which, count in row.runs[:, :2])
    return windows + NEW * len(row.tiles)


def _cut(axis: StridedAxis, width: int, overlap: bool) -> Row:
    """Tiles of `width` windows."""
    taps = taps_inside(axis)
    there = taps.count > 0
    first, number = np.where(there, taps.pixel, 0), np.where(there, taps.number, 0)
    starts = np.arange(0, axis.out, width)
    if overlap:
        starts = np.minimum(starts, axis.out - width)
    here = starts[:, None] + np.arange(width)
    inside = here < axis.out
    here = np.minimum(here, axis.out - 1)
    base = np.where(inside & there[here], first[here], axis.size).min(1)
    base = np.where(base == axis.size, 0, base)
    columns = [np.where(there[here], first[here] - base[:, None], 0), number[here], np.where(inside, taps.count[here], -1)]
    keys, which = np.unique(np.stack(columns, 2).reshape(len(starts), -1), axis=0, return_inverse=True)
    tiles = tuple(_tile(key.reshape(-1, 3).tolist(), taps.step, taps.skip) for key in keys)
    return Row(tiles, _runs(which.ravel(), base, starts))


def _tile(windows: list[list[int]], step: int, skip: int) -> Tile:
    return tuple(
        tuple((pixel + step * k, number + skip * k) for k in range(count)) for pixel, number, count in windows if count >= 0
    )


def _runs(which: Numbers, pixels: Numbers, windows: Numbers) -> Numbers:
    """Tiles one after the other as runs of equal ones at constant distances."""
    found: list[list[int]] = []
    for one, pixel, window in zip(which.tolist(), pixels.tolist(), windows.tolist(), strict=True):
        if found and found[-1][0] == one:
            last = found[-1]
            steps = [pixel - (last[2] + last[3] * (last[1] - 1)), window - (last[4] + last[5] * (last[1] - 1))]
            if last[1] == 1 or steps == [last[3], last[5]]:
                last[1], last[3], last[5] = last[1] + 1, *steps
                continue
        found.append([one, 1, pixel, 0, window, 0])
    return np.array(found, np.int64).reshape(-1, RUN)
