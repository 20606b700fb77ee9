"""The windows of a comparison for the terminal: each under the axis it lies on, all answers in the same columns.

0 1 2     pixels that a window reads
.         padding, skipped        o   a value that takes part        (n)   outside, reads pixel n
x         past the padding: what rounding up leaves
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..plan.kinds import Edge
from .columns import Columns, columns, shown
from .compare import Comparison, Side
from .windows import Place, Tap, Window, described, edge_of, is_transposed, written

if TYPE_CHECKING:
    from rich.text import Text

WIDTH = 80
LABEL = 14
MOST_WINDOWS = 12
MARK = "≠"
STYLES = {Place.PIXEL: "bold cyan", Place.GAP: "dim", Place.PADDING: "yellow", Place.OVERHANG: "bold red"}
DIFFERENT = "bold yellow"


def window_lines(comparison: Comparison) -> Iterable[Text]:
    """Every axis (one of them, where all are alike), and the legend. Nothing where there are no windows."""
    sides = [side for side in comparison.answered if side.axes]
    if sides:
        alike = comparison.alike()
        for a in range(1 if alike else len(sides[0].axes)):
            yield from _axis(comparison, sides, a, alike)
        yield from _legend(sides)


def _axis(comparison: Comparison, sides: list[Side], a: int, alike: bool) -> Iterable[Text]:
    """One axis of every answer, all in the same columns."""
    from rich.text import Text

    names = [axis.name for axis in sides[0].axes]
    where = " and ".join(names) if alike and len(names) > 1 else names[a]
    several = alike and len(names) > 1
    yield Text.assemble(
        (f"{'axes' if several else 'axis'} {where}", "bold"), f"{' (alike)' if several else ''}: the {described(sides[0].plan)}"
    )
    axes = [side.axes[a] for side in sides]
    digits = max(len(str(axis.last)) for axis in axes)
    cell = digits + 1 if all(_edge(side) in (Edge.SKIP, Edge.CONSTANT) for side in sides) else digits + 3
    cols = columns(axes, (WIDTH - LABEL - 8) // cell)
    for group in comparison.groups(a):
        yield from _windows(comparison, group, a, cols, cell)
    yield Text()


def _edge(side: Side) -> Edge:
    return edge_of(side.plan)


def _windows(comparison: Comparison, group: tuple[Side, ...], a: int, cols: Columns, cell: int) -> Iterable[Text]:
    """The windows of answers that agree in them."""
    from rich.text import Text

    side, first = group[0], comparison.answered[0]
    axis = side.axes[a]
    yield from _head(group, a, differs=(axis.size, axis.out) != (first.axes[a].size, first.axes[a].out))
    for window in shown(axis, cols, MOST_WINDOWS):
        if isinstance(window, int):
            yield Text(f"{'':{LABEL}}{'...':>{cell}}  {window} more", style="dim")
        else:
            yield _window(comparison, side, a, window, cols, cell)
    for index in range(axis.out, min(first.axes[a].out, axis.out + 3)):
        yield Text(f"{MARK} no {_kind(side)} {index}", style=DIFFERENT)
    if axis.unread:
        runs = ", ".join(str(lo) if lo == hi else f"{lo}-{hi}" for lo, hi in axis.unread[:6])
        more = ", ..." if len(axis.unread) > 6 else ""
        verb = "nothing is written to output pixel" if is_transposed(side.plan) else "no window reads pixel"
        yield Text(f"{'':{LABEL}} {verb} {runs}{more}", style="yellow")


def _head(group: tuple[Side, ...], a: int, *, differs: bool) -> Iterable[Text]:
    """Names, sizes and formulas."""
    from rich.text import Text

    mark = (f"{MARK if differs else ' '} ", DIFFERENT)
    axis = group[0].axes[a]
    size, out = (axis.out, axis.size) if is_transposed(group[0].plan) else (axis.size, axis.out)
    sizes = (f"{size} -> {out}", DIFFERENT if differs else "bold")
    if len(group) == 1:
        yield Text.assemble(mark, (f"{group[0].rules:<{LABEL - 2}}", "bold"), sizes, f"   {axis.formula}")
        return
    names = textwrap.fill(", ".join(side.rules for side in group), WIDTH - 2, subsequent_indent="  ")
    yield Text.assemble(mark, (names, "bold"))
    formulas = list(dict.fromkeys(side.axes[a].formula for side in group))
    yield Text.assemble(" " * LABEL, sizes, f"   {formulas[0]}")
    for formula in formulas[1:4]:
        yield Text(f"{'':{LABEL + len(sizes[0]) + 3}}{formula}")


def _window(comparison: Comparison, side: Side, a: int, window: Window, cols: Columns, cell: int) -> Text:
    from rich.text import Text

    differs = comparison.differs(side, a, window)
    label = f"{_kind(side)} {window.index}"
    text = Text.assemble((f"{MARK if differs else ' '} ", DIFFERENT), (f"{label:<{LABEL - 2}}", "dim"))
    taps = {tap.position: tap for tap in window.taps}
    for position in cols:
        tap = None if position is None else taps.get(position)
        inside = position is None and taps and min(taps) < _after(cols) and max(taps) >= _after(cols)
        text.append(f"{_sign(side, tap) if tap else '...' if inside else '':>{cell}}", style=STYLES[tap.place] if tap else "dim")
    if window.divisor is not None:
        text.append(f"  / {window.divisor}", style="magenta")
    text.rstrip()
    return text


def _kind(side: Side) -> str:
    return written(side.plan) or "window"


def _after(cols: Columns) -> int:
    """The position behind the gap."""
    return next(p for p in cols[cols.index(None) + 1 :] if p is not None)


def _sign(side: Side, tap: Tap) -> str:
    if tap.place is Place.PIXEL:
        return str(tap.reads)
    if tap.reads is not None:
        return f"({tap.reads})"
    if _edge(side) is Edge.CONSTANT:
        return "o" if tap.place is Place.PADDING else "x"
    return {Place.PADDING: ".", Place.GAP: ".", Place.OVERHANG: "x"}[tap.place]


def _legend(sides: list[Side]) -> Iterable[Text]:
    """Only the signs that occur, and what the marks mean."""
    from rich.text import Text

    met = {(tap.place, _sign(side, tap)) for side in sides for axis in side.axes for w in axis.windows for tap in w.taps}
    transposed = is_transposed(sides[0].plan)
    lines = []
    if (Place.PADDING, ".") in met:
        zero = "0" if sides[0].plan is not None and sides[0].plan.op == "unfold" else "skipped"
        lines.append(".    outside the output: dropped" if transposed else f".    padding, {zero}")
    if (Place.PADDING, "o") in met:
        lines.append("o    padding that takes part, with its own value")
    if any(sign.startswith("(") for _, sign in met):
        lines.append("(n)  outside the input: reads pixel n")
    if any(place is Place.OVERHANG and sign == "x" for place, sign in met):
        lines.append("x    past input and padding: the output was rounded up")
    if any(w.divisor is not None for side in sides for axis in side.axes for w in axis.windows):
        rank = len(sides[0].axes)
        lines.append("/ n  what the average divides by" + (", to be multiplied over the axes" if rank > 1 else ""))
    if len(sides) > 1:
        lines.append(f"{MARK}    unlike {sides[0].rules}")
    for line in lines:
        yield Text(f"  {line}", style="dim")
    yield Text()
