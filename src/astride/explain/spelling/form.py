"""What one framework's function is called with, and what that means in the vocabulary of the rules."""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ...errors import ArgumentError
from ...rules._arguments import whole
from .call import Word

Given = dict[str, Any]
"""A function's parameters with their values, defaults included."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operator as a framework's rule takes it: `arguments` are the rule's own, but for the kernel.

    kernel            one number for all axes, or one per axis; a convolution's is its weights'
    in_channels       and `out_channels`, `sizes`: None where the call does not say
    """

    op: str
    rank: int | None
    kernel: Any
    arguments: Mapping[str, Any] = field(default_factory=dict)
    in_channels: int | None = None
    out_channels: int | None = None
    sizes: tuple[int, ...] | None = None

    @property
    def weighted(self) -> bool:
        return self.op in ("conv", "conv_transpose")


@dataclass(frozen=True, slots=True)
class Form:
    """A function: its name, its parameters as Python writes them, and how its arguments are read."""

    function: str
    rank: int | None
    signature: inspect.Signature
    read: Callable[[Given, int | None], Operation]


@dataclass(frozen=True, slots=True)
class Choices:
    """What there is to choose of an operator when it is to do what another framework's does.

    words     paddings by name;  numbers  paddings in numbers: both sides alike, of their own, one for both together, the place
              of the first window instead, or none
    flags     argument -> the values worth trying, the default first
    """

    words: tuple[str, ...] = ()
    numbers: Literal["alike", "pairs", "total", "placed", "none"] = "none"
    flags: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


def forms(
    names: str, signature: str, read: Callable[[Given, int | None], Operation], ranks: Iterable[int | None] = (1, 2, 3)
) -> list[Form]:
    """One form for each name and rank; `{}` in a name is the rank."""
    return [
        Form(name.format(rank), rank, _signature(signature), read)
        for name in names.split()
        for rank in (ranks if "{}" in name else [None])
    ]


def _signature(text: str) -> inspect.Signature:
    """`kernel_size, stride=None, *, ceil_mode=False`"""
    definition = ast.parse(f"def f({text}): ...").body[0]
    assert isinstance(definition, ast.FunctionDef)
    args = definition.args
    missing: list[Any] = [None] * (len(args.args) - len(args.defaults))
    pairs: list[tuple[str, Any, Any]] = [
        (arg.arg, default, inspect.Parameter.POSITIONAL_OR_KEYWORD) for arg, default in zip(args.args, missing + args.defaults)
    ]
    pairs += [(arg.arg, default, inspect.Parameter.KEYWORD_ONLY) for arg, default in zip(args.kwonlyargs, args.kw_defaults)]
    empty = inspect.Parameter.empty
    return inspect.Signature(
        [inspect.Parameter(name, kind, default=empty if d is None else ast.literal_eval(d)) for name, d, kind in pairs]
    )


def bound(form: Form, positional: tuple[Any, ...], keywords: Mapping[str, Any], text: str) -> Given:
    """The parameters' values. Raises ArgumentError as Python would a TypeError."""
    try:
        found = form.signature.bind(*positional, **keywords)
    except TypeError as error:
        raise ArgumentError(
            f"{form.function} cannot be called so",
            given={"call": text},
            required=f"{form.function}{form.signature}",
            because=str(error),
        ) from error
    found.apply_defaults()
    return dict(found.arguments)


# Reading


def renamed(op: str, **names: str) -> Callable[[Given, int | None], Operation]:
    """A reader that gives parameters the rules' names: `renamed("max_pool", kernel_size="kernel", stride="stride")`."""

    def read(given: Given, rank: int | None) -> Operation:
        return operation(op, rank, {argument: given[name] for name, argument in names.items() if name in given}, given)

    return read


CHANNELS = ("in_channels", "out_channels")
"""Arguments that may be names: how many there are decides nothing about windows."""
ARRAYS = ("input", "x", "X", "data", "operand", "lhs", "inputs", "value", "bottom")


def operation(op: str, rank: int | None, arguments: Mapping[str, Any], given: Given, *, channels_last: bool = False) -> Operation:
    """Arguments that are None are the rule's own defaults; channels and sizes are taken out, and the shape of x read."""
    kept = {name: plain(value) for name, value in arguments.items() if value is not None}
    kept = {name: value for name, value in kept.items() if not (name in CHANNELS and isinstance(value, Word))}
    for name, value in kept.items():
        if any(isinstance(v, Word) for v in (value if isinstance(value, tuple) else (value,))):
            raise ArgumentError(f"a name stands where {name} is a number", given={name: str(value)}, hint="its value")
        if name in ("in_channels", "out_channels", "groups"):
            whole(value, name, 1)
        if name == "p" and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise ArgumentError("the order of a norm is a number", given={"p": value}, hint="p=2")
    shape = next((shape_of(given[name]) for name in ARRAYS if name in given), None)
    sizes = None if shape is None else (shape[1:-1] if channels_last else shape[2:])
    inner = kept.pop("in_channels", None)
    if inner is None and shape is not None:
        inner = shape[-1 if channels_last else 1]
    return Operation(
        op,
        len(sizes) if rank is None and sizes else rank,
        kept.pop("kernel", None),
        kept,
        inner,
        kept.pop("out_channels", None),
        sizes,
    )


def plain(value: Any) -> Any:
    """Lists as tuples, all the way down."""
    return tuple(plain(v) for v in value) if isinstance(value, list | tuple) else value


def shape_of(value: Any) -> tuple[int, ...] | None:
    """A shape that stands where an array does; a name says nothing."""
    if value is None or isinstance(value, Word):
        return None
    shape = tuple(value) if isinstance(value, list | tuple) else ()
    if not shape or not all(isinstance(n, int) and not isinstance(n, bool) for n in shape):
        raise ArgumentError("an array is written as a name or by its shape", given={"argument": value}, hint="x, or (1, 3, 8, 8)")
    return shape


def output_sizes(value: Any, rank: int | None, *, channels_last: bool) -> tuple[int, ...] | None:
    """The spatial part of an output's shape, whose images and channels may be names: `[N, 17, 17, C]`."""
    if not isinstance(value, tuple | list) or rank is None:
        return None
    inner = tuple(value) if len(value) == rank else tuple(value)[1:-1] if channels_last else tuple(value)[2:]
    if not all(isinstance(n, int) and not isinstance(n, bool) for n in inner):
        raise ArgumentError("a name stands where the output's size is a number", given={"output_shape": str(value)})
    return inner


# Writing


@dataclass(frozen=True, slots=True)
class Raw:
    """Text that stands in a call as it is."""

    text: str

    def __repr__(self) -> str:
        return self.text


def written(function: str, *positional: Any, **keywords: Any) -> str:
    """The text of a call. Keywords that are None are left out."""
    parts = [show(value) for value in positional]
    parts += [f"{name}={show(value)}" for name, value in keywords.items() if value is not None]
    return f"{function}({', '.join(parts)})"


def show(value: Any) -> str:
    """As Python writes it, with double quotes."""
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        return f"({', '.join(map(show, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, float) and math.isinf(value):
        return f'float("{value}")'
    if isinstance(value, list):
        return f"[{', '.join(map(show, value))}]"
    return repr(value)


def short(values: Any) -> Any:
    """One number for an axis each, where they are equal."""
    if isinstance(values, tuple) and values and not isinstance(values[0], tuple) and len(set(values)) == 1:
        return values[0]
    return values


def unless(value: Any, default: Any) -> Any:
    """A value for `written`, None where it is the default."""
    return None if value == default or short(value) == default else value


def pairs_of(padding: Any, rank: int) -> tuple[tuple[int, int], ...]:
    """Padding in numbers as a pair for each axis."""
    each = padding if isinstance(padding, tuple) else (padding,) * rank
    return tuple(p if isinstance(p, tuple) else (p, p) for p in each)


def alike(padding: Any, rank: int) -> Any:
    """Padding that is the same on both sides, as one number or one per axis."""
    return short(tuple(lo for lo, _ in pairs_of(padding, rank)))
