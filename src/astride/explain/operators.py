"""How each operator is asked for its plan: whose rules it follows, what it takes besides, which arrays it computes on.

Unfolding reads the windows of a convolution, global pooling is pooling with the plane as its kernel, a function of your own
has the windows of any pooling: those follow another operator's rules.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..backends._definitions import NUMERIC
from ..errors import ArgumentError
from ..ops import OPERATORS
from ..ops._run import plan as make_plan
from ..ops.global_pool import OPERATORS as REDUCTIONS
from ..ops.unfold import columns_plan, windows_of
from ..ops.window_reduce import WINDOWS, WindowOperator
from ..plan import Plan, PoolPlan, Shape, StridedAxis, UnpoolPlan
from ..plan.kinds import Direction
from ..proto import nearest
from ..rules import RULES, has, rule

Array = npt.NDArray[Any]

WEIGHTED = ("conv", "conv_transpose", "deform_conv", "conv_integer")
COLUMNS = ("unfold", "fold")
FUNCTIONS = {name: getattr(np, name) for name in ("sum", "mean", "median", "max", "min", "std", "var", "ptp", "prod")}
"""What window_reduce may be asked for by name: functions of one window."""
OWN: dict[str, dict[str, Any]] = {
    "global_pool": {"reduce": "average"},
    "window_reduce": {"windows": "max_pool", "function": "sum", "empty": None},
    "fractional_pool": {"samples": 0.5},
    "stochastic_pool": {"uniform": 0.5},
    "max_unpool": {"indices": None},
    "deform_conv": {"offset": 0.0, "mask": None},
    "conv_integer": {"x_zero_point": None, "w_zero_point": None},
}
"""operator -> arguments of its own, besides the rules', with their defaults; numbers fill whole arrays."""
WITHOUT = {"global_pool": ("kernel", "stride", "dilation")}
"""operator -> arguments of the rules that it gives itself."""


def snake(name: str) -> str:
    """`max_pool` of MaxPool2d, max-pool or MAX_POOL_2D: names as frameworks write them, for a hint."""
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", re.sub(r"_?[123]d$", "", name.strip(), flags=re.IGNORECASE))
    return re.sub(r"[\s-]+", "_", parted).lower()


def check(op: str, arguments: Mapping[str, Any]) -> None:
    """Raise ArgumentError for values of the operator's own arguments that there are not, and for what it gives itself."""
    ruled(op, arguments)
    if op == "window_reduce":
        _one_of(op, "function", arguments, FUNCTIONS)
    for name in WITHOUT.get(op, ()):
        if arguments.get(name) is not None:
            raise ArgumentError(
                f"{op} has no {name}", given={name: arguments[name]}, because="its window is the whole plane", operator=op
            )


def ruled(op: str, arguments: Mapping[str, Any]) -> str:
    """The operator whose rules are followed. Raises ArgumentError: a reduction or windows that there are not."""
    if op == "global_pool":
        return REDUCTIONS[_one_of(op, "reduce", arguments, REDUCTIONS)]
    if op == "window_reduce":
        return _one_of(op, "windows", arguments, WINDOWS)
    return "conv" if op in COLUMNS else op


def _one_of(op: str, name: str, arguments: Mapping[str, Any], known: Any) -> str:
    value = arguments.get(name) or OWN[op][name]
    if value not in known:
        raise ArgumentError(
            f"{name} has no such value",
            given={name: value},
            required=f"one of {', '.join(known)}",
            operator=op,
            hint=nearest(str(value), list(known)),
        )
    return str(value)


def windowed_operators() -> list[str]:
    """The operators that have framework rules, or follow another one's."""
    return [op for op in OPERATORS if op in OWN or op in COLUMNS or any(has(name, op) for name in RULES)]


def answering(op: str, arguments: Mapping[str, Any]) -> list[str]:
    """The frameworks that have the operator, or the one whose rules it follows; all where nobody has."""
    followed = ruled(op, arguments) if op in OPERATORS else op
    return [name for name in RULES if has(name, followed)] or list(RULES)


def needs_kernel(op: str) -> bool:
    """Whether the operator's rules cannot do without a kernel."""
    followed = ruled(op, {})
    if op in WEIGHTED or op in COLUMNS:
        return True
    return op not in WITHOUT and any(_requires(name, followed, "kernel") for name in RULES if has(name, followed))


def _requires(name: str, op: str, argument: str) -> bool:
    parameter = inspect.signature(rule(name, op)).parameters.get(argument)
    return parameter is not None and parameter.default is parameter.empty


def keywords(op: str, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What may be said of the operator under one framework's rules, with the defaults; None where there is none."""
    followed = ruled(op, arguments)
    if not has(name, followed):
        return {}
    parameters = inspect.signature(rule(name, followed)).parameters.values()
    found = {p.name: None if p.default is p.empty else p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    if op in COLUMNS:
        found |= {"kernel": None}
    return {k: v for k, v in found.items() if k not in WITHOUT.get(op, ())} | OWN.get(op, {})


def plan_for(
    op: str, name: str, shape: Shape, w_shape: Shape | None, dtype: str, layout: str, arguments: Mapping[str, Any]
) -> Plan:
    """The plan that the operator would follow; `arguments` are the rule's and the operator's own. What is refused is raised."""
    followed = ruled(op, arguments)
    rules = {k: v for k, v in arguments.items() if k not in OWN.get(op, {}) and v is not None}
    if op in COLUMNS:
        kernel = rules.pop("kernel", None)
        if kernel is None:
            raise ArgumentError("the kernel is not given", given={"kernel": None}, operator=op, hint="kernel=3")
        windows = windows_of(op, name, shape, kernel, dtype, {"shape": shape}, {**rules, "layout": layout})
        return columns_plan(windows, Direction.FORWARD if op == "unfold" else Direction.TRANSPOSED)
    if op == "window_reduce":
        word = _one_of(op, "function", arguments, FUNCTIONS)
        function = _function(word, arguments.get("empty"))
        return function.plan(shape, dtype, rules=name, windows=followed, layout=layout, **rules)
    if op == "global_pool":
        sizes = shape[1:-1] if layout == "channels_last" or layout.endswith("C") else shape[2:]
        rules |= {"kernel": sizes, "stride": (1,) * len(sizes)}
    if op == "conv_integer":
        rules |= {"w_dtype": rules.get("w_dtype") or dtype}
    for required in ("kernel", "output_size"):
        if _requires(name, followed, required) and rules.get(required) is None:
            raise ArgumentError(f"the {required} is not given", given={required: None}, operator=op, hint=f"{required}=3")
    found: Plan = make_plan(followed, shape, rules=name, dtype=dtype, w_shape=w_shape, layout=layout, **rules)
    if op == "global_pool" and isinstance(found, PoolPlan) and any(axis.out != 1 for axis in found.axes):
        raise ArgumentError(  # as ops/global_pool.py does
            "the window is not the whole plane",
            given={"padding": arguments.get("padding")},
            required=f"one window: {tuple(axis.out for axis in found.axes)}",
            operator=op,
            rules=name,
            hint='padding="valid"',
        )
    return found


@lru_cache(maxsize=64)
def _function(word: str, empty: float | None) -> WindowOperator:
    """Kept, since its plans name it."""
    return WindowOperator(FUNCTIONS[word], NUMERIC, compile=False, empty=empty)


def unpooled_axes(plan: UnpoolPlan, arguments: Mapping[str, Any]) -> tuple[StridedAxis, ...]:
    """The windows that the values were the greatest of, where the call says how large they were; else none."""
    kernel, stride, padding = arguments.get("kernel"), arguments.get("stride"), arguments.get("padding")
    if kernel is None or isinstance(padding, str):
        return ()
    rank = len(plan.size)
    kernels, pads = _each(kernel, rank), _each(padding or 0, rank)
    strides = _each(kernel if stride is None else stride, rank)
    found = []
    for n, out, k, s, pad in zip(plan.size, plan.out, kernels, strides, pads, strict=True):
        lo = pad[0] if isinstance(pad, tuple) else pad
        found.append(StridedAxis(out, k, s, 1, lo, (n - 1) * s + k - lo - out, n) if n else StridedAxis(out, k, s, out=0))
    return tuple(found)


def _each(value: Any, rank: int) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,) * rank


def first_places(plan: UnpoolPlan, arguments: Mapping[str, Any]) -> Array:
    """Indices for the values of one plane: those given, or each its window's first pixel."""
    given = arguments.get("indices")
    if given is not None:
        places = np.asarray(given, np.int64).reshape(-1)
        if places.size != math.prod(plan.size):
            raise ArgumentError(
                "every value needs an index",
                given={"indices": given},
                required=f"{math.prod(plan.size)} of them: {places.size}",
                operator="max_unpool",
            )
        return places.reshape(plan.size)
    axes = unpooled_axes(plan, arguments)
    if axes:
        starts = [np.clip([axis.start(i) for i in range(axis.out)], 0, max(axis.size - 1, 0)) for axis in axes]
    else:
        starts = [np.arange(n) * (out // max(n, 1)) for n, out in zip(plan.size, plan.out, strict=True)]
    counted = plan.index_size or plan.out
    return np.asarray(np.ravel_multi_index(np.meshgrid(*starts, indexing="ij"), counted, mode="clip"))
