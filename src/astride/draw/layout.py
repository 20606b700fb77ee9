"""Where the boxes of a graph go: rows by the longest way to them, places in a row near what they are joined to.

A small form of the method of Sugiyama: rows, bends where an edge passes a row, an order with few crossings, then places that
are as straight below each other as the widths allow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Point = tuple[float, float]
Edge = tuple[int, int]

SWEEPS = 8
BEND = 14.0


@dataclass(frozen=True, slots=True)
class Layout:
    """Centres of the boxes, for each edge the points it bends at, and the extent of it all. y counts downwards."""

    centers: tuple[Point, ...]
    bends: Mapping[Edge, tuple[Point, ...]]
    width: float
    height: float


def arrange(boxes: Sequence[tuple[float, float]], edges: Sequence[Edge], *, between: float = 30, below: float = 46) -> Layout:
    """Places for boxes (width, height) with edges from earlier to later ones."""
    edges = list(dict.fromkeys(edges))
    row = _rows(len(boxes), edges)
    sizes: list[tuple[float, float]] = list(boxes)
    rows: list[list[int]] = [[] for _ in range(max(row, default=-1) + 1)]
    for i, r in enumerate(row):
        rows[r].append(i)
    chains: dict[Edge, list[int]] = {}
    links: list[Edge] = []
    for a, b in edges:
        chain = [a]
        for r in range(row[a] + 1, row[b]):
            rows[r].append(len(sizes))
            chain.append(len(sizes))
            sizes.append((BEND, 0.0))
        chains[a, b] = chain[1:]
        links += list(zip(chain, [*chain[1:], b]))
    above, under = _neighbours(len(sizes), links)
    _order(rows, above, under)
    x = _columns(rows, sizes, above, under, between)
    y, height = _lines(rows, sizes, below)
    left = min((x[i] - sizes[i][0] / 2 for i in range(len(sizes))), default=0.0)
    right = max((x[i] + sizes[i][0] / 2 for i in range(len(sizes))), default=0.0)
    place = {i: (x[i] - left, y[r][0]) for r, members in enumerate(rows) for i in members}
    # An edge passes a row upright, so that it is slanted only between rows, where no box stands.
    half = {i: y[r][1] / 2 for r, members in enumerate(rows) for i in members}
    bends = {
        edge: tuple((place[i][0], place[i][1] + side * half[i]) for i in chain for side in (-1, 1))
        for edge, chain in chains.items()
    }
    return Layout(tuple(place[i] for i in range(len(boxes))), bends, right - left, height)


def _rows(count: int, edges: Sequence[Edge]) -> list[int]:
    """The longest way from a source; a source itself stands right above the first that reads it."""
    row = [0] * count
    for a, b in sorted(edges):
        row[b] = max(row[b], row[a] + 1)
    fed = {b for _, b in edges}
    for i in range(count):
        readers = [row[b] for a, b in edges if a == i]
        if i not in fed and readers:
            row[i] = min(readers) - 1
    return row


def _neighbours(count: int, links: Sequence[Edge]) -> tuple[list[list[int]], list[list[int]]]:
    above: list[list[int]] = [[] for _ in range(count)]
    under: list[list[int]] = [[] for _ in range(count)]
    for a, b in links:
        above[b].append(a)
        under[a].append(b)
    return above, under


def _order(rows: list[list[int]], above: list[list[int]], under: list[list[int]]) -> None:
    """Sort each row by the mean place of its neighbours, from above and from below in turn."""
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        near = above if down else under
        for r in range(1, len(rows)) if down else range(len(rows) - 2, -1, -1):
            other = {i: k for k, i in enumerate(rows[r - 1 if down else r + 1])}
            own = {i: float(k) for k, i in enumerate(rows[r])}
            mean = {i: sum(other[j] for j in near[i]) / len(near[i]) if near[i] else own[i] for i in rows[r]}
            rows[r].sort(key=lambda i: mean[i])


def _columns(
    rows: list[list[int]],
    sizes: list[tuple[float, float]],
    above: list[list[int]],
    under: list[list[int]],
    between: float,
) -> list[float]:
    x = [0.0] * len(sizes)
    for members in rows:
        for i, place in zip(members, _packed(members, [0.0] * len(members), sizes, between)):
            x[i] = place
    for sweep in range(2 * SWEEPS):
        down = sweep % 2 == 0
        for r in range(len(rows)) if down else reversed(range(len(rows))):
            wanted = []
            for i in rows[r]:
                near = above[i] + under[i] if sweep >= SWEEPS else (above[i] if down else under[i])
                wanted.append(sum(x[j] for j in near) / len(near) if near else x[i])
            for i, place in zip(rows[r], _packed(rows[r], wanted, sizes, between)):
                x[i] = place
    for down in (False, True, False):
        _straighten(rows, sizes, x, above, under, between, down=down)
    return x


def _straighten(
    rows: list[list[int]],
    sizes: list[tuple[float, float]],
    x: list[float],
    above: list[list[int]],
    under: list[list[int]],
    between: float,
    *,
    down: bool,
) -> None:
    """Where two have only each other, the one takes the other's place: chains and long edges become straight."""
    near, back = (above, under) if down else (under, above)
    for members in rows if down else reversed(rows):
        wanted = [x[near[i][0]] if len(near[i]) == 1 and len(back[near[i][0]]) == 1 else x[i] for i in members]
        for i, place in zip(members, _packed(members, wanted, sizes, between)):
            x[i] = place


def _packed(members: list[int], wanted: list[float], sizes: list[tuple[float, float]], between: float) -> list[float]:
    """The places nearest to the wanted ones (least squares) that keep the order and the distances."""
    offset, offsets = 0.0, []
    for k, i in enumerate(members):
        if k:
            offset += (sizes[members[k - 1]][0] + sizes[i][0]) / 2 + between
        offsets.append(offset)
    # Without the distances the order alone is left to keep: pool neighbours that would pass each other.
    pools: list[tuple[float, int]] = []
    for w, o in zip(wanted, offsets):
        pools.append((w - o, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (a, m), (b, n) = pools[-2:]
            pools[-2:] = [((a * m + b * n) / (m + n), m + n)]
    flat = [value for value, count in pools for _ in range(count)]
    return [value + o for value, o in zip(flat, offsets)]


def _lines(rows: list[list[int]], sizes: list[tuple[float, float]], below: float) -> tuple[list[tuple[float, float]], float]:
    """The middle and height of each row, and the height of all."""
    y, at = [], 0.0
    for members in rows:
        tallest = max((sizes[i][1] for i in members), default=0.0)
        y.append((at + tallest / 2, tallest))
        at += tallest + below
    return y, at
