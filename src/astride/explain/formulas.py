"""The output size as each framework computes it, with the numbers in place.

A line in the table for a framework with a form of its own; for others the division is written out with what became of its
remainder, which the plan says. Every text is computed along with its value, and the value is held to the plan's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..plan import Axis, ConvPlan, DeformPlan, FractionalPlan, IntegerConvPlan, Plan, StridedAxis, UnfoldPlan, UnpoolPlan
from ..plan.kinds import Direction
from ..rules import _sizes


@dataclass(frozen=True, slots=True)
class Given:
    """One axis of an operator and the arguments its rule had, defaults included. `n` is the input's size, `out` the output's."""

    op: str
    a: int
    n: int
    k: int
    s: int
    d: int
    lo: int
    hi: int
    out: int
    arguments: Mapping[str, Any]

    @property
    def reach(self) -> int:
        return _sizes.reach(self.k, self.d)

    @property
    def free(self) -> str:
        """`8 + 2 - 3`: size and pads less the window."""
        return f"{self.n}{_signed(self.lo + self.hi)} - {self.reach}"


Formula = tuple[str, int]
"""The text, and what it comes to."""


def formulas(rules: str, plan: Plan, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """One formula an axis, with numbers."""
    if isinstance(plan, UnpoolPlan):
        return tuple(_unpooled(n, out, a, arguments) for a, (n, out) in enumerate(zip(plan.size, plan.out, strict=True)))
    if isinstance(plan, FractionalPlan):
        return tuple(_placed(out, a, arguments) for a, out in enumerate(plan.out))
    return tuple(_axis(rules, plan, axis, a, arguments) for a, axis in enumerate(getattr(plan, "axes", ())))


def _axis(rules: str, plan: Plan, axis: Axis, a: int, arguments: Mapping[str, Any]) -> str:
    if not isinstance(axis, StridedAxis):
        return f"from i*{axis.size}/{axis.out} to (i+1)*{axis.size}/{axis.out}, rounded outward"
    if axis.input_dilation > 1:
        return f"{axis.out}, over {axis.stretched} positions with zeros between the pixels"
    transposed = isinstance(plan, ConvPlan) and plan.direction is Direction.TRANSPOSED
    n, out = (axis.out, axis.size) if transposed else (axis.size, axis.out)
    # Columns and quantised numbers have a convolution's windows.
    op = "conv" if isinstance(plan, UnfoldPlan | DeformPlan | IntegerConvPlan) else plan.op
    given = Given(op, a, n, axis.kernel, axis.stride, axis.dilation, axis.pad_lo, axis.pad_hi, out, arguments)
    text, value = FORMULAS.get(rules, _planned)(given)
    return text if value == out else _planned(given)[0]


def _signed(number: int) -> str:
    return "" if number == 0 else f" {'+' if number > 0 else '-'} {abs(number)}"


def _floor(g: Given) -> Formula:
    value = _sizes.floor(g.n, g.lo + g.hi, g.reach, g.s)
    return f"floor(({g.free}) / {g.s}) + 1 = {value}", value


def _ceil(g: Given, *, clip: bool) -> Formula:
    """Rounded up; `clip` drops a last window that would start behind the input and its first padding."""
    value = _sizes.ceil(g.n, g.lo + g.hi, g.reach, g.s)
    text = f"ceil(({g.free}) / {g.s}) + 1 = {value}"
    clipped = _sizes.clipped(value, g.n, g.lo, g.s) if clip else value
    if clipped < value:
        text += f", less 1 (it would start behind the input) = {clipped}"
    return text, clipped


def _same(g: Given) -> Formula:
    value = -(-g.n // g.s)
    return f"ceil({g.n} / {g.s}) = {value}", value


def _planned(g: Given) -> Formula:
    """What the plan says, whoever made it: the quotient, and which way it was rounded."""
    if g.op == "conv_transpose":
        more = g.out - (g.n - 1) * g.s - g.reach
        return f"({g.n} - 1) * {g.s} + {g.reach}{_signed(more)} = {g.out}", g.out
    exact, up = _sizes.floor(g.n, g.lo + g.hi, g.reach, g.s), _sizes.ceil(g.n, g.lo + g.hi, g.reach, g.s)
    text = f"({g.free}) / {g.s} + 1 = {(g.n + g.lo + g.hi - g.reach) / g.s + 1:.4g}"
    if exact == up == g.out:
        return text, g.out
    if g.out in (exact, up):
        return f"{text}, rounded {'down' if g.out == exact else 'up'} to {g.out}", g.out
    return f"{text}, planned as {g.out}", g.out


def _transposed(g: Given) -> Formula:
    """`hi` of the plan has the output padding taken off already: see plan/conv.py."""
    more = _of_axis(g.arguments.get("output_padding"), g.a) or 0
    pads = g.lo + g.hi + more
    value = (g.n - 1) * g.s + g.reach - pads + more
    return f"({g.n} - 1) * {g.s} + {g.reach}{_signed(-pads)}{_signed(more)} = {value}", value


def _caffe(g: Given) -> Formula:
    if g.op == "conv_transpose":
        return _transposed(g)
    if g.op == "conv":
        value = _sizes.truncated(g.n, g.lo + g.hi, g.reach, g.s)
        return f"trunc(({g.free}) / {g.s}) + 1 = {value}", value
    ceil = g.arguments.get("round_mode", "CEIL") == "CEIL"
    if ceil:
        return _ceil(g, clip=bool(g.lo or g.hi or _any(g.arguments.get("padding"))))
    return _floor(g)


def _pytorch(g: Given) -> Formula:
    if g.op == "conv_transpose":
        return _transposed(g)
    return _ceil(g, clip=True) if g.arguments.get("ceil_mode") else _floor(g)


def _mps(g: Given) -> Formula:
    wanted = _of_axis(g.arguments.get("size"), g.a)
    if wanted is not None:
        return f"size = {wanted}, as given", wanted
    growth = {"valid": -1, "same": 0, "full": 1}[g.arguments.get("padding") or "same"]
    change = _signed(growth * (g.reach - 1))
    if g.op == "conv_transpose":
        value = (g.n - 1) * g.s + 1 + growth * (g.k - 1)
        return f"({g.n} - 1) * {g.s} + 1{change} = {value}", value
    value = -(-(g.n + growth * (g.reach - 1)) // g.s)
    return (f"ceil(({g.n}{change}) / {g.s}) = {value}" if change else f"ceil({g.n} / {g.s}) = {value}"), value


def _numpy_loops(g: Given) -> Formula:
    if g.op == "conv_transpose":
        return _transposed(g)
    value = _sizes.floor(g.n, g.lo + g.hi, g.reach, g.s)
    return f"({g.free}) / {g.s} + 1 = {value}, without a remainder", value


def _explicit(g: Given) -> Formula:
    if g.op == "conv_transpose":
        return _transposed(g)
    if str(g.arguments.get("padding")).startswith("same"):
        return _same(g)
    if g.arguments.get("rounding") != "ceil":
        return _floor(g)
    clip = g.arguments.get("clip")
    return _ceil(g, clip=clip == "always" or (clip == "padded" and bool(_any(g.arguments.get("padding")))))


def _tensorflow(g: Given) -> Formula:
    """Of TensorFlow and what follows it: "valid" counts the places where a window fits, "same" the strides."""
    word = str(g.arguments.get("padding"))
    if g.op == "conv_transpose" or word not in ("valid", "same"):
        return _planned(g)
    if word == "same":
        return _same(g)
    value = -(-(g.n - g.reach + 1) // g.s)
    return f"ceil(({g.n} - {g.reach} + 1) / {g.s}) = {value}", value


def _unpooled(n: int, out: int, a: int, arguments: Mapping[str, Any]) -> str:
    """The same for every framework that has it, unless an output size was asked for."""
    kernel = _of_axis(arguments.get("kernel"), a)
    if arguments.get("output_size") is not None or kernel is None:
        return f"output_size = {out}, as given"
    stride = _of_axis(arguments.get("stride"), a) or kernel
    pads = (n - 1) * stride + kernel - out
    return f"({n} - 1) * {stride} + {kernel}{_signed(-pads)} = {out}"


def _placed(out: int, a: int, arguments: Mapping[str, Any]) -> str:
    ratio, sample = arguments.get("output_ratio"), arguments.get("samples", 0.5)
    each = ratio[a] if isinstance(ratio, tuple | list) else ratio
    return (
        f"output_size = {out}" if ratio is None else f"floor({each} of the size) = {out}"
    ) + f", windows for a sample {sample}"


def _any(padding: Any) -> bool:
    """Whether some axis is padded, in whatever form that was said."""
    if isinstance(padding, tuple | list):
        return any(_any(p) for p in padding)
    return bool(padding)


def _of_axis(value: Any, a: int) -> int | None:
    if isinstance(value, tuple | list):
        return int(value[a])
    return None if value is None else int(value)


FORMULAS: dict[str, Callable[[Given], Formula]] = {
    "explicit": _explicit,
    "caffe": _caffe,
    "pytorch": _pytorch,
    "mps": _mps,
    "numpy_loops": _numpy_loops,
    "tensorflow": _tensorflow,
    "keras": _tensorflow,
    "tflite": _tensorflow,
}
"""rules -> the formula of one axis, where the framework has its own form."""
