"""A comparison for the terminal, in 80 columns: windows drawn over the axis, then what else differs, then who says so."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .compare import MOST_ALONE, Comparison, Side
from .facts import sizes
from .text_values import value_lines
from .text_windows import DIFFERENT, LABEL, MARK, WIDTH, window_lines

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from .layer import LayerView

COLUMNS = 4
"""Answers side by side in one table of facts."""


def render(comparison: Comparison) -> Iterable[RenderableType]:
    """What to print, top to bottom, for a rich console."""
    from rich.text import Text

    yield _title(comparison)
    yield Text()
    yield from window_lines(comparison)
    yield from value_lines(comparison)
    yield from _refusals(comparison)
    if comparison.answered:
        groups = comparison.fact_groups()
        for start in range(0, len(groups), COLUMNS):
            yield _table(comparison, groups[start : start + COLUMNS])
            yield Text()
        yield from _computing(comparison)
    yield from _sources(comparison)
    yield from _unverified(comparison)


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

    said = [f"{name} {_short(name, value)}" for name, value in comparison.arguments.items()]
    text = Text(f"{comparison.op}", style="bold")
    text.append(f" of {sizes(comparison.sizes)}", style="not bold")
    text.append("".join(f", {part}" for part in [*said, comparison.dtype]), style="not bold")
    if comparison.w_shape is not None:
        text.append(f"\nx {comparison.shape}, w {comparison.w_shape}", style="not bold dim")
    return text


def _short(name: str, value: object) -> str:
    several = isinstance(value, tuple | list) and all(isinstance(v, int) for v in value)
    return sizes(tuple(value)) if isinstance(value, tuple | list) and several and name != "indices" else str(value)


def _refusals(comparison: Comparison) -> Iterable[Text]:
    """Who refuses, and why; those with one reason together."""
    from rich.text import Text

    reasons: dict[tuple[str | None, ...], list[str]] = {}
    for side in comparison.sides:
        if side.plan is None and side.error is not None:
            error = side.error
            reasons.setdefault((_without(side.rules, error.problem), error.required, error.because, error.hint), []).append(
                side.rules
            )
    for (problem, required, because, hint), names in reasons.items():
        who = f"{', '.join(names)} " if len(names) > 1 else f"{names[0]:<{LABEL - 2}}"
        if len(names) > MOST_ALONE:
            yield Text.assemble((f"{MARK} ", DIFFERENT), (textwrap.fill(who, WIDTH - 2, subsequent_indent="  "), "bold"))
            who = " " * (LABEL - 2)
        mark = (MARK, DIFFERENT) if who.strip() else " "
        verb = f"refuse{'' if len(names) > 1 else 's'}: "
        rest = textwrap.wrap(f"{problem}", WIDTH - 2 - len(who) - len(verb)) or [""]
        yield Text.assemble(mark, " ", (who, "bold"), (verb, "bold red"), rest[0])
        for line in rest[1:]:
            yield Text(f"{'':{2 + len(who) + len(verb)}}{line}")
        for name, value in (("required", required), ("because", because), ("try", hint)):
            if value:
                yield _indented(f"{name:<9} {value}", LABEL, "dim", hanging=10)
        yield Text()


def _without(rules: str, problem: str) -> str:
    """`has no lp_pool`, of whoever it is said."""
    return problem.removeprefix(f"{rules} ")


def _table(comparison: Comparison, groups: tuple[tuple[Side, ...], ...]) -> RenderableType:
    """The facts, a row each, those that differ marked and first; a column for each group of answers that agree."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 1, 0, 0), width=WIDTH, header_style="bold", show_edge=False)
    table.add_column("", width=1)
    table.add_column("", width=20, overflow="fold")
    for group in groups:
        table.add_column(", ".join(side.rules for side in group), ratio=1, overflow="fold")
    names = dict.fromkeys(name for side in comparison.answered for name in side.facts or {})
    first = comparison.answered[0].facts or {}
    for name in sorted(names, key=lambda name: name not in comparison.differing):
        differs = name in comparison.differing
        cells = [(group[0].facts or {}).get(name, "-") for group in groups]
        shown = [Text(cell, style=DIFFERENT if cell != first.get(name, "-") else "") for cell in cells]
        table.add_row(Text(MARK if differs else "", style=DIFFERENT), Text(name, style="bold" if differs else "dim"), *shown)
    return table


def _computing(comparison: Comparison) -> Iterable[Text]:
    """Who would compute it, and who would not and why; one line where all answers are the same."""
    from rich.text import Text

    lines: dict[str, list[str]] = {}
    for side in comparison.answered:
        path = " (general path: takes every plan of this operator)" if side.general_path else ""
        text = f"{side.computed_by}{path}" if side.computed_by else f"nobody: {side.error.problem if side.error else ''}"
        ways = [way for rung in side.rungs if rung.name == side.computed_by for way in rung.ways]
        text += "".join(f"\n{way}" for way in ways)
        declined: dict[str, list[str]] = {}
        for rung in side.rungs:
            if rung.declines is not None:
                declined.setdefault(rung.declines, []).append(rung.name)
        for reason, names in declined.items():
            text += f"\n{', '.join(names)} {'declines' if len(names) == 1 else 'decline'}: {reason}"
        lines.setdefault(text, []).append(side.rules)
    for text, names in lines.items():
        everyone = len(lines) == 1
        yield _indented("computed by" + ("" if everyone else f" for {', '.join(names)}"), 0, "bold", hanging=2)
        for line in text.splitlines():
            yield _indented(line)
    yield Text()


def _sources(comparison: Comparison) -> Iterable[Text]:
    from rich.text import Text

    sources = [(side.rules, side.source) for side in comparison.sides if side.source is not None]
    if sources:
        yield Text("rules", style="bold")
    for name, source in sources:
        if len(sources) > MOST_ALONE:
            yield _indented(f"{name:<{LABEL - 2}}{source.stands_for}, {source.path}:{source.line}", 2, hanging=LABEL - 2)
            continue
        yield Text(f"  {name:<{LABEL - 2}}{source.stands_for}")
        yield _indented(source.says, LABEL)
        yield _indented(f"{source.path}:{source.line}" + (f", from {source.source}" if source.source else ""), LABEL, "dim")


def _unverified(comparison: Comparison) -> Iterable[Text]:
    """What the rules have from headers and manuals alone, each sentence once."""
    from rich.text import Text

    said: dict[str, list[str]] = {}
    for side in comparison.sides:
        for sentence in side.source.unverified if side.source is not None else ():
            said.setdefault(sentence, []).append(side.rules)
    if said:
        yield Text()
        yield Text("unverified: read, not seen to be so", style="bold yellow")
    for sentence, names in said.items():
        yield _indented(f"{', '.join(names):<{LABEL - 2}}{sentence}", 2, hanging=LABEL - 2)


def _indented(line: str, by: int = 2, style: str = "", *, hanging: int = 0) -> Text:
    """A paragraph with every line indented, broken at WIDTH."""
    from rich.text import Text

    start, rest = " " * by, " " * (by + hanging)
    return Text("\n".join(textwrap.wrap(line, WIDTH, initial_indent=start, subsequent_indent=rest)), style=style)


__all__ = ["render", "render_layer"]
