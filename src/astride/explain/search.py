"""The ways in which a framework might compute what a plan of another one says, nearest first.

direct    the call alone, with its own padding and flags          padded    explicit padding in front
cropped   more padding or a whole output, of which a part is kept  scaled    one of these, and factors for another divisor
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from ..backends.reference._divisors import divisors, inside
from ..plan import Axis, ConvPlan, PoolPlan, StridedAxis
from ..plan.kinds import Direction, Divisor, Edge, LpScale, Reduce
from .spelling import Choices
from .steps import Pairs, Steps

Windowed = PoolPlan | ConvPlan
MISSING = object()
LOWEST = float(np.finfo(np.float64).min)


@dataclass(frozen=True, slots=True)
class Way:
    """Steps to try. `tier` is how far they are from the bare call: direct 0, padded 1, cropped 2."""

    tier: int
    steps: Steps


def ways(plan: Windowed, choices: Choices, *, pads: bool) -> Iterator[Way]:
    """Everything worth trying for a plan whose axes are strided; `pads` is whether the framework has a padding operator."""
    axes = [axis for axis in plan.axes if isinstance(axis, StridedAxis)]
    if _transposed(plan):
        yield from _direct_transposed(plan, axes, choices)
        yield from _whole_then_cropped(plan, axes, choices)
        return
    for padding in _own_paddings(axes, choices):
        for flags in _flags(plan, choices):
            yield Way(0, Steps(_arguments(plan, padding, flags)))
    if pads:
        yield from _padded(plan, axes, choices)
    if choices.numbers == "alike":
        yield from _more_padding(plan, axes, choices)


def _direct_transposed(plan: Windowed, axes: list[StridedAxis], choices: Choices) -> Iterator[Way]:
    """`pad_lo`, `pad_hi` are what is cut off the whole output; output padding is a negative cut at the end."""
    numbers: list[Any] = []
    if choices.numbers == "alike":
        numbers = [tuple(axis.pad_lo for axis in axes)]
    elif choices.numbers == "pairs":
        numbers = [tuple((axis.pad_lo, axis.pad_hi) for axis in axes), tuple((axis.pad_lo, max(axis.pad_hi, 0)) for axis in axes)]
    if choices.numbers == "placed":
        numbers = [MISSING]
    for padding in dict.fromkeys([*numbers, *choices.words]):
        for flags in _flags(plan, choices, padding):
            yield Way(0, Steps(_arguments(plan, padding, flags)))


def _whole_then_cropped(plan: Windowed, axes: list[StridedAxis], choices: Choices) -> Iterator[Way]:
    """The whole output, of which the plan's part is kept; what lies behind it are zeros."""
    if any(axis.pad_lo < 0 for axis in axes) or choices.numbers == "placed":
        return
    whole: Any = "valid" if "valid" in choices.words else 0
    bare = replace(choices, flags={name: values for name, values in choices.flags.items() if "source" not in values})
    crop = tuple((axis.pad_lo, axis.pad_lo + axis.size) for axis in axes)
    asked = choices.flags.get("output_size") == ("source",)
    for flags in _flags(plan, bare, whole):
        flags |= {"output_size": whole_output(axes)} if asked else {}
        yield Way(2, Steps(_arguments(plan, whole, flags), crop=crop))


def whole_output(axes: Sequence[Axis]) -> tuple[int, ...]:
    """The output of a transposed convolution of which nothing is cut off, as "valid" has it."""
    strided = [axis for axis in axes if isinstance(axis, StridedAxis)]
    return tuple((axis.out - 1) * axis.stride + max(axis.reach, axis.stride) for axis in strided)


def _padded(plan: Windowed, axes: list[StridedAxis], choices: Choices) -> Iterator[Way]:
    declared = tuple((axis.pad_lo, axis.pad_hi) for axis in axes)
    exact = tuple((axis.pad_lo, _need(axis)) for axis in axes)
    least = tuple((lo, max(hi, 0)) for lo, hi in exact)
    none = _no_padding(choices)
    for fill in _fills(plan):
        for around in dict.fromkeys((declared, least, exact)):
            if any(map(any, around)):
                for flags in _flags(plan, choices):
                    yield Way(1, Steps(_arguments(plan, none, flags), around, fill))


def _more_padding(plan: Windowed, axes: list[StridedAxis], choices: Choices) -> Iterator[Way]:
    """The same padding on both sides, so many strides more that all windows are there, and the wanted ones kept."""
    if isinstance(plan, ConvPlan) and plan.edge is not Edge.SKIP:
        return
    padding, crop = [], []
    for axis in axes:
        m = 0
        while axis.pad_lo + m * axis.stride < 0 or _windows(axis, axis.pad_lo + m * axis.stride) < m + axis.out:
            m += 1
            if m > axis.out + axis.kernel:
                return
        padding.append(axis.pad_lo + m * axis.stride)
        crop.append((m, m + axis.out))
    for flags in _flags(plan, choices):
        yield Way(2, Steps(_arguments(plan, tuple(padding), flags), crop=tuple(crop)))


def _windows(axis: StridedAxis, pad: int) -> int:
    return (axis.size + 2 * pad - axis.reach) // axis.stride + 1


def _need(axis: StridedAxis) -> int:
    """What must lie behind the input for the windows to end exactly there; negative where pixels are left over."""
    return (axis.out - 1) * axis.stride + axis.reach - axis.stretched - axis.pad_lo


def _own_paddings(axes: list[StridedAxis], choices: Choices) -> list[Any]:
    """Paddings of the call itself: none by its word, the plan's in numbers, then the other words."""
    declared = tuple((axis.pad_lo, axis.pad_hi) for axis in axes)
    found: list[Any] = []
    if not any(map(any, declared)) and (choices.numbers == "none" or "valid" in choices.words):
        found.append(_no_padding(choices))
    if choices.numbers == "alike":
        found.append(tuple(lo for lo, _ in declared))
    if choices.numbers == "placed":
        found.append(MISSING)
    if choices.numbers == "total":  # of which the smaller half is in front
        found += [tuple(2 * lo + odd for lo, _ in declared) for odd in (0, 1)] if min(lo for lo, _ in declared) >= 0 else []
    if choices.numbers == "pairs":
        exact = tuple((lo, _need(axis)) for (lo, _), axis in zip(declared, axes))
        found += [declared, tuple((lo, max(hi, 0)) for lo, hi in exact), exact]
    return list(dict.fromkeys([*found, *choices.words]))


def _no_padding(choices: Choices) -> Any:
    if "valid" in choices.words:
        return "valid"
    return MISSING if choices.numbers == "none" else 0


def _arguments(plan: Windowed, padding: Any, flags: dict[str, Any]) -> dict[str, Any]:
    """The shared ones as the plan has them, the padding and flags tried."""
    axes = [axis for axis in plan.axes if isinstance(axis, StridedAxis)]
    found: dict[str, Any] = {"stride": tuple(axis.stride for axis in axes)}
    if any(axis.dilation > 1 for axis in axes):
        found["dilation"] = tuple(axis.dilation for axis in axes)
    if padding is not MISSING:
        found["padding"] = padding
    if isinstance(plan, ConvPlan) and plan.groups > 1:
        found["groups"] = plan.groups
    if isinstance(plan, PoolPlan) and plan.reduce is Reduce.LP:
        found["p"] = plan.p
    return found | flags


def _flags(plan: Windowed, choices: Choices, padding: Any = None) -> Iterator[dict[str, Any]]:
    """Every combination of the flags, those first that leave the most at their first value."""
    names = list(choices.flags)
    options = [_values(name, choices.flags[name], plan, padding) for name in names]
    combined = sorted(itertools.product(*map(enumerate, options)), key=lambda picked: sum(i > 0 for i, _ in picked))
    for picked in combined:
        yield {name: value for name, (_, value) in zip(names, picked) if value is not MISSING}


def _values(name: str, values: tuple[Any, ...], plan: Windowed, padding: Any) -> list[Any]:
    """ "source" and "taps" as what they are for this plan; MISSING leaves the argument out."""
    found = [_value(name, value, plan, padding) if value in ("source", "taps") else value for value in values]
    return [value for value in dict.fromkeys(found) if value is not MISSING] or [MISSING]


def _value(name: str, value: str, plan: Windowed, padding: Any) -> Any:
    axes = [axis for axis in plan.axes if isinstance(axis, StridedAxis)]
    if value == "taps":
        return math.prod(axis.kernel for axis in axes)
    if name == "output_padding":
        return MISSING if isinstance(padding, str) else _output_padding(axes, padding)
    if name == "output_size" or (name == "size" and _transposed(plan)):
        return tuple(axis.size for axis in axes)
    if name == "kernel_offset":
        return tuple(axis.pad_lo - (axis.kernel - 1 - axis.kernel // 2) for axis in axes)
    if name == "input_dilation":
        return tuple(axis.input_dilation for axis in axes) if any(axis.input_dilation > 1 for axis in axes) else MISSING
    if name in ("offset", "size"):  # of MPS, whose windows have centres
        return tuple(axis.reach // 2 - axis.pad_lo if name == "offset" else axis.out for axis in axes)
    if name in FIELDS:
        return _field(plan, name)
    if name == "flip":
        return True if isinstance(plan, ConvPlan) and plan.flip else MISSING
    overridden = isinstance(plan, PoolPlan) and plan.divisor is Divisor.OVERRIDE
    if not overridden:
        return MISSING
    assert isinstance(plan, PoolPlan)
    if name == "divisor_override":
        return plan.divisor_override
    return MISSING if plan.divisor_override != 1 else {"total": True, "pool_type": "sum"}[name]


FIELDS = {
    **{name: name for name in ("edge", "edge_value", "empty", "start", "nan", "tie", "unpicked", "divisor", "divisor_pad")},
    "form": "lp_form",
    "scale": "lp_scale",
    "scaled": "lp_scaled",
    "zero_window": "zero_window",
}
"""Arguments of the rules that leave every choice to the caller, and the fields of a plan that they become."""


def _field(plan: Windowed, name: str) -> Any:
    """The plan's own choice; MISSING where the argument would have no part in it."""
    if name == "edge_value" and plan.edge is not Edge.CONSTANT:
        return MISSING
    if name == "divisor" and isinstance(plan, PoolPlan) and plan.divisor is Divisor.OVERRIDE:
        return MISSING
    value = getattr(plan, FIELDS[name])
    return MISSING if value is None else str(value) if isinstance(value, StrEnum) else value


def _output_padding(axes: list[StridedAxis], padding: Any) -> Any:
    """What is missing at the end after this padding was cut off both sides."""
    each = padding if isinstance(padding, tuple) else (padding,) * len(axes)
    pairs = [p if isinstance(p, tuple) else (p, p) for p in each]
    more = tuple(
        axis.size - ((axis.out - 1) * axis.stride + axis.reach - lo - hi) for axis, (lo, hi) in zip(axes, pairs, strict=True)
    )
    return more if any(more) and min(more) >= 0 else MISSING


def _fills(plan: Windowed) -> list[float | str]:
    """What padding in front must hold to be no part of the result; for a convolution what the plan's edge reads."""
    if isinstance(plan, ConvPlan):
        return [0.0 if plan.edge is Edge.SKIP else str(plan.edge)]
    if plan.reduce is Reduce.MAX:
        return [-math.inf, LOWEST]
    return [math.inf, -LOWEST] if plan.reduce is Reduce.MIN else [0.0]


def _transposed(plan: Windowed) -> bool:
    return isinstance(plan, ConvPlan) and plan.direction is Direction.TRANSPOSED


# Factors


def factors(source: Windowed, target: Windowed, crop: Pairs | None) -> tuple[tuple[float, ...], ...] | None:
    """What the target's y is multiplied by, along each axis, to have the source's divisor; None where nothing makes it so.

    One number stands for an axis along which it does not change.
    """
    if not isinstance(source, PoolPlan) or not isinstance(target, PoolPlan) or source.reduce is not target.reduce:
        return None
    if source.reduce not in (Reduce.AVERAGE, Reduce.LP):
        return None
    found = []
    for a, axis in enumerate(source.axes):
        begin, end = crop[a] if crop is not None else (0, axis.out)
        ours, theirs = _weights(source, a), _weights(target, a)[begin:end]
        if len(ours) != len(theirs) or not all((w > 0).all() and np.isfinite(w).all() for w in (ours, theirs)):
            return None
        found.append(ours / theirs)
    constant = _constant(target) / _constant(source) if source.reduce is Reduce.AVERAGE else 1.0
    kept: list[tuple[float, ...]] = []
    for axis_factors in found:
        if (axis_factors == axis_factors[0]).all():
            constant *= float(axis_factors[0])
            kept.append((1.0,))
        else:
            kept.append(tuple(float(f) for f in axis_factors))
    return ((tuple(f * constant for f in kept[0])), *kept[1:])


def _weights(plan: PoolPlan, a: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """What one axis of the plan multiplies each window's sum (for Lp its root) by."""
    pad = None if plan.divisor_pad is None else (plan.divisor_pad[a],)
    alone = replace(plan, axes=(plan.axes[a],), divisor_pad=pad)
    with np.errstate(divide="ignore"):
        if plan.reduce is Reduce.LP:
            taps = inside(alone).astype(np.float64)
            kind = {LpScale.SUM: np.ones_like(taps), LpScale.MEAN: 1 / taps, LpScale.RESCALED: alone.taps / taps}[plan.lp_scale]
            return np.asarray(kind ** (1 / plan.p), np.float64)
        if plan.divisor is Divisor.OVERRIDE:
            return np.ones(plan.axes[a].out)
        return 1 / divisors(alone).astype(np.float64)


def _constant(plan: PoolPlan) -> float:
    return float(plan.divisor_override) if plan.divisor is Divisor.OVERRIDE else 1.0
