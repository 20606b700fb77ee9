"""What every plan can do: say its operator, check arrays against itself, print itself, become plain data and back."""

from __future__ import annotations

import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import lru_cache
from typing import Any, ClassVar, Self

from ..errors import ArgumentError, ArrayError
from .axis import Axis, ExplicitAxis, StridedAxis, axis_from_dict, axis_to_dict

Shape = tuple[int, ...]

AXIS_NAMES = {1: ("W",), 2: ("H", "W"), 3: ("D", "H", "W")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Base of all plans: frozen, hashable, complete.

    `op` names the operator and so the kernel files. `roles` names the arrays a kernel takes, in order; those in
    `optional` may be absent (None) and those in `integer_roles` hold indices rather than numbers.
    """

    roles: ClassVar[tuple[str, ...]] = ("x",)
    optional: ClassVar[frozenset[str]] = frozenset()
    integer_roles: ClassVar[frozenset[str]] = frozenset()

    dtype: str

    @property
    def op(self) -> str:
        raise NotImplementedError

    @property
    def output_dtype(self) -> str:
        return self.dtype

    def dtype_of(self, role: str) -> str:
        """The dtype of one of the arrays, where it is not an integer role's."""
        return self.dtype

    def output_shape(self, *shapes: Shape | None) -> Shape:
        """The output's shape for arrays of these shapes, in the order of `roles`. Raises ArrayError where they do not fit."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Plain data (numbers, strings, lists): `plan_from_dict` turns it back into an equal plan."""
        return {"plan": type(self).__name__} | {f.name: _plain(getattr(self, f.name)) for f in fields(self)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The plan written by `to_dict`. Raises ArgumentError: unknown or missing fields, values out of their set."""
        hints = _hints(cls)  # type: ignore[arg-type]
        given = {name: value for name, value in data.items() if name != "plan"}
        if given.keys() - hints.keys():
            raise ArgumentError(
                f"this is not a saved {cls.__name__}",
                given={"unknown fields": sorted(given.keys() - hints.keys())},
                hint="what plan.to_dict() gives",
            )
        try:
            return cls(**{name: _typed(value, hints[name]) for name, value in given.items()})
        except (TypeError, ValueError) as error:
            if isinstance(error, ArgumentError):
                raise
            raise ArgumentError(
                f"this is not a saved {cls.__name__}", given={"plan": data}, because=str(error), hint="what plan.to_dict() gives"
            ) from error

    def describe(self) -> list[tuple[str, str]]:
        """(field, value) pairs for people: defaults left out, one line per axis."""
        rows: list[tuple[str, str]] = [("operator", self.op)]
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name == "axes":
                rows += [(f"axis {name}", str(axis)) for name, axis in zip(axis_names(len(value)), value, strict=True)]
            elif value != f.default:
                rows.append((f.name.replace("_", " "), str(value)))
        return rows

    def __str__(self) -> str:
        rows = self.describe()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def windows_listed(plan: Plan) -> int:
    """How many windows a plan holds one by one, as adaptive and pyramid pooling do: what makes a plan large."""
    axes: Any = getattr(plan, "axes", ())
    return sum(axis.out for axis in axes if isinstance(axis, ExplicitAxis))


def axis_names(rank: int) -> tuple[str, ...]:
    """W, HW or DHW; numbers beyond three axes."""
    return AXIS_NAMES.get(rank, tuple(str(i) for i in range(rank)))


def expect(good: bool, problem: str, required: str, **given: Any) -> None:
    """Raise ArrayError unless `good`: the one-line form of the checks in `output_shape`."""
    if not good:
        raise ArrayError(problem, required=required, given=given)


def sizes_match(axes: Sequence[Axis], sizes: Shape, name: str) -> None:
    """Raise ArrayError where an array's spatial sizes are not those the plan was made for."""
    planned = tuple(axis.size for axis in axes)
    expect(sizes == planned, f"{name} has other sizes than the plan was made for", f"sizes == {planned}: {sizes}")


def _plain(value: Any) -> Any:
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, StridedAxis | ExplicitAxis):
        return axis_to_dict(value)
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return value


def _typed(value: Any, hint: Any) -> Any:
    """Plain data back to the field's type: enums from their value, tuples from lists, axes from dictionaries."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in args:
            return None
        return _typed(value, next(a for a in args if a is not type(None)))
    if origin is tuple:
        members = [args[0]] * len(value) if args[1:] == (Ellipsis,) else args
        return tuple(_typed(v, member) for v, member in zip(value, members, strict=True))
    if hint in (StridedAxis, ExplicitAxis):
        return axis_from_dict(value)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return hint(value)
    if hint is float and isinstance(value, int):
        return float(value)
    if isinstance(hint, type) and (not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool)):
        raise TypeError(f"{value!r} is not a {hint.__name__}")
    return value


@lru_cache
def _hints(cls: type) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    return {f.name: hints[f.name] for f in fields(cls)}
