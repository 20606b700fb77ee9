"""A comparison for the terminal, in 80 columns: windows drawn over the axis, then what else differs, then who says so.

0 1 2     pixels that a window reads
.         padding, skipped        o   a zero that takes part        (n)   padding that repeats pixel n
x         past the padding: what rounding up leaves
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..plan import ConvPlan, PoolPlan
from ..plan.kinds import Edge
from .columns import Columns, columns, shown
from .compare import Comparison, Side
from .facts import sizes
from .windows import Place, Tap, Window, is_transposed

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from .layer import LayerView

WIDTH = 80
LABEL = 14
MOST_WINDOWS = 12
MARK = "≠"
STYLES = {Place.PIXEL: "bold cyan", Place.GAP: "dim", Place.PADDING: "yellow", Place.OVERHANG: "bold red"}
DIFFERENT = "bold yellow"


def render(comparison: Comparison) -> Iterable[RenderableType]:
    """What to print, top to bottom, for a rich console."""
    from rich.text import Text

    yield _title(comparison)
    yield Text()
    answered = [side for side in comparison.answered if side.axes]
    if answered:
        alike = comparison.alike()
        for a in range(1 if alike else len(answered[0].axes)):
            yield from _axis(comparison, answered, a, alike)
        yield from _legend(answered)
    for side in comparison.sides:
        if side.plan is None and side.error is not None:
            yield from _refusal(side)
    if comparison.answered:
        yield _table(comparison)
        yield Text()
        yield from _computing(comparison)
    yield from _sources(comparison)


def render_layer(layer: LayerView) -> Iterable[RenderableType]:
    """One layer of a network: what it computes and on what."""
    from rich.text import Text

    yield Text.assemble((layer.name, "bold"), f"  {layer.type}" + (f", {layer.summary}" if layer.summary else ""))
    if layer.formula:
        yield _indented(layer.formula, 2, "cyan", hanging=4)
    for what, operands in (("reads", layer.bottoms), ("makes", layer.tops)):
        for name, shape in operands:
            yield Text(f"  {what:<8}{name} {shape}")
    for role, shape in zip(("w", "b") if len(layer.params) <= 2 else map(str, range(len(layer.params))), layer.params):
        yield Text(f"  {'learns':<8}{role} {shape}: {math.prod(shape):,} numbers")
    if layer.products:
        yield Text(f"  {layer.products:,} multiplications a pass")
    yield Text()


def _title(comparison: Comparison) -> Text:
    from rich.text import Text

    said = [f"{name} {_short(value)}" for name, value in comparison.arguments.items()]
    text = Text(f"{comparison.op}", style="bold")
    text.append(f" of {sizes(comparison.sizes)}", style="not bold")
    text.append("".join(f", {part}" for part in [*said, comparison.dtype]), style="not bold")
    if comparison.w_shape is not None:
        text.append(f"\nx {comparison.shape}, w {comparison.w_shape}", style="not bold dim")
    return text


def _short(value: object) -> str:
    return sizes(tuple(value)) if isinstance(value, tuple | list) and all(isinstance(v, int) for v in value) else str(value)


def _axis(comparison: Comparison, sides: list[Side], a: int, alike: bool) -> Iterable[Text]:
    """One axis of every answer, all in the same columns."""
    from rich.text import Text

    names = [axis.name for axis in sides[0].axes]
    where = " and ".join(names) if alike and len(names) > 1 else names[a]
    what = "the pixels each window reads"
    if is_transposed(sides[0].plan):
        what = "the output pixels that each input pixel adds to"
    several = alike and len(names) > 1
    yield Text.assemble((f"{'axes' if several else 'axis'} {where}", "bold"), f"{' (alike)' if several else ''}: {what}")
    axes = [side.axes[a] for side in sides]
    digits = max(len(str(axis.last)) for axis in axes)
    cell = digits + 1 if all(_edge(side) in (Edge.SKIP, Edge.CONSTANT) for side in sides) else digits + 3
    cols = columns(axes, (WIDTH - LABEL - 8) // cell)
    for side in sides:
        yield from _windows(comparison, side, a, cols, cell)
    yield Text()


def _edge(side: Side) -> Edge:
    return side.plan.edge if isinstance(side.plan, PoolPlan | ConvPlan) else Edge.SKIP


def _windows(comparison: Comparison, side: Side, a: int, cols: Columns, cell: int) -> Iterable[Text]:
    from rich.text import Text

    axis = side.axes[a]
    first = comparison.answered[0]
    differs = axis.out != first.axes[a].out
    size, out = (axis.out, axis.size) if is_transposed(side.plan) else (axis.size, axis.out)
    yield Text.assemble(
        (f"{MARK if differs else ' '} ", DIFFERENT),
        (f"{side.rules:<{LABEL - 2}}", "bold"),
        (f"{size} -> {out}", DIFFERENT if differs else "bold"),
        f"   {axis.formula}",
    )
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
        verb = "nothing is added to output pixel" if is_transposed(side.plan) else "no window reads pixel"
        yield Text(f"{'':{LABEL}} {verb} {runs}{more}", style="yellow")


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
    return "pixel" if is_transposed(side.plan) else "window"


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
        lines.append(".    outside the output: dropped" if transposed else ".    padding, skipped")
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


def _refusal(side: Side) -> Iterable[Text]:
    from rich.text import Text

    error = side.error
    assert error is not None
    yield Text.assemble((f"{MARK} ", DIFFERENT), (f"{side.rules:<{LABEL - 2}}", "bold"), ("refuses: ", "bold red"), error.problem)
    for name, value in (("required", error.required), ("because", error.because), ("try", error.hint)):
        if value:
            yield _indented(f"{name:<9} {value}", LABEL, "dim", hanging=10)
    yield Text()


def _table(comparison: Comparison) -> RenderableType:
    """The facts, a row each, those that differ marked and first."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 1, 0, 0), width=WIDTH, header_style="bold", show_edge=False)
    table.add_column("", width=1)
    table.add_column("", width=20, overflow="fold")
    for side in comparison.answered:
        table.add_column(side.rules, ratio=1, overflow="fold")
    names = dict.fromkeys(name for side in comparison.answered for name in side.facts or {})
    for name in sorted(names, key=lambda name: name not in comparison.differing):
        differs = name in comparison.differing
        cells = [(side.facts or {}).get(name, "-") for side in comparison.answered]
        shown = [Text(cell, style=DIFFERENT if cell != cells[0] else "") for cell in cells]
        table.add_row(Text(MARK if differs else "", style=DIFFERENT), Text(name, style="bold" if differs else "dim"), *shown)
    return table


def _computing(comparison: Comparison) -> Iterable[Text]:
    """Who would compute it, and who would not and why; one line where all answers are the same."""
    from rich.text import Text

    lines: dict[str, list[str]] = {}
    for side in comparison.answered:
        path = " (general path: takes every plan of this operator)" if side.general_path else ""
        text = f"{side.computed_by}{path}" if side.computed_by else f"nobody: {side.error.problem if side.error else ''}"
        declined: dict[str, list[str]] = {}
        for rung in side.rungs:
            if rung.declines is not None:
                declined.setdefault(rung.declines, []).append(rung.name)
        for reason, names in declined.items():
            text += f"\n{', '.join(names)} {'declines' if len(names) == 1 else 'decline'}: {reason}"
        lines.setdefault(text, []).append(side.rules)
    for text, names in lines.items():
        everyone = len(lines) == 1
        yield Text("computed by" + ("" if everyone else f" for {', '.join(names)}"), style="bold")
        for line in text.splitlines():
            yield _indented(line)
    yield Text()


def _sources(comparison: Comparison) -> Iterable[Text]:
    from rich.text import Text

    sources = [(side.rules, side.source) for side in comparison.sides if side.source is not None]
    if sources:
        yield Text("rules", style="bold")
    for name, source in sources:
        yield Text(f"  {name:<{LABEL - 2}}{source.stands_for}")
        yield _indented(source.says, LABEL)
        yield _indented(f"{source.path}:{source.line}" + (f", from {source.source}" if source.source else ""), LABEL, "dim")


def _indented(line: str, by: int = 2, style: str = "", *, hanging: int = 0) -> Text:
    """A paragraph with every line indented, broken at WIDTH."""
    import textwrap

    from rich.text import Text

    start, rest = " " * by, " " * (by + hanging)
    return Text("\n".join(textwrap.wrap(line, WIDTH, initial_indent=start, subsequent_indent=rest)), style=style)


__all__ = ["render", "render_layer"]
