"""One operator and geometry under several frameworks' rules, side by side.

comparison = compare("max_pool", (8, 8), ["caffe", "pytorch", "mps"], kernel=3, stride=2)
comparison.sides[0].plan, comparison.sides[0].axes[0].windows, comparison.differing
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import dispatch
from ..backends import BACKENDS
from ..backends import backend as backend_named
from ..backends.protocol import accepts_all
from ..errors import ArgumentError, AstrideError, BackendUnavailable
from ..ops import OPERATORS
from ..plan import Plan, Shape
from ..proto import nearest
from ..rules import RULES, has, rule
from .facts import facts
from .formulas import formulas
from .operators import WEIGHTED, check, keywords, needs_kernel, plan_for, ruled, snake, windowed_operators
from .sources import RuleSource, rule_source
from .values import Array, Values, as_input, values_of
from .windows import AxisView, Window, axis_views

MOST_ALONE = 4
"""Answers that are shown one by one; of more, those that agree are shown together."""
SHARED = ("kernel", "stride", "padding", "dilation", "groups")
"""Arguments that every rule is given, and refuses if it has not got them; others go to the rules that have them."""


@dataclass(frozen=True, slots=True)
class Rung:
    """A kernel that was asked. `declines` is its reason, None where it takes the plan; `ways` are the algorithms it takes."""

    name: str
    declines: str | None
    general: bool
    ways: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Side:
    """One framework's answer: a plan and what follows from it, or the error with which it refuses."""

    rules: str
    arguments: Mapping[str, Any]
    plan: Plan | None = None
    error: AstrideError | None = None
    axes: tuple[AxisView, ...] = ()
    formulas: tuple[str, ...] = ()
    facts: Mapping[str, str] | None = None
    source: RuleSource | None = None
    computed_by: str | None = None
    rungs: tuple[Rung, ...] = ()
    values: Values | None = None

    @property
    def general_path(self) -> bool:
        """Whether the kernel that computes is one that takes every plan, rather than one made for such windows."""
        return any(rung.name == self.computed_by and rung.general for rung in self.rungs)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was asked, and each framework's answer in the order asked for."""

    op: str
    shape: Shape
    w_shape: Shape | None
    dtype: str
    layout: str
    arguments: Mapping[str, Any]
    sides: tuple[Side, ...]
    input: Array | None = None

    @property
    def sizes(self) -> Shape:
        """The spatial sizes of the input."""
        return self.shape[2:] if self.layout == "channels_first" else self.shape[1:-1]

    @property
    def answered(self) -> tuple[Side, ...]:
        """The sides that have a plan."""
        return tuple(side for side in self.sides if side.plan is not None)

    @property
    def differing(self) -> tuple[str, ...]:
        """Names of the facts in which two answers differ."""
        names = dict.fromkeys(name for side in self.answered for name in side.facts or {})
        return tuple(name for name in names if len({(side.facts or {}).get(name) for side in self.answered}) > 1)

    def differs(self, side: Side, a: int, window: Window) -> bool:
        """Whether the first answer has no such window at this place of axis `a`: none at all, or another one."""
        first = self.answered[0]
        if window.index >= first.axes[a].out:
            return True
        match = next((w for w in first.axes[a].windows if w.index == window.index), None)
        return match is not None and match != window

    def groups(self, a: int) -> tuple[tuple[Side, ...], ...]:
        """The answers that have windows, those with the same windows along axis `a` together; few answers stand alone."""
        sides = [side for side in self.answered if side.axes]
        if len(sides) <= MOST_ALONE:
            return tuple((side,) for side in sides)
        found: dict[Any, list[Side]] = {}
        for side in sides:
            edge = getattr(side.plan, "edge", None)
            found.setdefault((side.axes[a].size, side.axes[a].out, side.axes[a].windows, edge), []).append(side)
        return tuple(map(tuple, found.values()))

    def fact_groups(self) -> tuple[tuple[Side, ...], ...]:
        """The answers, those with the same facts together; few answers stand alone."""
        if len(self.answered) <= MOST_ALONE:
            return tuple((side,) for side in self.answered)
        found: dict[Any, list[Side]] = {}
        for side in self.answered:
            found.setdefault(tuple((side.facts or {}).items()), []).append(side)
        return tuple(map(tuple, found.values()))

    def alike(self) -> bool:
        """Whether all axes are the same under every rule, so that one of them shows all."""
        return all(_unnamed(axis) == _unnamed(side.axes[0]) for side in self.answered for axis in side.axes)


def _unnamed(axis: AxisView) -> tuple[Any, ...]:
    return axis.size, axis.out, axis.formula, axis.windows


def compare(
    op: str,
    sizes: int | Sequence[int],
    rules: Sequence[str] = tuple(RULES),
    *,
    rank: int | None = None,
    batch: int = 1,
    channels: int | None = None,
    out_channels: int | None = None,
    dtype: str | None = None,
    layout: str = "channels_first",
    backend: str | None = None,
    own: Mapping[str, Mapping[str, Any]] | None = None,
    input: Array | None = None,
    **arguments: Any,
) -> Comparison:
    """Ask each of `rules` for its plan of one operator over an input of these spatial sizes.

    One size stands for `rank` axes (2 unless said). kernel, stride, padding, dilation and groups go to all rules; further
    arguments to those rules that have them; `own={"pytorch": {"ceil_mode": True}}` to one alone.
    A rule that refuses becomes a side with an error; so does a framework without the operator.
    `input` is one plane of numbers, of these sizes: every side then holds its output and gradient (of dy = 1) of it. For
    fold, whose sizes are the image's, it is the columns of one channel: (taps, windows).
    `dtype` is float32, and uint8 for quantised numbers, unless said.

    Raises ArgumentError: an operator without framework rules, rules nobody knows, no rules at all, an argument that none
    of them has, a convolution without a kernel.
    """
    _check(op, rules, arguments, own or {})
    dtype = dtype or ("uint8" if op == "conv_integer" else "float32")
    size = (int(sizes),) * (rank or 2) if isinstance(sizes, int) else tuple(int(n) for n in sizes)
    if rank is not None and len(size) != rank:
        raise ArgumentError("one size per axis", given={"sizes": size, "rank": rank}, required=f"len(sizes) == rank: {len(size)}")
    weighted = op in WEIGHTED
    inner = channels if channels is not None else int(arguments.get("groups") or 1)
    shape = (batch, inner, *size) if layout == "channels_first" else (batch, *size, inner)
    w_shape = _weights(op, len(size), inner, out_channels, arguments) if weighted else None
    given = {name: value for name, value in arguments.items() if value is not None}
    sides = []
    for name in rules:
        mine = {
            k: v for k, v in given.items() if not (weighted and k == "kernel") and (k in SHARED or _takes(name, op, k, given))
        }
        sides.append(_side(op, name, shape, w_shape, dtype, layout, {**mine, **(own or {}).get(name, {})}, backend))
    if input is not None:
        plane = as_input(input) if op == "fold" else _fitting(input, size)
        sides = [_valued(side, plane, {**given, **(own or {}).get(side.rules, {})}, backend) for side in sides]
        return Comparison(op, shape, w_shape, dtype, layout, given, tuple(sides), plane)
    return Comparison(op, shape, w_shape, dtype, layout, given, tuple(sides))


def _fitting(input: Array, size: Shape) -> Array:
    plane = as_input(input)
    if plane.shape != size:
        raise ArgumentError(
            "the input has other sizes", given={"input": plane, "sizes": size}, required=f"input.shape == {size}: {plane.shape}"
        )
    return plane


def _valued(side: Side, plane: Array, given: Mapping[str, Any], backend: str | None) -> Side:
    return side if side.plan is None else replace(side, values=values_of(side.plan, plane, None, backend, given))


def _side(
    op: str,
    name: str,
    shape: Shape,
    w_shape: Shape | None,
    dtype: str,
    layout: str,
    arguments: dict[str, Any],
    backend: str | None,
) -> Side:
    followed = ruled(op, arguments)
    if not has(name, followed):
        try:
            rule(name, followed)
        except AstrideError as error:
            return Side(name, arguments, error=error)
    source = rule_source(name, followed)
    all_arguments = keywords(op, name, arguments) | arguments
    try:
        plan = plan_for(op, name, shape, w_shape, dtype, layout, arguments)
        texts = formulas(name, plan, all_arguments)
        views = axis_views(plan, texts, all_arguments)
    except AstrideError as error:
        return Side(name, arguments, error=error, source=source)
    rungs = asked(plan)
    try:
        computed_by = dispatch.choose(plan, backend).name
    except AstrideError as error:
        return Side(name, arguments, plan, error, views, texts, facts(plan), source, None, rungs)
    return Side(name, arguments, plan, None, views, texts, facts(plan), source, computed_by, rungs)


def asked(plan: Plan) -> tuple[Rung, ...]:
    """Every kernel there is for the plan's operator, in the order `auto` asks, with its answer."""
    found = []
    for place in BACKENDS:
        try:
            kernels = backend_named(place).kernels(plan.op)
        except BackendUnavailable as error:
            found.append(Rung(place, error.problem, False))
            continue
        for k in kernels:
            reason = k.declines(plan)
            found.append(Rung(f"{place}:{k.name}", reason, k.declines is accepts_all, () if reason else k.ways(plan)))
    return tuple(found)


def _takes(name: str, op: str, argument: str, arguments: Mapping[str, Any]) -> bool:
    return argument in keywords(op, name, arguments)


def _weights(op: str, rank: int, inner: int, outer: int | None, arguments: Mapping[str, Any]) -> Shape:
    kernel, groups = arguments.get("kernel"), int(arguments.get("groups") or 1)
    if kernel is None:
        raise ArgumentError("the kernel is not given", given={"kernel": None}, operator=op, hint="kernel=3")
    sizes = tuple(kernel) if isinstance(kernel, Sequence) else (int(kernel),) * rank
    outer = inner if outer is None else outer
    # Shapes that do not divide are the rules' to refuse, each in its own words.
    return (outer, max(inner // groups, 1), *sizes) if op == "conv" else (inner, max(outer // groups, 1), *sizes)


def _check(op: str, rules: Sequence[str], arguments: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    known = windowed_operators()
    if op not in known:
        raise ArgumentError(
            f"frameworks do not differ in {op}: it has no rules" if op in OPERATORS else "there is no operator of that name",
            given={"op": op},
            required=f"one of {', '.join(known)}",
            hint=f"astride where {op}" if op in OPERATORS else nearest(snake(op), known),
        )
    for name in [*rules, *own]:
        if name not in RULES:
            raise ArgumentError(
                "there are no rules of that name",
                given={"rules": name},
                required=f"one of {', '.join(RULES)}",
                hint=nearest(name, RULES),
            )
    if not rules:
        raise ArgumentError("there is nobody to compare", given={"rules": ()}, required=f"some of {', '.join(RULES)}")
    check(op, arguments)
    lost = [name for name in arguments if name not in SHARED and not any(_takes(r, op, name, arguments) for r in rules)]
    if lost and arguments[lost[0]] is not None:
        have = dict.fromkeys(name for r in rules for name in keywords(op, r, arguments))
        raise ArgumentError(
            f"none of these rules has an argument {lost[0]!r}",
            given={lost[0]: arguments[lost[0]], "rules": list(rules)},
            required=f"one of {', '.join(n for n in have if n != 'layout')}",
            operator=op,
            hint=nearest(lost[0], have),
        )


__all__ = ["Comparison", "Rung", "Side", "asked", "compare", "needs_kernel", "windowed_operators"]
