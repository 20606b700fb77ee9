"""The shared vocabulary as integers: what callers may write for kernel, stride, padding and layout, checked."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any, TypeVar

from ..errors import ArgumentError
from ..plan import PoolPlan, Shape
from ..plan.base import axis_names
from ..plan.kinds import Layout, Reduce

Kind = TypeVar("Kind", bound=StrEnum)
PerAxis = tuple[int, ...]
Pads = tuple[tuple[int, int], ...]

FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})
INTEGERS = frozenset({f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)})
COMPLEX = frozenset({"complex64", "complex128"})
BOOL = frozenset({"bool"})  # whose maximum is "any" and whose minimum is "all"
ALIASES = {
    **dict.fromkeys(("channels_first", "NCHW", "NCW", "NCL", "NCDHW"), Layout.CHANNELS_FIRST),
    **dict.fromkeys(("channels_last", "NHWC", "NWC", "NLC", "NDHWC"), Layout.CHANNELS_LAST),
}


def layout_of(layout: str, rank: int) -> Layout:
    """A layout by its name. Letter names must have the input's number of axes."""
    if not isinstance(layout, str) or layout not in ALIASES:
        raise ArgumentError(
            "there is no layout of that name",
            given={"layout": layout},
            required=f"one of {', '.join(ALIASES)}",
            hint='layout="channels_first"',
        )
    if str(layout).isupper() and len(layout) != rank + 2:
        raise ArgumentError(
            "the layout has another number of axes than x",
            given={"layout": layout},
            required=f"{rank + 2} letters: {len(layout)}",
            hint='layout="channels_first" or "channels_last", which fit any number',
        )
    return ALIASES[layout]


def spatial(shape: Sequence[int], layout: str, *, ranks: Iterable[int] = (1, 2, 3), smallest: int = 1) -> tuple[Layout, Shape]:
    """(layout, spatial sizes) of an input of this shape. Raises ArgumentError: a rank the operator lacks, an empty axis."""
    rank = len(shape) - 2
    if rank not in ranks:
        axes = " or ".join(str(r + 2) for r in ranks)
        raise ArgumentError(
            "x has the wrong rank",
            required=f"x.ndim is {axes}: {len(shape)}",
            hint="a batch and a channel axis besides the windows' axes",
        )
    place = layout_of(layout, rank)
    sizes = tuple(int(s) for s in (shape[2:] if place is Layout.CHANNELS_FIRST else shape[1:-1]))
    if min(sizes) < smallest:
        raise ArgumentError("x has an empty spatial axis", required=f"every size >= 1: {sizes}")
    return place, sizes


def channels(shape: Sequence[int], layout: Layout) -> int:
    return int(shape[1] if layout is Layout.CHANNELS_FIRST else shape[-1])


def whole(value: Any, name: str, minimum: int | None = None) -> int:
    """One whole number of at least `minimum`."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None:
        raise ArgumentError(f"{name} is not a whole number", given={name: value}, hint=f"an int, as {name}={minimum or 1}")
    if minimum is not None and number < minimum:
        raise ArgumentError(
            f"{name} is below {minimum}", given={name: value}, required=f"{name} >= {minimum}: {number}", hint=f"{name}={minimum}"
        )
    return number


def number(value: Any, name: str) -> float:
    """One number, whole or not; a text of digits is none."""
    try:
        if not isinstance(value, str | bytes | bool):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ArgumentError(f"{name} is not a number", given={name: value}, hint=f"a float, as {name}=1.0")


def row(value: Any, name: str) -> tuple[Any, ...]:
    """The values of a sequence, for frameworks that take nothing else: not one value alone, and no text."""
    if not _several(value):
        raise ArgumentError(f"{name} is not a sequence", given={name: value}, hint=f"{name}=(2, 2), one value per axis")
    return tuple(value)


def per_axis(value: Any, rank: int, name: str, minimum: int | None = 1) -> PerAxis:
    """One whole number for every axis, or one per axis."""
    if _several(value):
        values = tuple(value)
        if len(values) != rank:
            raise ArgumentError(
                f"{name} needs one value per axis",
                given={name: value},
                required=f"{rank} values, or one for all: {len(values)}",
                hint=f"an int, or {rank} of them",
            )
        return tuple(whole(v, name, minimum) for v in values)
    return (whole(value, name, minimum),) * rank


def _several(value: Any) -> bool:
    """Whether it is a row of values; a NumPy array without axes is one value, and a text none at all."""
    return hasattr(value, "__len__") and not isinstance(value, str) and getattr(value, "ndim", 1) > 0


def pads(value: Any, rank: int, name: str = "padding", minimum: int | None = 0) -> Pads:
    """An int, one per axis, or a (low, high) pair per axis, as pairs."""
    if isinstance(value, str):
        raise ArgumentError(
            "these rules have no padding of that name", given={name: value}, hint="an int, one per axis, or (low, high) pairs"
        )
    if isinstance(value, Sequence) and value and all(isinstance(v, Sequence) and not isinstance(v, str) for v in value):
        if len(value) != rank or any(len(v) != 2 for v in value):
            raise ArgumentError(
                f"{name} needs a (low, high) pair per axis",
                given={name: value},
                required=f"{rank} pairs: {len(value)}",
                hint=f"{name}={((1, 1),) * rank}",
            )
        return tuple((whole(lo, name, minimum), whole(hi, name, minimum)) for lo, hi in value)
    return tuple((p, p) for p in per_axis(value, rank, name, minimum))


def symmetric(value: Any, rank: int, framework: str) -> PerAxis:
    """Padding for frameworks that pad both sides alike."""
    pairs = pads(value, rank)
    if any(lo != hi for lo, hi in pairs):
        raise ArgumentError(
            f"{framework} pads both sides of an axis alike",
            given={"padding": value},
            hint='rules="explicit" takes (low, high) pairs',
        )
    return tuple(lo for lo, _ in pairs)


def kind(enum: type[Kind], value: Any, name: str) -> Kind:
    """A member of a closed vocabulary by its value."""
    try:
        return enum(value)
    except ValueError:
        known = ", ".join(repr(member.value) for member in enum)
        raise ArgumentError(f"{name} has no such value", given={name: value}, required=f"one of {known}") from None


def choice(value: Any, name: str, known: Sequence[str]) -> str:
    """One of a few words."""
    if value not in known:
        raise ArgumentError(f"{name} has no such value", given={name: value}, required=f"one of {', '.join(map(repr, known))}")
    return str(value)


def require_dtype(dtype: str, allowed: Iterable[str], because: str) -> str:
    """The dtype, if these rules have it. Raises ArgumentError saying which they have."""
    if not isinstance(dtype, str) or dtype not in allowed:
        raise ArgumentError(
            f"there is no rule for {dtype} arrays",
            given={"dtype": dtype},
            required=f"one of {', '.join(sorted(allowed))}",
            because=because,
            hint="x.astype('float32')",
        )
    return dtype


def accumulator(dtype: str) -> str:
    """The dtype sums are formed in: float32 for half types, else the dtype itself."""
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def only(value: Any, name: str, expected: Any, because: str) -> None:
    """Refuse an argument that these rules do not have, unless it is left at its neutral value."""
    if value != expected:
        raise ArgumentError(
            f"these rules have no {name}", given={name: value}, because=because, hint=f"{name}={expected!r}, or other rules"
        )


def only_each(value: Any, name: str, expected: int, because: str) -> None:
    """As `only`, for an argument that may be one whole number or one per axis."""
    for one in tuple(value) if _several(value) else (value,):
        if whole(one, name) != expected:
            only(value, name, expected, because)


def on_axis(name: str, index: int, rank: int) -> str:
    """`pad < kernel, on axis H`."""
    return f"{name}, on axis {axis_names(rank)[index]}"


def as_minimum(plan: PoolPlan) -> PoolPlan:
    """The same windows and choices with the least tap in place of the greatest."""
    return replace(plan, reduce=Reduce.MIN)


def shares_arguments(function: Callable[..., Any], model: Callable[..., Any]) -> None:
    """State that `function(**arguments)` takes exactly the model's arguments, for error messages, `explain` and docs."""
    function.__signature__ = inspect.signature(model)  # type: ignore[attr-defined]
