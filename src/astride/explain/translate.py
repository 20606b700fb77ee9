"""The same operation in another framework: what to write there, or why there is nothing to write, proved by computing both.

found = translate("pytorch", "MaxPool2d(3, 2, ceil_mode=True)", "tensorflow", sizes=(8, 8))
found.lines, found.reason, found.trials, found.holds
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import ArgumentError, AstrideError
from ..plan import ConvPlan, PoolPlan, Shape, StridedAxis
from ..plan.kinds import Reduce
from ..rules import has, rule
from ..rules._arguments import per_axis
from .facts import facts
from .search import Way, Windowed, factors, ways, whole_output
from .sources import unverified
from .spelling import Operation, ranks, read, spelling
from .steps import Array, Computed, Steps, computed, plan_of
from .trials import Run, Trial, same_values, tried
from .wording import CROP_TO_BLOB, lines

USUAL = 8
"""The size of an axis that nobody gave, unless the window needs more."""
MORE_SIZES = 16
MOST_PIXELS = 2**20
GEOMETRY = (
    "output",
    "padding",
    "outside the output",
    "weights",
    "groups",
    "outside the input",
    "divides by",
    "partial windows",
    "kernel",
)
"""Facts that the steps make up for."""
SIZES = ("output_size", "size")
"""Arguments that follow the input: what is written is the output's size."""


@dataclass(frozen=True, slots=True)
class Holds:
    """Inputs of how many pixels an axis were tried with the very same steps, and for which of them they are right."""

    tried: tuple[int, ...]
    right: tuple[int, ...]

    @property
    def everywhere(self) -> bool:
        return self.tried == self.right


@dataclass(frozen=True, slots=True)
class Translation:
    """One call in another framework's words.

    lines        what to write there, top to bottom; empty where it cannot be expressed, and then `reason` says why
    condition    what must be true of x for it to hold; None if nothing
    trials       both computed in float64: where they are equal and where not
    differing    the choices that make the difference where there is one: name -> (source's, target's)
    holds        other sizes for which the same lines are right
    unverified   framework -> what its rules have from headers and manuals alone
    """

    source: str
    target: str
    call: str
    operation: Operation
    sizes: tuple[int, ...]
    source_plan: Windowed
    target_plan: Windowed | None
    steps: Steps | None
    lines: tuple[str, ...]
    names: str
    reason: str | None
    condition: str | None
    trials: tuple[Trial, ...]
    differing: dict[str, tuple[str, str]]
    holds: Holds | None
    unverified: dict[str, tuple[str, ...]]

    @property
    def expressed(self) -> bool:
        """Whether there is such a call; `exact` whether it is equal on every input tried."""
        return self.steps is not None

    @property
    def exact(self) -> bool:
        return self.expressed and self.condition is None and all(trial.equal for trial in self.trials)


def translate(
    source: str,
    call: str,
    target: str,
    sizes: int | Sequence[int] | None = None,
    *,
    rank: int | None = None,
    kernel: int | Sequence[int] | None = None,
) -> Translation:
    """How to write a call of one framework in another one.

    source, target  frameworks of `spelling.SPELLINGS`
    call            as that framework writes it; it is read, never run. Arrays are names, or their shapes
    sizes           of the input's spatial axes; 8 each unless the call or the window says otherwise
    rank, kernel    where the call says neither: `F.conv2d(x, w)` does not know w

    Raises ArgumentError: no such framework, no call of it, or one that the source itself refuses.
    """
    asked = _operation(source, call, sizes, rank, kernel)
    size = asked.sizes or ()
    theirs = spelling(target)
    shape, w_shape = _shapes(asked, size, (source, target))
    given = Steps(asked.arguments)
    plan = plan_of(source, asked, shape, w_shape, given)
    notes = {name: unverified(name, asked.op) for name in dict.fromkeys((source, target)) if has(name, asked.op)}
    notes = {name: said for name, said in notes.items() if said}
    common = (source, target, call, asked, size, plan)
    if not all(isinstance(axis, StridedAxis) for axis in plan.axes):
        raise ArgumentError("windows with bounds of their own are not told elsewhere", given={"call": call})
    if asked.rank not in ranks(target, asked.op):
        said = f"{target} has {asked.op} for two axes alone, and {asked.rank} are asked for"
        return Translation(*common, None, None, (), theirs.NAMES, said, None, (), {}, None, notes)
    if not has(target, asked.op) or asked.op not in theirs.CHOICES:
        return Translation(*common, None, None, (), theirs.NAMES, _lacking(target, asked.op), None, (), {}, None, notes)
    found, holds, condition, reason = _found(source, target, asked, given, plan, shape, w_shape)
    if found is None:
        return Translation(*common, None, None, (), theirs.NAMES, reason, None, (), {}, None, notes)
    steps = found.steps
    its = plan_of(target, asked, shape, w_shape, steps)
    gradients = spelling(source).GRADIENT and theirs.GRADIENT
    ours, other = _runs(source, target, asked, given, steps)
    trials = tried(ours, other, shape, _weights(w_shape), gradients=gradients, pooling=not asked.weighted)
    differing = {} if all(trial.equal for trial in trials) else _differing(plan, its)
    text = lines(source, target, asked, plan, its, steps)
    assert text is not None
    return Translation(*common, its, steps, text, theirs.NAMES, None, condition, trials, differing, holds, notes)


def _operation(source: str, call: str, sizes: Any, rank: int | None, kernel: Any) -> Operation:
    """The call read, with rank, kernel and sizes filled in."""
    if isinstance(sizes, Sequence) and rank is None:
        rank = len(sizes)
    found = read(source, call, rank=rank)
    window = found.kernel if found.kernel is not None else tuple(kernel) if isinstance(kernel, Sequence) else kernel
    if window is None:
        raise ArgumentError(
            "the call does not say how large the kernel is",
            given={"call": call},
            hint="the weights' shape in their place, as F.conv2d(x, (8, 3, 3, 3)), or kernel=3",
        )
    several = len(window) if isinstance(window, tuple) and len(window) > 1 else None
    axes = found.rank or several or rank or (2 if sizes is None or isinstance(sizes, int) else len(sizes))
    single = isinstance(window, tuple) and len(window) == 1
    each = per_axis(window[0] if single else window, axes, "kernel")
    wanted = found.sizes if sizes is None else (sizes,) * axes if isinstance(sizes, int) else tuple(sizes)
    usual = tuple(max(USUAL, 2 * k) for k in each)
    if wanted is not None:
        wanted = per_axis(wanted, axes, "sizes")
    if math.prod(wanted or usual) > MOST_PIXELS:
        raise ArgumentError(
            "the input is too large to compute both on",
            given={"sizes": wanted or usual},
            required=f"at most {MOST_PIXELS} pixels: {math.prod(wanted or usual)}",
            hint="a smaller size with the same remainder by the stride",
        )
    return replace(found, rank=axes, kernel=each, sizes=wanted or usual)


def _shapes(
    o: Operation, sizes: tuple[int, ...], names: tuple[str, str] = ("", "")
) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """Small arrays that still tell groups and channels apart: the geometry does not depend on how many there are."""
    if not o.weighted:
        return (1, 2, *sizes), None
    groups = int(o.arguments.get("groups") or 1)
    few = 4 if groups > 1 and "mps" in names else 2  # whose groups hold channels in multiples of four
    inner = o.in_channels or groups * few
    outer = o.out_channels or groups * few
    if inner % groups or outer % groups:
        return (1, inner, *sizes), _weight_shape(o.op, inner, outer, groups, o.kernel)  # for the rule to refuse
    inner, outer = groups * min(inner // groups, few), groups * min(outer // groups, few + (few == 2))
    return (1, inner, *sizes), _weight_shape(o.op, inner, outer, groups, o.kernel)


def _weight_shape(op: str, inner: int, outer: int, groups: int, kernel: tuple[int, ...]) -> tuple[int, ...]:
    return (outer, max(inner // groups, 1), *kernel) if op == "conv" else (inner, max(outer // groups, 1), *kernel)


def _weights(w_shape: tuple[int, ...] | None) -> Array | None:
    return None if w_shape is None else np.random.default_rng(2).normal(size=w_shape)


def _runs(source: str, target: str, o: Operation, given: Steps, steps: Steps) -> tuple[Run, Run]:
    def ours(x: Array, w: Array | None, dy: Array | None) -> Computed:
        return computed(source, o, given, x, w, dy)

    def theirs(x: Array, w: Array | None, dy: Array | None) -> Computed:
        return computed(target, o, steps, x, w, dy)

    return ours, theirs


# The search


def _found(
    source: str, target: str, o: Operation, given: Steps, plan: Windowed, shape: tuple[int, ...], w_shape: tuple[int, ...] | None
) -> tuple[Way | None, Holds | None, str | None, str | None]:
    """(the best way, the sizes it holds for, its condition, why there is none).

    One that is right for every size comes before one that is nearer the bare call.
    """
    candidates, refused, closest = _candidates(target, o, plan, shape, w_shape)
    w = _weights(w_shape)
    for positive in (False, True):
        if positive and o.op != "lp_pool":
            break
        for scaled in (False, True):
            right = [
                way
                for way in (_scaled(way, plan, target, o, shape, w_shape) if scaled else way for way in candidates)
                if way is not None
                and same_values(*_runs(source, target, o, given, way.steps), shape, w, positive=positive)
                and _writable(source, target, o, plan, way, shape, w_shape)
            ]
            if right:
                condition = "x has no negative values" if positive else None
                return *_best(source, target, o, given, right), condition, None
    return None, None, None, _why_not(target, plan, refused, closest)


def _candidates(
    target: str, o: Operation, plan: Windowed, shape: tuple[int, ...], w_shape: tuple[int, ...] | None
) -> tuple[list[Way], AstrideError | None, Windowed | None]:
    """Ways the target takes, the first refusal of those that it does not, and the plan of the first it takes."""
    theirs = spelling(target)
    pads = theirs.pad(((1, 1),) * len(plan.axes), 0.0, "channels_first") is not None
    found: list[Way] = []
    refused: AstrideError | None = None
    closest: Windowed | None = None
    for way in ways(plan, theirs.CHOICES[o.op], pads=pads):
        try:
            its = plan_of(target, o, shape, w_shape, way.steps)
        except AstrideError as error:
            refused = refused or error
            continue
        closest = closest or its
        fitted = _fitted(plan, its, way)
        if fitted is not None and fitted not in found:
            found.append(fitted)
    return found, refused, closest


def _fitted(plan: Windowed, its: Windowed, way: Way) -> Way | None:
    """The way with the kernel turned where that is needed, and surplus windows at the end left out; None where too few are."""
    turn = isinstance(plan, ConvPlan) and isinstance(its, ConvPlan) and plan.flip != its.flip
    steps = replace(way.steps, turn=True) if turn else way.steps
    ours, theirs = _outs(plan), _outs(its)
    if steps.crop is not None or ours == theirs:
        return replace(way, steps=steps)
    if any(a > b for a, b in zip(ours, theirs)) or (isinstance(plan, ConvPlan) and plan.op == "conv_transpose"):
        return None
    return Way(2, replace(steps, crop=tuple((0, n) for n in ours)))


def _outs(plan: Windowed) -> tuple[int, ...]:
    return plan.output_sizes if isinstance(plan, ConvPlan) else tuple(axis.out for axis in plan.axes)


def _scaled(
    way: Way, plan: Windowed, target: str, o: Operation, shape: tuple[int, ...], w_shape: tuple[int, ...] | None
) -> Way | None:
    found = factors(plan, plan_of(target, o, shape, w_shape, way.steps), way.steps.crop)
    return None if found is None else replace(way, steps=replace(way.steps, factors=found))


def _writable(
    source: str, target: str, o: Operation, plan: Windowed, way: Way, shape: tuple[int, ...], w_shape: tuple[int, ...] | None
) -> bool:
    return lines(source, target, o, plan, plan_of(target, o, shape, w_shape, way.steps), way.steps) is not None


def _best(source: str, target: str, o: Operation, given: Steps, right: list[Way]) -> tuple[Way, Holds]:
    """The nearest to the bare call that is right for every size; without one, the nearest that is right for most."""
    found: list[tuple[Way, Holds]] = []
    for way in sorted(right, key=lambda way: way.tier):
        holds = _holds(source, target, o, given, way.steps, o.sizes or ())
        if holds.everywhere:
            return way, holds
        found.append((way, holds))
    nearest = found[0][0].tier
    return max((pair for pair in found if pair[0].tier == nearest), key=lambda pair: len(pair[1].right))


def _holds(source: str, target: str, o: Operation, given: Steps, steps: Steps, sizes: tuple[int, ...]) -> Holds:
    """The same steps on squares of other sizes, from the least that the source takes."""
    tried_sizes, right = [], []
    outs = _outs(plan_of(target, o, *_shapes(o, sizes, (source, target)), steps))
    for n in range(1, max(MORE_SIZES, max(o.kernel) + MORE_SIZES) + 1):
        shape, w_shape = _shapes(o, (n,) * len(sizes), (source, target))
        try:
            plan = plan_of(source, o, shape, w_shape, given)
            if min(_outs(plan)) < 1 or min(_span(plan)) < 1:
                continue
            tried_sizes.append(n)
            resized = _resized(target, o, steps, outs, plan, shape, w_shape)
        except AstrideError:
            continue
        if same_values(*_runs(source, target, o, given, resized), shape, _weights(w_shape), positive=o.op == "lp_pool"):
            right.append(n)
    return Holds(tuple(tried_sizes), tuple(right))


def _span(plan: Windowed) -> tuple[int, ...]:
    """How far the padded input is larger than a window; below 1 nothing but the remainder of one fits."""
    axes = [axis for axis in plan.axes if isinstance(axis, StridedAxis)]
    return tuple(axis.stretched + max(axis.pad_lo, 0) + max(axis.pad_hi, 0) - axis.reach + 1 for axis in axes)


def _resized(target: str, o: Operation, steps: Steps, outs: Shape, plan: Windowed, shape: Shape, w_shape: Shape | None) -> Steps:
    """The steps as their lines read for another input: what is written as the output's size follows it, a crop cuts as much.

    `outs` is the target's own output where the steps were made, `plan` the source's for the other input.
    """
    arguments = dict(steps.arguments)
    for name in SIZES:
        if arguments.get(name) is not None:
            arguments[name] = _outs(plan) if steps.crop is None else whole_output(plan.axes)
    other = replace(steps, arguments=arguments)
    if steps.crop is None:
        return other
    if target in CROP_TO_BLOB:  # which crops to the size of a blob
        return replace(other, crop=tuple((begin, begin + n) for (begin, _), n in zip(steps.crop, _outs(plan))))
    theirs = _outs(plan_of(target, o, shape, w_shape, other))
    ends = tuple(n - (out - end) for n, out, (_, end) in zip(theirs, outs, steps.crop))
    return replace(other, crop=tuple((begin, max(end, begin)) for (begin, _), end in zip(steps.crop, ends)))


# Reasons


def _lacking(target: str, op: str) -> str:
    said: str | None = getattr(spelling(target), "LACKS", {}).get(op)
    if said is not None:
        return said
    try:
        rule(target, op)
    except AstrideError as error:
        return error.problem
    return f"{target} has no {op} of its own; its rules here extend another of its operators"


def _why_not(target: str, plan: Windowed, refused: AstrideError | None, closest: Windowed | None) -> str:
    """The refusal, or the choice that nothing makes up for."""
    if closest is None and refused is not None:
        required = f" ({refused.required})" if refused.required else ""
        return f"{target} refuses it: {refused.problem}{required}"
    if closest is None:
        return f"{target} has nothing that comes near"
    ours, theirs = facts(plan), facts(closest)
    names = [name for name in theirs if name in ours and ours[name] != theirs[name] and name not in ("output", "padding")]
    said = "; ".join(f"{name}: {ours[name]} there, {theirs[name]} in {target}" for name in names)
    return f"no padding, flag or crop of {target} makes up for the difference" + (f" ({said})" if said else "")


def _differing(plan: Windowed, its: Windowed) -> dict[str, tuple[str, str]]:
    ours, theirs = facts(plan), facts(its)
    return {
        name: (said, theirs[name])
        for name, said in ours.items()
        if name not in GEOMETRY and name in theirs and theirs[name] != said and _matters(name, plan)
    }


def _matters(name: str, plan: Windowed) -> bool:
    return not (name == "window without a pixel" and isinstance(plan, PoolPlan) and plan.reduce is Reduce.LP)


__all__ = ["Holds", "Translation", "translate"]
