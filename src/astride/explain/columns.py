"""Which positions and windows of a long axis are shown: all of a short one, else its two ends."""

from __future__ import annotations

from collections.abc import Sequence

from .windows import AxisView, Window

Columns = list[int | None]
"""Positions from left to right; None where some are left out."""


def columns(axes: Sequence[AxisView], most: int) -> Columns:
    """Positions for one drawing of these axes, which then share it: at most `most`, the gap included."""
    first, last = min(axis.first for axis in axes), max(axis.last for axis in axes)
    if last - first + 1 <= most:
        return list(range(first, last + 1))
    tail = max((most - 1) // 3, 1)
    head = most - 1 - tail
    return [*range(first, first + head), None, *range(last - tail + 1, last + 1)]


def shown(axis: AxisView, columns: Columns, most: int) -> list[Window | int]:
    """The windows to draw, in order; a number stands for so many that are left out."""
    visible = {position for position in columns if position is not None}
    whole = [w for w in axis.windows if all(tap.position in visible for tap in w.taps)]
    # A window longer than the drawing is shown by its ends.
    chosen = whole or [w for w in axis.windows if any(tap.position in visible for tap in w.taps)]
    if len(chosen) > most:
        tail = max(most // 3, 1)
        chosen = [*chosen[: most - tail], *chosen[-tail:]]
    result: list[Window | int] = []
    expected = 0
    for window in chosen:
        if window.index > expected:
            result.append(window.index - expected)
        result.append(window)
        expected = window.index + 1
    if expected < axis.out:
        result.append(axis.out - expected)
    return result
