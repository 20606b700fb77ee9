"""The tutorial's pictures, drawn from what astride computes: `python docs/pictures.py` writes docs/tutorial/*.svg anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import astride
from astride.draw import Canvas

INK, GREY, PALE, WHITE = "#1f2933", "#66727f", "#c9d1d9", "#ffffff"
BLUE, SKY, AMBER, SAND = "#2268b5", "#dbeafe", "#b45309", "#fff0d6"
CELL, MARGIN = 34.0, 24.0

Grid = Sequence[Sequence[float | None]]


def number(value: float | None) -> str:
    """A number as short as it is exact; nothing for a place that holds none."""
    return "" if value is None else f"{value:.3g}"


def grid(
    canvas: Canvas, x: float, y: float, values: Grid, *, title: str = "", marked: Any = (), fill: str = SKY, cell: float = CELL
) -> float:
    """A grid of numbers with its title above; `marked` places are filled. Where it ends on the right."""
    if title:
        canvas.text(x, y - 8, title, size=12, fill=GREY)
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            inside = (i, j) in marked
            at = (x + j * cell, y + i * cell)
            canvas.box(
                *at, cell, cell, fill=fill if inside else WHITE, stroke=PALE if value is None else GREY, dashed=value is None
            )
            canvas.text(at[0] + cell / 2, at[1] + cell / 2 + 5, number(value), anchor="middle", bold=inside, size=13)
    return x + max(len(row) for row in values) * cell


def arrow(canvas: Canvas, x: float, y: float, text: str = "", length: float = 52, color: str = INK) -> float:
    """An arrow to the right with a word above it. Where what follows may begin."""
    canvas.arrow((x + 10, y), (x + length - 6, y), stroke=color, width=1.5, head=7)
    canvas.text(x + length / 2, y - 8, text, size=11, fill=color, anchor="middle")
    return x + length + 4


# What goes up the ladder


def rungs() -> Canvas:
    """What one step of the innermost Python loop covers on each rung."""
    canvas = Canvas(width=760, height=292)
    canvas.text(MARGIN, 34, "What one step in Python covers", size=18, bold=True)
    canvas.text(MARGIN, 54, "Three images of two channels; a window of 2 x 2", size=12, fill=GREY)
    said = {
        "loops4": ("for each image, row,", "column, channel"),
        "loops3": ("for each row, column,", "channel: all images"),
        "loops2": ("for each row, column:", "all images and channels"),
        "im2col": ("no loop over positions:", "every window at once"),
    }
    for k, (rung, lines) in enumerate(said.items()):
        x = MARGIN + k * 184
        canvas.text(x, 86, rung, size=15, bold=True, fill=BLUE)
        for i, line in enumerate(lines):
            canvas.text(x, 104 + 15 * i, line, size=11, fill=GREY)
        for image in range(3):
            for channel in range(2):
                covered = {"loops4": image == 0 and channel == 0, "loops3": channel == 0}.get(rung, True)
                _plane(canvas, x + channel * 62, 134 + image * 50, covered, rung == "im2col")
    return canvas


def _plane(canvas: Canvas, x: float, y: float, covered: bool, everywhere: bool) -> None:
    """A plane of 5 x 4 pixels, its covered windows filled."""
    cell = 10.0
    for i in range(4):
        for j in range(5):
            inside = covered and (everywhere or (i in (1, 2) and j in (1, 2)))
            canvas.box(x + j * cell, y + i * cell, cell, cell, fill="#8db8e8" if inside else WHITE, stroke=PALE)
    if covered and not everywhere:
        canvas.box(x + cell, y + cell, 2 * cell, 2 * cell, stroke=BLUE, line=2)


# Where gradients of pooling go


def returning(op: Callable[..., Any], x: Grid, dy: Grid, title: str, **arguments: Any) -> Canvas:
    """Forward, and what each window sends back, which summed is the gradient."""
    image, g = np.array([[x]], np.float64), np.array([[dy]], np.float64)
    y, pull = astride.vjp(op, image, **arguments)
    parts = []
    for place in np.ndindex(*g.shape[2:]):
        alone = np.zeros_like(g)
        alone[(0, 0, *place)] = g[(0, 0, *place)]
        parts.append((place, pull(alone)[0][0, 0]))
    total = pull(g)[0][0, 0]
    canvas = Canvas()
    canvas.text(MARGIN, 34, title, size=18, bold=True)
    top, rows = 84.0, len(x)
    middle = top + rows * CELL / 2
    right = grid(canvas, MARGIN, top, x, title="x")
    right = arrow(canvas, right, middle, "forward")
    right = grid(canvas, right, middle - len(dy) * CELL / 2, y[0, 0].tolist(), title="y")
    canvas.text(right + 22, middle + 5, "from above:", size=12, fill=GREY)
    right = grid(
        canvas, right + 100, middle - len(dy) * CELL / 2, dy, title="dy", marked=list(np.ndindex(*g.shape[2:])), fill=SAND
    )
    wide = right
    below = top + rows * CELL + 62
    canvas.text(MARGIN, below - 30, "each window sends back", size=12, fill=GREY)
    at = MARGIN
    for k, (place, part) in enumerate(parts):
        marked = [tuple(p) for p in np.argwhere(part)]
        at = grid(canvas, at, below, part.tolist(), title=f"window {','.join(map(str, place[-len(place) :]))}", marked=marked)
        if k + 1 < len(parts):
            canvas.text(at + 13, below + rows * CELL / 2 + 6, "+", size=17, anchor="middle")
            at += 26
    at = arrow(canvas, at, below + rows * CELL / 2, "sum", 46)
    marked = [tuple(p) for p in np.argwhere(total)]
    at = grid(canvas, at, below, total.tolist(), title="dx", marked=marked, fill=SAND)
    canvas.width, canvas.height = max(at, wide) + MARGIN, below + rows * CELL + MARGIN
    return canvas


# Convolution along one axis


def convolution() -> Canvas:
    """Forward: the kernel slides over x. Backward: the kernel, turned round, slides over dy with zeros on both sides."""
    x, w, dy = np.array([[[2.0, 1, 3, 0, 2]]]), np.array([[[1.0, 2, 4]]]), np.array([[[1.0, 3, 2]]])
    y, pull = astride.vjp(astride.conv, x, w)
    dx, dw, *_ = pull(dy)
    canvas = Canvas(width=830, height=520)
    canvas.text(MARGIN, 34, "A convolution and its two gradients, along one axis", size=18, bold=True)
    _sliding(canvas, 84, "forward: the kernel slides over x", x[0, 0], w[0, 0], y[0, 0], ("x", "w", "y"), 1)
    grown = np.pad(dy[0, 0], 2)
    pads = (0, 1, 5, 6)
    said = "dx: the kernel turned round slides over dy, with k - 1 zeros on both sides"
    _sliding(canvas, 236, said, grown, w[0, 0, ::-1], dx[0, 0], ("dy", "w turned", "dx"), 1, pads)
    _sliding(canvas, 388, "dw: dy slides over x, as forward slid w", x[0, 0], dy[0, 0], dw[0, 0], ("x", "dy", "dw"), 0)
    return canvas


def _sliding(
    canvas: Canvas,
    y: float,
    said: str,
    over: np.ndarray,
    slider: np.ndarray,
    result: np.ndarray,
    names: tuple[str, str, str],
    position: int,
    pads: tuple[int, ...] = (),
) -> None:
    """A row, what slides over it at one position, and the results; that position's one is marked."""
    canvas.line((MARGIN, y - 26), (canvas.width - MARGIN, y - 26), stroke=PALE)
    canvas.text(MARGIN, y - 6, said, size=13, bold=True, fill=BLUE)
    left, row = MARGIN + 70, y + 12
    window = [(0, position + j) for j in range(len(slider))]
    canvas.text(left - 12, row + CELL / 2 + 5, names[0], size=12, fill=GREY, anchor="end")
    right = grid(canvas, left, row, [over.tolist()], marked=window)
    for i in pads:
        canvas.box(left + i * CELL, row, CELL, CELL, stroke=AMBER, dashed=True, line=1.5)
    canvas.text(left - 12, row + CELL * 1.5 + 13, names[1], size=12, fill=GREY, anchor="end")
    grid(canvas, left + position * CELL, row + CELL + 8, [slider.tolist()])
    terms = " + ".join(f"{number(a)}*{number(b)}" for a, b in zip(over[position:], slider, strict=False))
    at = max(right, left + 7 * CELL) + 16
    canvas.text(at, row + CELL / 2 + 5, f"{terms} = {number(result[position])}", size=13)
    canvas.text(at + 186, row + CELL / 2 + 5, names[2], size=12, fill=GREY, anchor="end")
    grid(canvas, at + 196, row, [result.tolist()], marked=[(0, position)], fill=SAND)


def transposed() -> Canvas:
    """Copies of the kernel, scaled and added; and the same as a convolution of x with zeros put in."""
    x, w = np.array([[[1.0, 2, 3]]]), np.array([[[1.0, 10, 100]]])
    y = astride.conv_transpose(x, w, stride=2)[0, 0]
    canvas = Canvas(width=700, height=400)
    canvas.text(MARGIN, 34, "A transposed convolution, stride 2: scattered, and as a convolution", size=18, bold=True)
    left, at = MARGIN + 110, 66.0
    for i, value in enumerate(x[0, 0]):
        copy: list[float | None] = [None] * len(y)
        for j, weight in enumerate(w[0, 0]):
            copy[2 * i + j] = float(value * weight)
        canvas.text(left - 12, at + CELL / 2 + 5, f"x[{i}] = {number(value)}, times w", size=12, fill=GREY, anchor="end")
        grid(canvas, left, at, [copy], marked=[(0, 2 * i + j) for j in range(3)])
        at += CELL + 4
    canvas.line((left, at + 2), (left + len(y) * CELL, at + 2), width=1.5)
    canvas.text(left - 12, at + 8 + CELL / 2 + 5, "y, the sum", size=12, fill=GREY, anchor="end")
    grid(canvas, left, at + 8, [y.tolist()], marked=[(0, i) for i in range(len(y))], fill=SAND)
    canvas.text(left + len(y) * CELL + 20, 66 + CELL, "each input pixel spreads", size=12, fill=GREY)
    canvas.text(left + len(y) * CELL + 20, 82 + CELL, "a copy of the kernel", size=12, fill=GREY)
    at += 2 * CELL + 34
    canvas.line((MARGIN, at - 26), (canvas.width - MARGIN, at - 26), stroke=PALE)
    grown = np.zeros(9)
    grown[2:7:2] = x[0, 0]
    turned = w[0, 0, ::-1]
    canvas.text(left - 12, at + CELL / 2 + 5, "x with zeros", size=12, fill=GREY, anchor="end")
    grid(canvas, left, at, [grown.tolist()], marked=[(0, 2), (0, 3), (0, 4)])
    for i in (0, 1, 3, 5, 7, 8):
        canvas.box(left + i * CELL, at, CELL, CELL, stroke=AMBER, dashed=True, line=1.5)
    canvas.text(left - 12, at + CELL * 1.5 + 13, "w turned", size=12, fill=GREY, anchor="end")
    grid(canvas, left + 2 * CELL, at + CELL + 8, [turned.tolist()])
    terms = " + ".join(f"{number(a)}*{number(b)}" for a, b in zip(grown[2:5], turned, strict=True))
    canvas.text(left + 9 * CELL + 16, at + CELL / 2 + 5, f"{terms} = {number(y[2])} = y[2]", size=13)
    canvas.height = at + 2 * CELL + 8 + MARGIN
    return canvas


SQUARE: Grid = [[1, 5, 2], [4, 3, 6], [0, 2, 1]]

PICTURES: dict[str, Callable[[], Canvas]] = {
    "rungs": rungs,
    "max": lambda: returning(astride.max_pool, SQUARE, [[1, 2], [3, 4]], "Maximum: only the winner's place", kernel=2, stride=1),
    "mean": lambda: returning(astride.avg_pool, SQUARE, [[4, 8], [12, 16]], "Mean: equal shares", kernel=2, stride=1),
    "l2": lambda: returning(astride.lp_pool, [[3, 4, 3, 0]], [[1, 2, 3]], "Length: in over out", kernel=(1, 2), stride=1, p=2.0),
    "convolution": convolution,
    "transposed": transposed,
}
"""file name -> the drawing"""


def write(folder: Path) -> None:
    """Draw everything anew."""
    for name, draw in PICTURES.items():
        draw().save(folder / f"{name}.svg")


if __name__ == "__main__":
    write(Path(__file__).parent / "tutorial")
