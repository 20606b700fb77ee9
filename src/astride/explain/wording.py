"""Steps as the lines of code of a framework."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

from ..plan import ConvPlan, PoolPlan
from .spelling import Operation, spelling
from .spelling.form import show
from .steps import Steps

Windowed = PoolPlan | ConvPlan
CROP_TO_BLOB = ("caffe", "opencv")
"""Frameworks that crop to the size of another blob."""
SPATIAL = {1: ("kW",), 2: ("kH", "kW"), 3: ("kD", "kH", "kW")}


def lines(source: str, target: str, o: Operation, plan: Windowed, its: Windowed, steps: Steps) -> tuple[str, ...] | None:
    """What to write in the target, top to bottom; None where it has no words for a step."""
    theirs, rank = spelling(target), len(plan.axes)
    place = theirs.layout(o.op, steps.arguments)
    found: list[str | None] = []
    if place != spelling(source).layout(o.op, o.arguments):
        found.append(f"# x and y have their channels {place.removeprefix('channels_')}")
    if isinstance(plan, ConvPlan):
        found += _weights(source, target, o, steps, rank)
    if steps.pads is not None:
        cut = tuple((min(lo, 0), min(hi, 0)) for lo, hi in steps.pads)
        if any(map(any, cut)):
            sizes = o.sizes or ()
            ends = tuple((-lo, n + hi) for n, (lo, hi) in zip(sizes, cut))
            found += _kept(target, "x", ends, place, sizes)
        more = tuple((max(lo, 0), max(hi, 0)) for lo, hi in steps.pads)
        if any(map(any, more)):
            found.append(theirs.pad(more, steps.fill, place))
    call = theirs.write(replace(o, arguments=steps.arguments), rank)
    found += [None] if call is None else call.split("\n")
    if steps.crop is not None:
        found += _cropped(target, its, steps, place)
    if steps.factors is not None and any(f != 1 for axis in steps.factors for f in axis):
        found.append(_scaled(target, steps.factors, place))
    return None if None in found else tuple(line for line in found if line is not None)


def _weights(source: str, target: str, o: Operation, steps: Steps, rank: int) -> list[str]:
    """What becomes of the weights: another order of axes, the kernel turned."""
    ours, theirs = _order(source, o.op, dict(o.arguments), rank), _order(target, o.op, dict(steps.arguments), rank)
    found = []
    if ours != theirs:
        order = tuple(ours.index(name) for name in theirs)
        found += [f"# weights ({', '.join(ours)}) -> ({', '.join(theirs)})", f"w = np.transpose(w, {show(order)})"]
    groups = int(o.arguments.get("groups") or 1)
    alike = ours == theirs and not steps.turn
    if groups > 1 and hasattr(spelling(source), "regrouped") and not (alike and hasattr(spelling(target), "regrouped")):
        found.insert(0, spelling(source).regrouped(groups, away=True))
    if steps.turn:
        axes = tuple(i for i, name in enumerate(theirs) if name.startswith("k"))
        found.append(f"w = np.flip(w, {show(axes)})")
    if groups > 1 and hasattr(spelling(target), "regrouped") and not (alike and hasattr(spelling(source), "regrouped")):
        found.append(spelling(target).regrouped(groups, away=False))
    return found


def _order(framework: str, op: str, arguments: dict[str, Any], rank: int) -> list[str]:
    letters = spelling(framework).WEIGHTS[op]
    if framework == "jax" and op == "conv_transpose" and arguments.get("transpose_kernel"):
        letters = "*OI"
    return [name for letter in letters for name in (SPATIAL[rank] if letter == "*" else (letter,))]


def _cropped(target: str, its: Windowed, steps: Steps, place: str) -> list[str | None]:
    assert steps.crop is not None
    theirs = spelling(target)
    outs = its.output_sizes if isinstance(its, ConvPlan) else tuple(axis.out for axis in its.axes)
    more = tuple((0, max(end - n, 0)) for n, (_, end) in zip(outs, steps.crop))
    found: list[str | None] = []
    if any(map(any, more)):
        text = theirs.pad(more, 0.0, place)
        found.append(None if text is None else _of_y(text))
    wide = tuple(max(n, end) for n, (_, end) in zip(outs, steps.crop))
    if any(begin or end < n for n, (begin, end) in zip(wide, steps.crop)):
        found += _kept(target, "y", steps.crop, place, wide)
    return found


def _of_y(text: str) -> str:
    return re.sub(r"\bx\b", "y", text)


def _kept(target: str, name: str, ends: tuple[tuple[int, int], ...], place: str, sizes: tuple[int, ...]) -> list[str | None]:
    """The part [begin, end) of each axis of so many places, its end counted from the end."""
    theirs = spelling(target)
    begin, end = tuple(b for b, _ in ends), tuple(e - n if e < n else None for (_, e), n in zip(ends, sizes))
    if target in CROP_TO_BLOB:
        size = "x".join(str(e - b) for b, e in ends)
        layer = f"{name} = L.Crop({name}, like, axis=2, offset={show(list(begin))})"
        if target == "opencv":
            offsets = " ".join(f"offset: {b}" for b in begin)
            layer = f'layer {{ type: "Crop" bottom: "{name}" bottom: "like" top: "{name}_" crop_param {{ axis: 2 {offsets} }} }}'
        return [f"# like: any blob of the size to keep, {size}", layer]
    if hasattr(theirs, "crop"):
        text: str | None = theirs.crop(begin, end)
        return [text if name == "y" or text is None else re.sub(r"\by\b", name, text)]
    slices = [f"{b or ''}:{'' if e is None else e}" for b, e in zip(begin, end)]
    whole = [":", ":", *slices] if place == "channels_first" else [":", *slices, ":"]
    return [f"{name} = {name}[{', '.join(whole)}]"]


def _scaled(target: str, factors: tuple[tuple[float, ...], ...], place: str) -> str | None:
    """y times the product of the axes' factors."""
    theirs = spelling(target)
    if target == "darknet":
        return None
    rank = len(factors)
    if all(len(axis) == 1 for axis in factors):
        number = _fraction(math.prod(axis[0] for axis in factors))
        number = f"({number})" if "/" in number else number
        constant: str | None = theirs.scale(number) if hasattr(theirs, "scale") else f"y = y * {number}"
        return constant
    parts = []
    for a, axis in enumerate(factors):
        if all(f == 1 for f in axis):
            continue
        behind = rank - 1 - a + (place == "channels_last")
        parts.append(f"np.reshape({_runs(axis)}, {show((-1, *[1] * behind))})" if behind else f"np.array({_runs(axis)})")
    text = " * ".join(parts)
    if hasattr(theirs, "scale"):
        found: str | None = theirs.scale(text)
        return found
    wrap = {"pytorch": "torch.tensor({}, dtype=y.dtype)", "mxnet": "mx.nd.array({})", "mlx": "mx.array({})"}.get(target, "{}")
    return f"y = y * {wrap.format(text)}"


def _runs(values: tuple[float, ...]) -> str:
    """A list in which many equal values are written once: `[2/3] + [1] * 5 + [1/2]`."""
    runs: list[tuple[float, int]] = []
    for value in values:
        if runs and runs[-1][0] == value:
            runs[-1] = (value, runs[-1][1] + 1)
        else:
            runs.append((value, 1))
    return " + ".join(f"[{_fraction(value)}]" + (f" * {count}" if count > 1 else "") for value, count in runs)


def _fraction(value: float) -> str:
    """A quotient of small numbers as such."""
    near = Fraction(value).limit_denominator(4096)
    if float(near) == value:
        return str(near)
    return repr(value)
