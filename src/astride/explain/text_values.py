"""The input of a comparison and what each answer makes of it, as grids of numbers, those unlike the first answer's marked."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from .compare import Comparison, Side
from .numbers import number
from .text_windows import DIFFERENT, LABEL, MARK
from .values import MOST_DRAWN, Array, Values

if TYPE_CHECKING:
    from rich.text import Text

NAMES = {"y": "output", "dx": "gradient"}


def value_lines(comparison: Comparison) -> Iterable[Text]:
    """The input, then every group of answers that agree, output beside gradient. Nothing without an input."""
    from rich.text import Text

    if comparison.input is None or not comparison.answered:
        return
    x = comparison.input
    if x.ndim > 2 or max(x.shape) > MOST_DRAWN:
        yield Text(f"outputs and gradients of this input of {x.size} values are in --json", style="dim")
        yield Text()
        return
    yield Text("what becomes of the input (gradient of the output's sum)", style="bold")
    yield from _rows("  input", [("", x, None)])
    first = comparison.answered[0].values
    assert first is not None
    for group in value_groups(comparison):
        values = group[0].values
        assert values is not None
        names = ", ".join(side.rules for side in group)
        if values.y is None:
            error = values.error
            reason = "" if error is None else error.problem + (f" ({error.required})" if error.required else "")
            yield Text("\n".join(textwrap.wrap(f"{MARK} {names}: {reason}", 80, subsequent_indent="  ")), style=DIFFERENT)
            continue
        planes = [
            (NAMES[name], getattr(values, name), values.differing(first, name))
            for name in ("y", "dx")
            if getattr(values, name) is not None
        ]
        differs = any(marks is not None and marks.any() for _, _, marks in planes) or values.y.shape != _shape(first)
        head = f"{MARK if differs else ' '} {names}"
        if len(head) >= LABEL:
            yield Text(head, style="bold")
            head = ""
        yield from _rows(head, planes)
    yield Text()


def value_groups(comparison: Comparison) -> list[tuple[Side, ...]]:
    """The answers, those with the same numbers together."""
    found: dict[tuple[object, ...], list[Side]] = {}
    for side in comparison.answered:
        values = side.values
        if values is not None:
            found.setdefault((_key(values.y), _key(values.dx), str(values.error)), []).append(side)
    return [tuple(sides) for sides in found.values()]


def _key(values: Array | None) -> tuple[object, ...] | None:
    return None if values is None else (values.shape, tuple(number(float(v)) for v in values.ravel()))


def _shape(values: Values) -> tuple[int, ...]:
    return () if values.y is None else values.y.shape


def _rows(head: str, planes: list[tuple[str, Array, Array | None]]) -> Iterable[Text]:
    """Planes beside each other, or below where the line is too short."""
    from rich.text import Text

    blocks = [_block(name, np.atleast_2d(values), marks) for name, values, marks in planes]
    beside = sum(max(len(row.plain) for row in block) + 3 for block in blocks) + LABEL <= 80
    groups = [blocks] if beside else [[block] for block in blocks]
    for g, group in enumerate(groups):
        widths = [max(len(row.plain) for row in block) for block in group]
        for i in range(max(map(len, group))):
            line = Text(f"{head if g == i == 0 else '':<{LABEL}}")
            for block, width in zip(group, widths):
                row = block[i].copy() if i < len(block) else Text()
                row.pad_right(width - len(row.plain) + 3)
                line.append_text(row)
            line.rstrip()
            yield line


def _block(name: str, values: Array, marks: Array | None) -> list[Text]:
    """A plane's rows, its name in front of the first."""
    from rich.text import Text

    shown = [[number(float(v)) for v in row] for row in values]
    differs = np.zeros(values.shape, bool) if marks is None else np.atleast_2d(marks)
    # A mark takes the place of the space in front of its number, so that it is seen without colours.
    cell = max(len(text) for row in shown for text in row) + 2
    rows = []
    for i, row in enumerate(shown):
        line = Text(f"{name if i == 0 else '':<{9 if name else 0}}", style="dim")
        for text, marked in zip(row, differs[i]):
            line.append(f"{(MARK if marked else '') + text:>{cell}}", style=DIFFERENT if marked else "not dim")
        rows.append(line)
    return rows
