"""The ladder as a picture: for each operator and direction one bar a rung and layout, on a scale of powers of ten."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..bench import RUNGS, Timed
from .canvas import GREY, INK, PALE, WHITE, Canvas, text_width

SHADES = {"NHWC": "#8db8e8", "NCHW": "#2268b5"}
MARGIN, LABEL, TIME = 28.0, 66.0, 84.0
CHART, BAR, ROW, HEAD, FOOT = 290.0, 9.0, 28.0, 50.0, 26.0
GAP, LEAST_WIDTH = 34.0, 720.0


def draw_ladder(timed: Sequence[Timed], title: str = "", note: str = "") -> Canvas:
    """A row of panels an operator, a column a direction. All bars share one scale, so that lengths compare everywhere."""
    canvas = Canvas()
    ops = list(dict.fromkeys(row.op for row in timed))
    directions = list(dict.fromkeys(row.direction for row in timed))
    lo = math.floor(math.log10(min(row.seconds for row in timed)))
    hi = math.ceil(math.log10(max(row.seconds for row in timed)))
    decades = (lo, max(hi, lo + 1))
    panel = LABEL + CHART + TIME
    canvas.width = max(2 * MARGIN + len(directions) * panel + (len(directions) - 1) * GAP, LEAST_WIDTH)
    canvas.text(MARGIN, 42, title or "The ladder: the same numbers, written five ways", size=20, bold=True)
    canvas.text(
        MARGIN, 64, "Time of one call, on a scale of powers of ten; in brackets, how many times as fast as loops4", fill=GREY
    )
    legend(canvas, canvas.width - MARGIN, BAR)
    y = 84.0
    for op in ops:
        for column, direction in enumerate(directions):
            rows = [row for row in timed if (row.op, row.direction) == (op, direction)]
            _panel(canvas, MARGIN + column * (panel + GAP), y, f"{op}, {direction}", rows, decades)
        y += HEAD + ROW * len(RUNGS) + FOOT
    if note:
        canvas.text(MARGIN, y + 14, note, size=11, fill=GREY)
        y += 24
    canvas.height = y + MARGIN / 2
    return canvas


def legend(canvas: Canvas, right: float, height: float) -> None:
    """The layouts' shades beside the title, in boxes as high as the bars."""
    x = right
    for layout in reversed(SHADES):
        x -= text_width(layout, 12)
        canvas.text(x, 42, layout, size=12, fill=GREY)
        x -= 18
        canvas.box(x, 33, 12, height, fill=SHADES[layout], radius=2)
        x -= 16


def _panel(canvas: Canvas, x: float, y: float, title: str, rows: Sequence[Timed], decades: tuple[int, int]) -> None:
    """Bars from the left; the lines behind them are powers of ten."""
    lo, hi = decades
    left = x + LABEL
    canvas.line((x, y), (left + CHART + TIME, y), stroke=PALE)
    canvas.text(x, y + 24, title, size=15, bold=True)
    top, bottom = y + HEAD - 8, y + HEAD + ROW * len(RUNGS) - 4
    for power in range(lo, hi + 1):
        at = left + CHART * (power - lo) / (hi - lo)
        canvas.line((at, top), (at, bottom), stroke=PALE)
        canvas.text(at, bottom + 14, duration(10.0**power), size=10, fill=GREY, anchor="middle")
    slowest = {row.layout: row.seconds for row in rows if row.rung == RUNGS[0]}
    for i, rung in enumerate(RUNGS):
        at = y + HEAD + i * ROW
        canvas.text(left - 10, at + BAR + 4, rung, size=12, fill=INK, anchor="end")
        for j, layout in enumerate(SHADES):
            row = next((row for row in rows if (row.rung, row.layout) == (rung, layout)), None)
            if row is None:
                continue
            length = max(CHART * (math.log10(row.seconds) - lo) / (hi - lo), 2)
            canvas.box(left, at + j * (BAR + 1), length, BAR, fill=SHADES[layout], radius=2)
            said = duration(row.seconds)
            if rung != RUNGS[0] and layout in slowest:
                said += f" ({times(slowest[layout] / row.seconds)})"
            beside = left + length + 6
            canvas.box(beside - 1, at + j * (BAR + 1), text_width(said, 9.5) + 2, BAR, fill=WHITE)
            canvas.text(beside, at + j * (BAR + 1) + BAR - 1, said, size=9.5, fill=GREY)


def duration(seconds: float) -> str:
    """Three digits and a unit."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 0.9995 or unit == "us":
            return f"{seconds * factor:.3g} {unit}"
    raise AssertionError("the last unit takes all")


def times(ratio: float) -> str:
    """How many times as fast, without digits nobody can measure."""
    return f"{ratio:,.0f}x" if ratio >= 9.95 else f"{ratio:.1f}x"
