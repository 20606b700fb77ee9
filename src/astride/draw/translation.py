"""A translation as a picture: the call, what to write instead, both with their windows, and what was computed."""

from __future__ import annotations

from ..explain import Translation
from ..explain.beside import beside
from ..explain.facts import sizes
from ..explain.text_translation import holding, said_of
from .canvas import GREY, INK, PALE, Canvas, text_width, wrapped
from .windows import AMBER, MARGIN, PAST, draw_comparison

CODE, WIDTH = "#f4f6f8", 640.0


def draw_translation(found: Translation) -> Canvas:
    """The source's call and the target's lines, then a panel for each and axis, then the trials."""
    canvas = draw_comparison(beside(found), head=lambda canvas: _head(canvas, found))
    if found.trials:
        canvas.height = _trials(canvas, found, canvas.height + 8) + MARGIN / 2
    return canvas


def _head(canvas: Canvas, found: Translation) -> float:
    canvas.text(MARGIN, 42, f"{found.source} in {found.target}", size=20, bold=True)
    said = f"{found.operation.op} of {sizes(found.sizes)}"
    canvas.text(MARGIN, 64, said, fill=GREY)
    y = _code(canvas, 80, found.source, [found.call])
    if not found.expressed:
        for line in wrapped(f"{found.target} cannot express it: {found.reason}", canvas.width - 2 * MARGIN):
            canvas.text(MARGIN, y + 18, line, fill=PAST, bold=True)
            y += 18
        return y + 24
    y = _code(canvas, y + 8, found.target, list(found.lines))
    for line in wrapped(holding(found), canvas.width - 2 * MARGIN, 11) if found.holds is not None else []:
        canvas.text(MARGIN, y + 16, line, size=11, fill=GREY)
        y += 16
    return y + 20


def _code(canvas: Canvas, y: float, name: str, lines: list[str]) -> float:
    """Lines in a box, broken where they are too long; where it ends."""
    left, width = MARGIN + 100, canvas.width - 2 * MARGIN - 100
    broken = [(i > 0, part) for line in lines for i, part in enumerate(wrapped(line, width - 40, 12))]
    canvas.box(left, y, width, 18 * len(broken) + 10, fill=CODE, radius=4)
    canvas.text(MARGIN, y + 19, name, bold=True)
    for i, (hanging, line) in enumerate(broken):
        canvas.text(left + (28 if hanging else 10), y + 19 + 18 * i, line, size=12, fill=GREY if line.startswith("#") else INK)
    return y + 18 * len(broken) + 10


def _trials(canvas: Canvas, found: Translation, y: float) -> float:
    """Both computed: a row an input."""
    canvas.line((MARGIN, y), (canvas.width - MARGIN, y), stroke=PALE)
    asked = found.trials[0].gradient_asked
    columns = [MARGIN, MARGIN + 148, MARGIN + 148 + (canvas.width - 2 * MARGIN - 148) / 2]
    canvas.text(MARGIN, y + 24, f"Both computed in float64 on {sizes(found.sizes)}", bold=True)
    y += 44
    for x, name in zip(columns, ("x", "y", "gradient" if asked else "")):
        canvas.text(x, y, name, size=11, fill=GREY)
    for trial in found.trials:
        y += 18
        canvas.text(columns[0], y, trial.name, size=12, fill=INK if trial.equal else AMBER, bold=not trial.equal)
        cells = [trial.forward, *([trial.gradient] if asked else [])]
        for x, difference in zip(columns[1:], cells):
            canvas.text(x, y, said_of(difference), size=12, fill=INK if difference is None else AMBER)
    y += 8
    if found.condition:
        y += 18
        canvas.text(MARGIN, y, f"only where {found.condition}", size=12, fill=AMBER)
        canvas.width = max(canvas.width, 2 * MARGIN + text_width(found.condition, 12))
    return y + 20
