"""Of conv_few.py, how work is cut: columns in blocks of vectors, rows in groups with the same taps, an image in boxes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...plan import StridedAxis
from .contraction import LINE
from .conv_few_kernel import Variant
from .conv_relation import Relation
from .conv_windows import classes_of
from .edges import Taps, taps_inside
from .machine import machine
from .slots import MOST

ROWS = 4
"""Rows that are taken together, at most, where one has few vectors."""

MASKS = (0, 7)
"""Masks that cost little: those that have registers of their own, which the widest vectors have."""

UNITS = 8
"""Boxes of all images, at least, if there are rows enough."""

BYTES = 3 << 18
"""About as many bytes as a packed box has."""


@dataclass(frozen=True, slots=True)
class Size:
    """Rows that are taken together, and the vectors of each block of columns."""

    rows: int
    blocks: tuple[int, ...]


def most_taps(axes: tuple[StridedAxis, ...]) -> list[int]:
    """Taps that one window has along each axis, at most."""
    return [-(-axis.kernel * math.gcd(axis.dilation, axis.input_dilation) // axis.input_dilation) for axis in axes]


def lanes_of(relation: Relation) -> int:
    return relation.spec.lanes(machine())


def places_of(axis: StridedAxis) -> tuple[int, list[tuple[int, int]]]:
    """Of the taps along the width the pixel of column 0's leftmost; and for each how far it is right of that, and its phase."""
    phases = axis.input_dilation
    found = [((axis.pad_lo - k * axis.dilation) % phases, k) for k in range(axis.kernel)]
    pixels = [(p - axis.pad_lo + k * axis.dilation) // phases for p, k in found]
    start = min(pixels)
    return start, [(pixel - start, p) for pixel, (p, _) in zip(pixels, found, strict=True)]


@lru_cache(maxsize=512)
def size_of(relation: Relation) -> Size | None:
    """As many vectors as registers allow, and where rows are short several of these; None if not even one."""
    wide = relation.volume[2]
    shifts = [shift for shift, _ in places_of(wide)[1]]
    each, shared, fits = relation.outputs * wide.input_dilation, relation.outputs * max(map(shifts.count, shifts)), 0
    while (fits + 1) * each + min(fits + 1, shared) + 1 < machine().registers:
        fits += 1
    if not fits:
        return None
    whole = -(-wide.out // (wide.input_dilation * lanes_of(relation)))
    blocks = -(-whole // fits)
    rows = min(ROWS, fits // whole, max(classes_of(relation.volume[1]).windows, default=1)) if blocks == 1 else 1
    return Size(rows, tuple(whole * (k + 1) // blocks - whole * k // blocks for k in range(blocks)))


@lru_cache(maxsize=512)
def columns_of(relation: Relation) -> tuple[tuple[int, Variant], ...]:
    """Blocks of columns: the first one over phases, and the variant that computes it.

    Where few places are masked, that is as fast as none, and all blocks of a size are one variant.
    """
    size, wide, lanes = size_of(relation), relation.volume[2], lanes_of(relation)
    assert size is not None
    start, taps = places_of(wide)
    shifts, starts = sorted({shift for shift, _ in taps}), np.cumsum([0, *size.blocks]) * lanes
    blocks = []
    for at, vectors in zip(starts.tolist(), size.blocks, strict=False):
        first = {(shift, v): at + start + shift + v * lanes for shift in shifts for v in range(vectors)}
        masked = frozenset(key for key, pixel in first.items() if pixel < 0 or pixel + lanes > wide.size)
        blocks.append((at, vectors, masked, (at + vectors * lanes) * wide.input_dilation > wide.out))
    unions = {size: frozenset[tuple[int, int]]().union(*(b[2] for b in blocks if b[1] == size)) for size in set(size.blocks)}
    ragged = {size: any(b[3] for b in blocks if b[1] == size) for size in unions}
    most, found = MASKS[machine().vector_bytes >= 64], []
    for at, vectors, masked, behind in blocks:
        whole = len(unions[vectors]) > most and not masked and not behind
        variant = Variant(vectors, (), False) if whole else Variant(vectors, tuple(sorted(unions[vectors])), ragged[vectors])
        found.append((at, variant))
    return tuple(found)


Span = tuple[int, int]


def _span(taps: Taps, start: int, end: int) -> Span:
    """The pixels that windows from `start` to `end` read, from and to."""
    count, pixel = taps.count[start:end], taps.pixel[start:end]
    there = count > 0
    if not there.any():
        return 0, 0
    return int(pixel[there].min()), int((pixel + (count - 1) * taps.step)[there].max()) + 1


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of y that are taken together: the first one, how many and how far apart; the pixel of the first tap, how far it is
    to the next row's, the tap's number, and how many."""

    row: int
    rows: int
    row_step: int
    pixel: int
    pixel_step: int
    tap: int
    taps: int


@lru_cache(maxsize=512)
def groups_of(relation: Relation) -> tuple[Group, ...]:
    """Rows with the same taps inside, as many as are taken together or one by one."""
    size, found, c = size_of(relation), [], classes_of(relation.volume[1])
    assert size is not None
    columns = (c.window, c.window_step, c.pixel, c.pixel_step, c.windows, c.tap, c.taps)
    for row, row_step, pixel, pixel_step, windows, tap, taps in zip(*(column.tolist() for column in columns), strict=True):
        whole = windows // size.rows * size.rows
        for k in (*range(0, whole, size.rows), *range(whole, windows)):
            rows = size.rows if k < whole else 1
            found.append(Group(row + k * row_step, rows, row_step, pixel + k * pixel_step, pixel_step, tap, taps))
    return tuple(sorted(found, key=lambda group: group.row))


def _rows_read(relation: Relation, groups: Sequence[Group]) -> Span:
    """The rows of x that groups read, from and to."""
    step, some = classes_of(relation.volume[1]).step, [group for group in groups if group.taps]
    ends = [g.pixel + (g.rows - 1) * g.pixel_step + (g.taps - 1) * step + 1 for g in some]
    return min((group.pixel for group in some), default=0), max(ends, default=0)


Box = tuple[Span, Span, Span, Span, Span, Span]
"""Depths, groups of rows and blocks of columns, and what they read of x: depths, rows and columns."""


@lru_cache(maxsize=512)
def boxes_of(relation: Relation, images: int) -> tuple[Box, ...] | None:
    """The boxes of an image that fit into scratch memory, with the least packed twice; None if one is always too large."""
    return _fitting(relation, BYTES, -(-UNITS // images)) or _fitting(relation, BYTES, 1) or _fitting(relation, MOST, 1)


def _fitting(relation: Relation, most: int, least: int) -> tuple[Box, ...] | None:
    """Boxes of at most so many bytes of x, and at least so many."""
    groups, columns = len(groups_of(relation)), len(columns_of(relation))
    depths = relation.volume[0].out
    found: list[tuple[int, list[Box]]] = []
    for deep, wide in itertools.product(sorted({1, min(2, depths), min(4, depths)}), sorted({1, -(-columns // 4), columns})):
        high, boxes = 1, _cut(relation, deep, 1, wide)
        while _bytes(boxes, relation) <= most and len(boxes) >= least:
            found.append((sum(map(_pixels, boxes)), boxes))
            if high >= groups:
                break
            high = min(2 * high, groups)
            boxes = _cut(relation, deep, high, wide)
    return tuple(min(found, key=lambda one: one[0])[1]) if found else None


def _pixels(box: Box) -> int:
    return math.prod(end - start for start, end in box[3:])


def _bytes(boxes: Sequence[Box], relation: Relation) -> int:
    """Bytes of the largest box."""
    deep, high, wide = largest(boxes)
    return deep * high * -(-wide * relation.spec.bytes // LINE) * LINE * relation.inputs


def largest(boxes: Sequence[Box]) -> list[int]:
    """Depths, rows and columns of x that some box has at most."""
    return [max(box[3 + k][1] - box[3 + k][0] for box in boxes) for k in range(3)]


def _cut(relation: Relation, deep: int, high: int, wide: int) -> list[Box]:
    """Boxes of so many depths, groups and blocks."""
    groups, columns, axes = groups_of(relation), columns_of(relation), relation.volume
    counts = (axes[0].out, len(groups), len(columns))
    parts = [[(k, min(k + n, count)) for k in range(0, count, n)] for n, count in zip((deep, high, wide), counts, strict=True)]
    taps = taps_inside(axes[0])
    depths = [_span(taps, *part) for part in parts[0]]
    rows = [_rows_read(relation, groups[a:b]) for a, b in parts[1]]
    across = [_across(relation, a, b) if len(parts[2]) > 1 else (0, axes[2].size) for a, b in parts[2]]
    grid = itertools.product(*(range(len(part)) for part in parts))
    return [(parts[0][d], parts[1][r], parts[2][c], depths[d], rows[r], across[c]) for d, r, c in grid]


def _across(relation: Relation, first: int, last: int) -> Span:
    """The columns of x that the lanes of blocks from, to read, those behind y's last column included."""
    columns, wide = columns_of(relation), relation.volume[2]
    start, taps = places_of(wide)
    end = columns[last - 1][0] + columns[last - 1][1].vectors * lanes_of(relation)
    low, high = max(columns[first][0] + start, 0), min(end + start + max(shift for shift, _ in taps), wide.size)
    return (low, high) if low < high else (0, 0)


def parts_of(relation: Relation, images: int) -> list[Box]:
    """Boxes where nothing is packed: depths, rows and then columns cut so that there are units enough."""
    groups, depths = len(groups_of(relation)), relation.volume[0].out
    wanted = -(-4 * UNITS // images)
    high = max(groups // max(-(-wanted // depths), 1), 1)
    columns = len(columns_of(relation))
    wide = max(columns // -(-wanted // (depths * -(-groups // high))), 1)
    return _cut(relation, max(depths // wanted, 1), high, wide)
