"""The input of a comparison and what each answer makes of it, drawn as grids of numbers."""

from __future__ import annotations

import numpy as np

from ..explain import Comparison
from ..explain.numbers import number
from ..explain.text_values import value_groups
from ..explain.values import MOST_DRAWN, Array
from .canvas import GREY, INK, PALE, Canvas, text_width, wrapped

AMBER, SAND = "#b45309", "#fff0d6"
MARGIN, LEFT, ROW, GAP = 28.0, 146.0, 24.0, 26.0


def draw_values(canvas: Canvas, comparison: Comparison, y: float) -> float:
    """Input, outputs and gradients from y on, places unlike the first answer's marked; where they end. Small inputs only."""
    x = comparison.input
    groups = value_groups(comparison)
    if x is None or not groups or x.ndim > 2 or max(x.shape) > MOST_DRAWN:
        return y
    canvas.line((MARGIN, y), (canvas.width - MARGIN, y), stroke=PALE)
    canvas.text(MARGIN, y + 24, "What becomes of the input", bold=True)
    canvas.text(LEFT, y + 46, "input", size=11, fill=GREY)
    y = _grid(canvas, LEFT, y + 52, x, None)[1] + GAP
    first = groups[0][0].values
    assert first is not None
    for group in groups:
        values = group[0].values
        assert values is not None
        names = ", ".join(side.rules for side in group)
        if text_width(names, 16, bold=True) < LEFT - MARGIN:
            canvas.text(MARGIN, y + 29, names, size=16, bold=True)
        else:
            for line in wrapped(names, canvas.width - 2 * MARGIN, 16):
                canvas.text(MARGIN, y + 8, line, size=16, bold=True)
                y += 20
        if values.y is None:
            canvas.text(LEFT, y + 10, "no output" if values.error is None else values.error.problem, fill=GREY)
            y += ROW + GAP
            continue
        canvas.text(LEFT, y + 6, "output", size=11, fill=GREY)
        right, bottom = _grid(canvas, LEFT, y + 12, values.y, values.differing(first, "y"))
        if values.dx is not None:
            canvas.text(right + GAP, y + 6, "gradient of its sum", size=11, fill=GREY)
            bottom = max(bottom, _grid(canvas, right + GAP, y + 12, values.dx, values.differing(first, "dx"))[1])
        y = bottom + GAP
    return y


def _grid(canvas: Canvas, x: float, y: float, values: Array, marks: Array | None) -> tuple[float, float]:
    """A plane's numbers in boxes of one width; where the grid ends on the right and below."""
    rows = [[number(float(v)) for v in row] for row in np.atleast_2d(values)]
    differs = np.zeros((len(rows), len(rows[0]) if rows else 0), bool) if marks is None else np.atleast_2d(marks)
    width = max([text_width(text, 12, bold=True) for row in rows for text in row] + [14.0]) + 14
    for i, row in enumerate(rows):
        for j, text in enumerate(row):
            marked = bool(differs[i, j])
            at = (x + j * width, y + i * ROW)
            canvas.box(*at, width, ROW, fill=SAND if marked else "#ffffff", stroke=AMBER if marked else PALE)
            canvas.text(at[0] + width / 2, at[1] + 16, text, size=12, fill=AMBER if marked else INK, anchor="middle", bold=marked)
    right = x + max(map(len, rows)) * width
    canvas.width = max(canvas.width, right + MARGIN)
    return right, y + len(rows) * ROW
