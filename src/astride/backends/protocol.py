"""What a backend is: kernels by operator, each of which may decline a plan with a printable reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import UnsupportedError
from ..plan import Plan, Shape

Array = NDArray[Any]
Arrays = tuple[Array | None, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Saved:
    """What forward keeps for backward. The tie rule and operator choose which parts are there.

    `offsets` are in-window positions of the winning taps in the smallest unsigned type that holds them; the type's
    greatest value means no tap. `x`, `y`, `w` are the arrays themselves, not copies: they must not change before backward.
    `shapes` are the inputs' shapes in the order of the plan's roles; `extra` belongs to one operator's kernels.
    """

    shapes: tuple[Shape | None, ...]
    offsets: Array | None = None
    x: Array | None = None
    y: Array | None = None
    w: Array | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    kernel: str = ""


Forward = Callable[..., tuple[Array, Saved | None]]
"""forward(plan, *arrays, out, save) -> (out, saved): arrays in the order of the plan's roles, None where absent.

`out` has the right shape and dtype, is C-contiguous or the caller's own, and is written in full. Without `save` the
second result is None.
"""

Backward = Callable[..., Arrays]
"""backward(plan, dy, saved, *, want) -> gradients in the order of the plan's roles; None where `want` is False."""

Twice = Callable[..., tuple[Array, Arrays]]
"""twice(plan, dy, saved, cotangents, *, want) -> (gradient of dy, gradients of the arrays): those of the sum of every
cotangent times the gradient that backward gives. Cotangents are in the order of the plan's roles, None where there is
none; a gradient that is zero everywhere may be None.
"""


def accepts_all(plan: Any) -> str | None:
    """The `declines` of a kernel that takes every plan of its operator."""
    return None


def one_way(plan: Any) -> tuple[str, ...]:
    """The `ways` of a kernel that has one algorithm."""
    return ()


@dataclass(frozen=True, slots=True)
class Kernel:
    """One way to compute one operator. `declines(plan)` is None, or the reason why not.
    `twice` is None without double backward. `numpy` says that NumPy computes, whose warnings about NaN have to be off.
    `finishes` says that forward takes an `epilogue` (epilogue.py), and does it while it stores y.
    `ways` says for people how it computes a plan, a line for each direction, where it has more than one algorithm."""

    name: str
    forward: Forward
    backward: Backward
    declines: Callable[[Any], str | None] = accepts_all
    twice: Twice | None = None
    numpy: bool = True
    finishes: bool = False
    ways: Callable[[Any], tuple[str, ...]] = one_way


class Backend(Protocol):
    """A set of kernels. `kernels(op)` lists those of one operator, best first; empty where it has none."""

    name: str

    def kernels(self, op: str) -> tuple[Kernel, ...]: ...


@lru_cache(maxsize=64)
def dtype_name(dtype: np.dtype[Any]) -> str:
    """A dtype's name, which NumPy puts together anew each time."""
    return dtype.name


@lru_cache(maxsize=256)
def offset_dtype(taps: int) -> np.dtype[Any]:
    """The smallest unsigned type that counts `taps` offsets and a sentinel.

    Raises UnsupportedError: more taps than float64, through which NumPy compares such numbers with signed ones, tells apart.
    """
    if taps > 2**53:
        raise UnsupportedError(
            "a window has more taps than can be counted exactly", required=f"taps <= 2^53: {taps}", hint="a smaller kernel"
        )
    return np.dtype(next(t for t in (np.uint8, np.uint16, np.uint32, np.uint64) if taps <= np.iinfo(t).max))


def no_offset(dtype: np.dtype[Any]) -> int:
    """The offset that means no tap: the type's greatest value."""
    return int(np.iinfo(dtype).max)


__all__ = [
    "Array",
    "Arrays",
    "Backend",
    "Backward",
    "Forward",
    "Kernel",
    "Plan",
    "Saved",
    "Twice",
    "accepts_all",
    "dtype_name",
    "no_offset",
    "offset_dtype",
]
