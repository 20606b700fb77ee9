"""From arguments to a plan, and from a plan and arrays to a recorded result: the two steps every operator shares."""

from __future__ import annotations

import inspect
import operator
from enum import StrEnum
from typing import Any, TypeVar

import numpy as np

from .. import dispatch, tape
from ..backends.protocol import Array, Saved
from ..errors import ArgumentError, ArrayError, AstrideError
from ..plan import Plan, Shape, windows_listed
from ..rules import rule

EnumT = TypeVar("EnumT", bound=StrEnum)

PLANS_KEPT, WINDOWS_KEPT = 1024, dispatch.WINDOWS_KEPT
_plans: dict[Any, Any] = {}
"""Plans made so far, by what they were made of: a rule is a pure function."""


def as_array(value: Any, name: str, *, also_complex: bool = False) -> Array:
    """An array as it is, or nested numbers made one. Raises ArrayError for anything that holds no real numbers, or complex ones
    by `also_complex`."""
    if type(value) is np.ndarray and value.dtype.kind in "fiu":
        return value
    if isinstance(value, np.ma.MaskedArray):
        raise ArrayError(
            f"{name} is masked, and no operator knows masks", given={name: value}, hint=f"{name}.filled(0), or another value"
        )
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiu":
        return value
    try:
        array = np.asarray(value)
    except ValueError:
        raise ArrayError(f"{name} is not an array", given={name: type(value).__name__}, hint=f"numpy.asarray({name})") from None
    if array.dtype.kind == "c":
        if also_complex:
            return array
        raise ArrayError(
            f"{name} is not an array of real numbers", given={name: array}, hint=f"{name}.real and {name}.imag, each by itself"
        )
    if array.dtype.kind in "OSUMm" or (array.dtype.kind == "V" and array.dtype.name != "bfloat16"):
        raise ArrayError(
            f"{name} is not an array of real numbers", given={name: array}, hint=f"numpy.asarray({name}, dtype='float32')"
        )
    return array


def choice(kind: type[EnumT], value: str, name: str, operator: str) -> EnumT:
    """The member of an enumeration that has this value. Raises ArgumentError with those there are."""
    if value not in list(kind):
        raise ArgumentError(
            f"there is no such {name}",
            given={name: value},
            required=f"one of {', '.join(kind)}",
            operator=operator,
            hint=f"{name}={next(iter(kind)).value!r}",
        )
    return kind(value)


def make_plan(op: str, rules: str, *shapes: Any, given: dict[str, Any] | None = None, **arguments: Any) -> Any:
    """The plan a framework's rule makes of these arguments; its errors gain the operator's name, the rules' and the arrays.

    Arguments left at None are the rule's own defaults, but where the rule says that None is a value of its own (Chainer's
    `pad_value`). Raises ArgumentError for one the rule does not have, naming those it has.
    """
    key = _key(op, rules, shapes, arguments)
    made = None if key is None else _plans.get(key)
    if made is not None:
        return made
    try:
        function = rule(rules, op)
        takes_none = {p.name for p in inspect.signature(function).parameters.values() if "None" in str(p.annotation)}
        kept = {name: value for name, value in arguments.items() if value is not None or name in takes_none}
        known = [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]
        unknown = [name for name in kept if name not in known]
        if unknown:
            raise ArgumentError(
                f"there is no argument {unknown[0]!r}",
                given={n: kept[n] for n in unknown},
                required=f"one of {', '.join(known)}",
                hint=f"no {unknown[0]}, or other rules",
            )
        for name in known:
            if name not in kept and inspect.signature(function).parameters[name].default is inspect.Parameter.empty:
                raise ArgumentError(f"the {name.replace('_', ' ')} is not given", given={name: None}, hint=f"{name}=2")
        made = function(*shapes, **kept)
    except AstrideError as error:
        raise error.within(operator=op, rules=rules, given=given)
    if key is not None and windows_listed(made) <= WINDOWS_KEPT:
        if len(_plans) >= PLANS_KEPT:
            _plans.clear()
        _plans[key] = made
    return made


def _key(op: str, rules: str, shapes: tuple[Any, ...], arguments: dict[str, Any]) -> Any:
    """What a plan depends on, where all of it is plain data; None where it is not, or where a plan names a user's function."""
    if op == "window_reduce":
        return None
    parts: list[Any] = []
    for value in (op, rules, *shapes, *arguments.values()):
        kind = type(value)
        if kind in _PLAIN or (kind is tuple and _WHOLE.issuperset(map(type, value))):
            parts += (kind, value)
        elif not _freeze(value, parts):
            return None
    return (*parts, *arguments)


_PLAIN, _WHOLE = frozenset({int, str, bool, type(None)}), frozenset({int})


def _freeze(value: Any, parts: list[Any], depth: int = 4) -> bool:
    """Append a value with its type (1, 1.0 and True are three); False for one that is not plain data, or nested deeper."""
    kind = type(value)
    parts.append(kind)
    if kind in _PLAIN:
        parts.append(value)
    elif kind is float:
        parts.append(repr(value))  # -0.0 is not 0.0
    elif (kind is tuple or kind is list) and depth:
        parts.append(len(value))
        return all(_freeze(part, parts, depth - 1) for part in value)
    else:
        return False
    return True


def run(
    plan: Plan,
    *arrays: Array | None,
    out: Array | None = None,
    backend: str | None = None,
    save: bool = False,
    rules: str | None = None,
) -> tuple[Array, Saved | None]:
    """Compute, and record the step where a tape is active. `save` asks for the saved record in any case."""
    recorded = tape.active()
    try:
        y, saved = dispatch.forward(plan, *arrays, out=out, save=save or recorded, backend=backend)
    except AstrideError as error:
        raise error.within(rules=rules)
    if recorded and saved is not None:
        kept = saved
        inputs = (*arrays, *[None] * (len(plan.roles) - len(arrays)))

        def pull(gradients: tuple[Array | None, ...], want: tuple[bool, ...]) -> tuple[Array | None, ...]:
            dy = gradients[0]
            return (None,) * len(inputs) if dy is None else dispatch.backward(plan, dy, kept, want=want)

        def twice(
            gradients: tuple[Array | None, ...], cotangents: tuple[Array | None, ...], want: tuple[bool, ...]
        ) -> tuple[tuple[Array | None, ...], tuple[Array | None, ...]]:
            assert gradients[0] is not None
            gradient, others = dispatch.double_backward(plan, gradients[0], kept, cotangents, want=want)
            return (gradient,), others

        tape.record(tape.Node(plan.op, inputs, (y,), pull, twice))
    return y, saved


def plan(
    op: str, shape: Shape, *, rules: str = "explicit", dtype: Any = "float32", w_shape: Shape | None = None, **arguments: Any
) -> Any:
    """The plan an operator would follow, without data: `astride.plan("max_pool", x.shape, kernel=3, rules="caffe")`.

    Raises ArgumentError: an operator, rules or arguments that do not exist or that the rules refuse; `w_shape` missing
    for a convolution or given for anything else. UnsupportedError: the rules lack the operator.
    """
    weighted = op in ("conv", "conv_transpose", "deform_conv", "conv_integer")
    if weighted != (w_shape is not None):
        raise ArgumentError(
            f"{op} {'needs' if weighted else 'has no'} w_shape",
            given={"w_shape": w_shape},
            operator=op,
            rules=rules,
            hint="w_shape=w.shape" if weighted else "no w_shape",
        )
    shapes = [_shape(shape, "shape"), *([] if w_shape is None else [_shape(w_shape, "w_shape")])]
    try:
        name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    except TypeError:
        raise ArgumentError("there is no such dtype", given={"dtype": dtype}, operator=op, hint='dtype="float32"') from None
    return make_plan(op, rules, *shapes, name, given={"shape": shapes[0]}, **arguments)


def _shape(value: Any, name: str) -> Shape:
    try:
        sizes = tuple(operator.index(n) for n in value)
    except TypeError:
        sizes = (-1,)
    if min(sizes, default=0) < 0:
        raise ArgumentError(
            f"{name} is no shape", given={name: value}, required="whole numbers >= 0, one an axis", hint=f"{name}=x.shape"
        )
    return sizes
