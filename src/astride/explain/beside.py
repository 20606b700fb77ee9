"""A translation's two answers beside each other: the source's windows, and those of the target's steps on the same input."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .compare import Comparison, Side
from .facts import facts
from .formulas import formulas
from .operators import keywords
from .search import Windowed
from .steps import MODES, Steps
from .translate import Translation
from .windows import AxisView, Place, Tap, Window, axis_views, is_transposed


def beside(found: Translation) -> Comparison:
    """Both as a comparison, positions counted in x as it was before it was padded and y as it is after it was cropped."""
    o = found.operation
    given = keywords(o.op, found.source, o.arguments) | dict(o.arguments)
    sides = [_side(found.source, found.source_plan, given)]
    if found.steps is not None and found.target_plan is not None:
        steps = found.steps
        its = _side(found.target, found.target_plan, keywords(o.op, found.target, steps.arguments) | dict(steps.arguments))
        placed = [_placed(view, a, steps, found.sizes[a], is_transposed(its.plan)) for a, view in enumerate(its.axes)]
        sides.append(replace(its, axes=tuple(placed)))
    shape = (1, 2, *found.sizes)
    return Comparison(o.op, shape, None, "float64", "channels_first", {}, tuple(sides))


def _side(name: str, plan: Windowed, given: dict[str, Any]) -> Side:
    texts = formulas(name, plan, given)
    return Side(name, given, plan, None, axis_views(plan, texts, given), texts, facts(plan))


def _placed(view: AxisView, a: int, steps: Steps, size: int, transposed: bool) -> AxisView:
    """One axis of the target: taps moved to where they lie in x (or y), windows that are cropped left out."""
    formula = view.formula
    lo, hi = (0, 0) if steps.pads is None else steps.pads[a]
    begin, end = (0, None) if steps.crop is None else steps.crop[a]
    if lo or hi:
        formula += f", of {view.size} with {lo} before and {hi} behind"
    if transposed:
        if steps.crop is None or end is None:
            return view
        windows = tuple(replace(w, taps=tuple(_moved(tap, begin, end - begin) for tap in w.taps)) for w in view.windows)
        unread = tuple((max(i - begin, 0), min(j, end - 1) - begin) for i, j in view.unread if j >= begin and i < end)
        return replace(
            view, size=end - begin, windows=windows, unread=unread, formula=f"{formula}, of which {begin} to {end - 1} are kept"
        )
    source = _sources(size, lo, hi, steps.fill)
    kept = [w for w in view.windows if w.index >= begin and (end is None or w.index < end)]
    windows = tuple(Window(w.index - begin, tuple(_read(tap, lo, size, source) for tap in w.taps), w.divisor) for w in kept)
    out = view.out if end is None else end - begin
    if out != view.out or begin:
        formula += f", of which {begin} to {begin + out - 1} are kept"
    touched = {tap.position for w in windows for tap in w.taps}
    unread = _runs([p for p in range(size) if p not in touched]) if view.left_out == 0 else view.unread
    return replace(
        view,
        size=size,
        out=out,
        windows=windows,
        formula=formula,
        unread=unread,
        pad_lo=view.pad_lo + lo,
        pad_hi=view.pad_hi + hi,
    )


def _sources(size: int, lo: int, hi: int, fill: float | str) -> dict[int, int]:
    """Position outside x -> the pixel that the padding repeats there; none where it is a number."""
    if not isinstance(fill, str):
        return {}
    before, after = max(lo, 0), max(hi, 0)
    mode: Any = MODES[fill]
    return {i - before: int(p) for i, p in enumerate(np.pad(np.arange(size), (before, after), mode=mode))}


def _read(tap: Tap, lo: int, size: int, source: dict[int, int]) -> Tap:
    position = tap.position - lo
    if 0 <= position < size:
        return Tap(position, tap.place, position if tap.reads is not None else None)
    if tap.place is Place.PIXEL:
        return Tap(position, Place.PADDING, source.get(position))
    return Tap(position, tap.place, tap.reads)


def _moved(tap: Tap, begin: int, size: int) -> Tap:
    position = tap.position - begin
    if 0 <= position < size:
        return Tap(position, Place.PIXEL, position)
    return Tap(position, Place.PADDING, None)


def _runs(places: list[int]) -> tuple[tuple[int, int], ...]:
    """Ranges (first, last) of ascending numbers."""
    found: list[tuple[int, int]] = []
    for place in places:
        if found and found[-1][1] == place - 1:
            found[-1] = (found[-1][0], place)
        else:
            found.append((place, place))
    return tuple(found)
