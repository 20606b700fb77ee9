"""A comparison of rules as a picture: the input as a row of pixels, under it every window where it lies."""

from __future__ import annotations

from collections.abc import Callable

from ..explain import AxisView, Comparison, Place, Side, Tap, Window
from ..explain.columns import Columns, columns, shown
from ..explain.facts import sizes
from ..explain.windows import described, edge_of, is_transposed, written
from ..plan.kinds import Edge
from .canvas import GREY, INK, PALE, Canvas, text_width, wrapped
from .values import draw_values

PIXEL, READ, ZERO, PAST, AMBER = "#dbeafe", "#2268b5", "#a8620a", "#cf222e", "#b45309"
SHADES = ("#2268b5", "#1f7a8c")
MARGIN, LABEL, NOTE = 28.0, 118.0, 250.0
CELL, LEAST_CELL = 30.0, 17.0
ROW, GAP = 20.0, 26.0
MOST_COLUMNS, MOST_WINDOWS, COLUMNS = 32, 14, 4


def draw_comparison(comparison: Comparison, head: Callable[[Canvas], float] | None = None) -> Canvas:
    """One panel an answer and axis, all in the same columns; what the first answer has otherwise is marked.

    `head` draws a title of its own and says where it ends.
    """
    canvas = Canvas()
    sides = [side for side in comparison.answered if side.axes]
    shown_axes = range(1 if comparison.alike() else len(sides[0].axes)) if sides else range(0)
    axes = [side.axes[a] for side in sides for a in shown_axes]
    cols = columns(axes, MOST_COLUMNS) if axes else []
    cell = max(LEAST_CELL, min(CELL, 900 / max(len(cols), 1)))
    canvas.width = max(2 * MARGIN + LABEL + len(cols) * cell + NOTE, 640)
    y = _title(canvas, comparison) if head is None else head(canvas)
    for a in shown_axes:
        for group in comparison.groups(a):
            y = _Panel(canvas, comparison, group, a, cols, cell).draw(y) + GAP
    for side in comparison.sides:
        if not side.axes:
            y = _without_windows(canvas, side, y) + GAP
    y = draw_values(canvas, comparison, y)
    y = _differences(canvas, comparison, y)
    canvas.height = (_legend(canvas, sides, y) if sides else y) + MARGIN / 2
    return canvas


def _title(canvas: Canvas, comparison: Comparison) -> float:
    said = "".join(f", {name} {_said(value)}" for name, value in comparison.arguments.items())
    canvas.text(MARGIN, 42, f"{comparison.op} of {sizes(comparison.sizes)}{said}", size=20, bold=True)
    what = described(comparison.answered[0].plan if comparison.answered else None)
    where = ""
    if len(comparison.sizes) > 1 and comparison.alike():
        where = ", along any of its axes (all are alike)"
    canvas.text(MARGIN, 64, f"The {what}{where}, by each framework's rules", fill=GREY)
    return 84.0


def _said(value: object) -> str:
    return sizes(tuple(value)) if isinstance(value, tuple | list) and all(isinstance(v, int) for v in value) else str(value)


def _without_windows(canvas: Canvas, side: Side, y: float) -> float:
    """A refusal, or an answer that has no windows to draw."""
    canvas.text(MARGIN, y + 20, side.rules, size=16, bold=True)
    if side.error is not None:
        width = canvas.width - 2 * MARGIN - LABEL
        for line in wrapped(f"refuses: {side.error.problem}", width):
            canvas.text(MARGIN + LABEL, y + 20, line, fill=PAST)
            y += 18
        for line in wrapped(f"it requires {side.error.required}" if side.error.required else "", width, 11):
            canvas.text(MARGIN + LABEL, y + 18, line, size=11, fill=GREY)
            y += 15
        return y + 8
    elif side.facts is not None:
        canvas.text(MARGIN + LABEL, y + 20, f"output {side.facts['output']}     {'; '.join(side.formulas)}", fill=GREY)
    return y + 24


class _Panel:
    """One answer along one axis, or several that have the same windows there."""

    def __init__(
        self, canvas: Canvas, comparison: Comparison, group: tuple[Side, ...], a: int, cols: Columns, cell: float
    ) -> None:
        self.canvas, self.comparison, self.group, self.a, self.cols, self.cell = canvas, comparison, group, a, cols, cell
        side = self.side = group[0]
        self.axis: AxisView = side.axes[a]
        self.first = comparison.answered[0]
        self.left = MARGIN + LABEL
        self.right = self.left + len(cols) * cell
        self.transposed = is_transposed(side.plan)

    def draw(self, y: float) -> float:
        """The panel from y on; where it ends."""
        y = self._head(y) + 8
        self._pixels(y)
        y += self.cell + 7
        for window in shown(self.axis, self.cols, MOST_WINDOWS):
            if isinstance(window, int):
                self.canvas.text(self.left, y + 13, f"... {window} more", size=11, fill=GREY)
            else:
                self._window(window, y)
            y += ROW
        missing = self.first.axes[self.a].out - self.axis.out
        if missing > 0:
            which = f"no window {self.axis.out}" + (" and on" if missing > 1 else "")
            self.canvas.text(self.left - 10, y + 13, which, size=11, fill=AMBER, anchor="end", bold=True)
            y += ROW
        return y

    def _head(self, y: float) -> float:
        canvas, axis = self.canvas, self.axis
        canvas.line((MARGIN, y), (canvas.width - MARGIN, y), stroke=PALE)
        y = self._names(y)
        alike = self.comparison.alike()
        x = self.left
        if not alike:
            canvas.text(x, y + 24, f"axis {axis.name}", size=13, fill=GREY)
            x += 56
        size, out = (axis.out, axis.size) if self.transposed else (axis.size, axis.out)
        differs = (axis.size, axis.out) != (self.first.axes[self.a].size, self.first.axes[self.a].out)
        color = AMBER if differs else INK
        canvas.text(x, y + 24, str(size), size=16, bold=True, fill=color)
        x += text_width(str(size), 16, bold=True) + 6
        canvas.arrow((x, y + 18.5), (x + 20, y + 18.5), stroke=color, width=1.5, head=6)
        x += 26
        canvas.text(x, y + 24, str(out), size=16, bold=True, fill=color)
        x += text_width(str(out), 16, bold=True) + 16
        canvas.text(x, y + 24, axis.formula, fill=GREY)
        x += text_width(axis.formula) + 16
        if differs:
            self._badge(x, y + 11, f"unlike {self.first.rules}")
        return y + 32

    def _names(self, y: float) -> float:
        """The names to the left of the sizes, or above them where there are several. The line that the sizes stand in."""
        if len(self.group) == 1:
            self.canvas.text(MARGIN, y + 24, self.side.rules, size=16, bold=True)
            return y
        lines = wrapped(", ".join(side.rules for side in self.group), self.canvas.width - 2 * MARGIN, 16)
        for i, line in enumerate(lines):
            self.canvas.text(MARGIN, y + 24 + 21 * i, line, size=16, bold=True)
        return y + 23 * len(lines)

    def _badge(self, x: float, y: float, text: str) -> None:
        self.canvas.box(x, y, text_width(text, 11, bold=True) + 14, 18, fill="#fff4e0", stroke=AMBER, radius=9)
        self.canvas.text(x + 7, y + 13, text, size=11, fill=AMBER, bold=True)

    def _pixels(self, y: float) -> None:
        """The row of positions: pixels with their numbers, padding dashed, what lies behind it red."""
        canvas, axis, cell = self.canvas, self.axis, self.cell
        touched = {tap.position: tap for window in axis.windows for tap in window.taps}
        unread = {p for lo, hi in axis.unread for p in (range(lo, hi + 1) if hi - lo < 10_000 else ())}
        kind = "output" if self.transposed else "input"
        canvas.text(self.left - 10, y + cell / 2 + 4, kind, size=11, fill=GREY, anchor="end")
        for i, position in enumerate(self.cols):
            x = self.left + i * cell
            if position is None:
                canvas.text(x + cell / 2, y + cell / 2 + 4, "...", fill=GREY, anchor="middle")
            elif 0 <= position < axis.size:
                lost = position in unread
                canvas.box(x + 1, y + 1, cell - 2, cell - 2, fill="#f1f3f5" if lost else PIXEL, radius=3)
                self._number(x, y, str(position), GREY if lost else INK)
            elif position in touched or -axis.pad_lo <= position < axis.size + axis.pad_hi:
                self._outside(x, y, position, touched.get(position))
        if axis.unread:
            runs = ", ".join(str(lo) if lo == hi else f"{lo}-{hi}" for lo, hi in axis.unread[:3])
            more = ", ..." if len(axis.unread) > 3 else ""
            text = f"nothing written to {runs}{more}" if self.transposed else f"no window reads {runs}{more}"
            canvas.text(self.right + 12, y + cell / 2 + 4, text, size=11, fill=AMBER)

    def _outside(self, x: float, y: float, position: int, tap: Tap | None) -> None:
        cell, past = self.cell, tap is not None and tap.place is Place.OVERHANG
        color = PAST if past else ZERO
        self.canvas.box(x + 1.5, y + 1.5, cell - 3, cell - 3, stroke=color, radius=3, dashed=True)
        if tap is not None and tap.reads is not None:
            self._number(x, y, f"={tap.reads}", color)
        elif not past and _edge(self.side) is Edge.CONSTANT:
            self._number(x, y, "0", color)

    def _number(self, x: float, y: float, text: str, fill: str) -> None:
        size = min(13, 1.7 * (self.cell - 3) / max(len(text), 1))
        self.canvas.text(x + self.cell / 2, y + self.cell / 2 + size * 0.36, text, size=size, fill=fill, anchor="middle")

    def _window(self, window: Window, y: float) -> None:
        canvas, cell = self.canvas, self.cell
        differs = self.comparison.differs(self.side, self.a, window)
        kind = written(self.side.plan) or "window"
        label = f"{kind} {window.index}"
        canvas.text(self.left - 10, y + 14, label, size=11, fill=AMBER if differs else GREY, anchor="end", bold=differs)
        at = {position: i for i, position in enumerate(self.cols) if position is not None}
        places = [at[tap.position] for tap in window.taps if tap.position in at]
        if not places:
            return
        x0, x1 = self.left + min(places) * cell, self.left + (max(places) + 1) * cell
        canvas.box(x0 + 1, y + 8, x1 - x0 - 2, 3, fill=PALE)
        for tap in window.taps:
            if tap.position in at:
                self._tap(self.left + at[tap.position] * cell, y, tap, SHADES[window.index % 2])
        if differs:
            canvas.box(x0 - 1, y, x1 - x0 + 2, ROW - 1, stroke=AMBER, line=1.5, radius=4)
        if window.divisor is not None:
            canvas.text(self.right + 12, y + 14, f"divides by {window.divisor}", size=11, fill=GREY)

    def _tap(self, x: float, y: float, tap: Tap, shade: str) -> None:
        """Full where a value is taken, hollow where the tap is skipped, red where it lies past everything."""
        width, height, top = self.cell - 6, ROW - 9, y + 4
        takes = tap.reads is not None or _edge(self.side) is Edge.CONSTANT
        if tap.place is Place.PIXEL or tap.place is Place.GAP:
            self.canvas.box(x + 3, top, width, height, fill=shade, radius=2)
        elif takes:
            self.canvas.box(x + 3, top, width, height, fill=ZERO, radius=2)
        else:
            color = PAST if tap.place is Place.OVERHANG else ZERO
            self.canvas.box(x + 3, top, width, height, fill="#ffffff", stroke=color, radius=2)


def _edge(side: Side) -> Edge:
    return edge_of(side.plan)


def _differences(canvas: Canvas, comparison: Comparison, y: float) -> float:
    """What else differs, a row each and a column an answer, at most COLUMNS of them side by side."""
    names = [name for name in comparison.differing if name not in ("output", "padding")]
    if not names:
        return y
    canvas.line((MARGIN, y), (canvas.width - MARGIN, y), stroke=PALE)
    groups = comparison.fact_groups()
    for start in range(0, len(groups), COLUMNS):
        chosen = groups[start : start + COLUMNS]
        y = _facts(canvas, comparison, chosen, names, y + 24, min(len(groups), COLUMNS))
    return y + 8


def _facts(
    canvas: Canvas, comparison: Comparison, groups: tuple[tuple[Side, ...], ...], names: list[str], y: float, beside: int
) -> float:
    width = (canvas.width - 2 * MARGIN - LABEL - 30) / beside
    columns = [MARGIN + LABEL + 30 + i * width for i in range(len(groups))]
    canvas.text(MARGIN, y, "What else differs", bold=True)
    heads = [wrapped(", ".join(side.rules for side in group), width - 14) for group in groups]
    for x, head in zip(columns, heads):
        for i, line in enumerate(head):
            canvas.text(x, y + 16 * i, line, bold=True)
    y += 16 * max(map(len, heads)) + 4
    first = comparison.answered[0].facts or {}
    for name in names:
        cells = [(group[0].facts or {}).get(name, "-") for group in groups]
        lines = [wrapped(cell, width - 14, 11) for cell in cells]
        canvas.text(MARGIN, y, name, size=11, fill=GREY)
        for x, cell, broken in zip(columns, cells, lines):
            for i, line in enumerate(broken):
                canvas.text(x, y + 15 * i, line, size=11, fill=INK if cell == first.get(name, "-") else AMBER)
        y += 15 * max(map(len, lines)) + 5
    return y


def _legend(canvas: Canvas, sides: list[Side], y: float) -> float:
    """The signs that occur, in words."""
    met = [(side, tap) for side in sides for axis in side.axes for window in axis.windows for tap in window.taps]
    verb = "written" if any(is_transposed(side.plan) for side in sides) else "read"
    first = "a place that is written to" if verb == "written" else "a pixel that is read"
    skipped = "0" if sides[0].plan is not None and sides[0].plan.op == "unfold" else "skipped"
    rows: list[tuple[str | None, str, str]] = [(SHADES[0], SHADES[0], first)]
    outside = [(side, tap) for side, tap in met if tap.place in (Place.PADDING, Place.OVERHANG)]
    if any(tap.reads is not None or _edge(side) is Edge.CONSTANT for side, tap in outside):
        rows.append((ZERO, ZERO, "outside, takes part"))
    if any(tap.place is Place.PADDING and tap.reads is None and _edge(side) is not Edge.CONSTANT for side, tap in outside):
        rows.append((None, ZERO, "outside, dropped" if verb == "written" else f"padding, {skipped}"))
    if any(tap.place is Place.OVERHANG for _, tap in outside):
        rows.append((None, PAST, "past the padding: the output was rounded up"))
    canvas.line((MARGIN, y), (canvas.width - MARGIN, y), stroke=PALE)
    if len(sides) > 1:
        rows.append((None, AMBER, f"unlike {sides[0].rules}"))
    x, y = MARGIN, y + 14
    for fill, stroke, text in rows:
        width = 27 + text_width(text, 11) + 22
        if x + width > canvas.width - MARGIN and x > MARGIN:
            x, y = MARGIN, y + 22
        canvas.box(x, y, 20, 11, fill=fill or "#ffffff", stroke=stroke, line=1.5 if stroke == AMBER else 1, radius=2)
        if fill == SHADES[0]:
            canvas.box(x + 10.5, y, 10, 11, fill=SHADES[1], radius=2)
        canvas.text(x + 27, y + 10, text, size=11, fill=GREY)
        x += width
    return y + 20
