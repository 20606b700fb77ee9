"""A benchmark beside other libraries as a picture: for each case and direction a bar a layout, to the right of the line of equal
speed where astride is faster, to the left where it is slower, on a scale of powers of two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .canvas import GREY, INK, PALE, WHITE, Canvas, text_width
from .ladder import SHADES, legend

MARGIN, LABEL, SIDE, BAR, ROW, HEAD, FOOT, GAP = 28.0, 190.0, 92.0, 8.0, 21.0, 54.0, 30.0, 26.0
MOST = 3.0
"""Powers of two to either side: what is farther out ends at the edge, its number beside it."""


def draw_race(rows: Sequence[dict[str, Any]], title: str, note: str = "") -> Canvas:
    """One block of panels for each number of threads, a column a direction, a line a case."""
    canvas = Canvas()
    whats = list(dict.fromkeys(row["what"] for row in rows))
    panel = 2 * SIDE + 40
    canvas.width = max(2 * MARGIN + LABEL + len(whats) * panel + (len(whats) - 1) * GAP, 640.0)
    canvas.text(MARGIN, 42, title, size=20, bold=True)
    canvas.text(MARGIN, 64, "How many times as fast as the best of the others, on a scale of powers of two", fill=GREY)
    legend(canvas, canvas.width - MARGIN, BAR)
    y = 84.0
    for threads in sorted({row["threads"] for row in rows}):
        shown = [row for row in rows if row["threads"] == threads]
        y = _block(canvas, y, shown, whats, panel, f"{threads} thread{'s' if threads > 1 else ''}")
    if note:
        canvas.text(MARGIN, y + 8, note, size=11, fill=GREY)
        y += 24
    canvas.height = y + MARGIN / 2
    return canvas


def _block(canvas: Canvas, y: float, rows: Sequence[dict[str, Any]], whats: Sequence[str], panel: float, title: str) -> float:
    """All cases on one number of threads; where the block ends."""
    cases = list(dict.fromkeys(row["case"] for row in rows))
    canvas.line((MARGIN, y), (canvas.width - MARGIN, y), stroke=PALE)
    canvas.text(MARGIN, y + 24, title, size=15, bold=True)
    top, bottom = y + HEAD - 10, y + HEAD + ROW * len(cases)
    for column, what in enumerate(whats):
        middle = MARGIN + LABEL + column * (panel + GAP) + SIDE + 10
        canvas.text(middle, y + 24, what, size=13, bold=True, anchor="middle")
        for power in range(-int(MOST), int(MOST) + 1):
            at = middle + SIDE * power / MOST
            canvas.line((at, top), (at, bottom), stroke=INK if power == 0 else PALE)
            if power % 2 or power == 0:
                canvas.text(at, bottom + 13, f"{2.0**power:.3g}x", size=10, fill=GREY, anchor="middle")
        for row in rows:
            if row["what"] == what and row["ratio"]:
                _bar(canvas, middle, y + HEAD + ROW * cases.index(row["case"]), row)
    for i, name in enumerate(cases):
        canvas.text(MARGIN, y + HEAD + ROW * i + BAR + 4, name, size=12, fill=INK)
    return bottom + FOOT


def _bar(canvas: Canvas, middle: float, y: float, row: dict[str, Any]) -> None:
    layout = row["layout"].upper()
    at = y + list(SHADES).index(layout) * (BAR + 1)
    power = min(max(math.log2(row["ratio"]), -MOST), MOST)
    length = SIDE * power / MOST
    canvas.box(middle + min(length, 0), at, max(abs(length), 1), BAR, fill=SHADES[layout], radius=1)
    said = f"{row['ratio']:.2f}"
    wide = text_width(said, 9)
    beside = middle + length + 4 if length >= 0 else middle + length - 4 - wide
    canvas.box(beside - 1, at, wide + 2, BAR, fill=WHITE)
    canvas.text(beside, at + BAR - 1, said, size=9, fill=GREY)


__all__ = ["draw_race"]
