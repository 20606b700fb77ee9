"""Powers of any order, which C's library gives: what Lp pooling needs beside products and roots.

The calls are one a lane: right, not fast. The functions are looked up in the process once; where they cannot be found,
plans that need them are declined.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...plan import PoolPlan
from ...plan.kinds import Divisor, Edge, Layout, LpForm, Reduce, ZeroWindow
from ..protocol import Array, Arrays, Saved
from .edges import axes_read
from .ir import Function, Value
from .ir_types import element, lanes
from .tables import covers

LIBRARIES = (None, "libm.so.6", "libSystem.dylib", "ucrtbase", "msvcrt")
"""Where C's mathematics may be: in the process itself, or in one of these."""


@lru_cache(None)
def known() -> bool:
    """Whether kernels can call `pow` and `powf`; from now on they can."""
    import llvmlite.binding as llvm

    for name in LIBRARIES:
        try:
            library = ctypes.CDLL(name)
            found = {word: ctypes.cast(getattr(library, word), ctypes.c_void_p).value for word in ("pow", "powf")}
        except (OSError, AttributeError, TypeError):
            continue
        for word, address in found.items():
            llvm.add_symbol(word, address)
        return True
    return False


def power(f: Function, x: Value, p: float) -> Value:
    """x^p lane by lane, as C's pow has it."""
    kind, inner = x.type, element(x.type)
    name, order = "pow" if inner == "double" else "powf", f.value(inner, p)
    if lanes(kind) == 1:
        return f.call(inner, name, x, order)
    result = f.value(kind, 0.0)
    for k in range(lanes(kind)):
        one = f.call(inner, name, f.lane(x, k), order)
        result = f.emit(kind, f"insertelement {kind} {result.text}, {inner} {one.text}, i64 {k}")
    return result


@lru_cache(maxsize=512)
def _counting(plan: PoolPlan) -> PoolPlan:
    """The sum over the same windows, whose gradient counts them."""
    read = replace(plan, axes=axes_read(plan), edge=Edge.SKIP, dtype="float32", accumulate="float32")
    return replace(read, reduce=Reduce.AVERAGE, divisor=Divisor.OVERRIDE, divisor_override=1, divisor_pad=None)


@lru_cache(maxsize=512)
def _never_read(plan: PoolPlan) -> NDArray[np.bool_] | None:
    """The pixels, of all axes, that no window reads; None where there are none."""
    read, axes = np.ones((1,) * len(plan.axes), bool), axes_read(plan)
    for a, axis in enumerate(axes):
        first = covers(axis, np.ones(axis.out, np.int64))[0]
        read = read & (np.diff(first) > 0).reshape([-1 if b == a else 1 for b in range(len(axes))])
    return None if read.all() else ~read


def unread(plan: PoolPlan, saved: Saved, dx: Array, backward: Callable[..., Arrays]) -> None:
    """Where powers are formed as they are, a pixel at which nothing arrives gets 0 times the slope of its power: 0, or NaN.

    Nothing arrives where no window reads, and by ZeroWindow.ZERO from a window whose result is 0 or whose sum is; the slopes
    of such a window are finite if p >= 1. `saved` and dx are those of the input as it is read.
    """
    assert saved.x is not None and saved.y is not None
    bare: Any = _never_read(plan)
    if plan.p >= 1:
        if bare is None:
            return
        bare = (..., bare, slice(None)) if plan.layout is Layout.CHANNELS_LAST else (..., bare)
    else:
        sends = np.ones(saved.y.shape, np.float32)
        if plan.zero_window is ZeroWindow.ZERO:
            sends[(saved.y == 0) | (np.isinf(saved.y) if plan.p < 0 else False)] = 0
        reads = backward(_counting(plan), sends, Saved(saved.shapes), want=(True,))[0]
        assert reads is not None
        bare = reads == 0
    values = saved.x[bare].astype(np.result_type(np.dtype(plan.accumulate), dx.dtype))
    base = np.abs(values) if plan.lp_form is LpForm.ABSOLUTE else values
    with np.errstate(all="ignore"):
        dx[bare] = 0 * np.power(base, base.dtype.type(plan.p - 1))


SAFE = 900
"""Powers of two, up or down, within which sums of powers keep all their digits in float64."""

REACH = {"float16": 25, "bfloat16": 150, "float32": 150, "float64": 1074}
"""The greatest power of two, up or down, that a number of the dtype holds."""


def may_leave(plan: PoolPlan) -> bool:
    """Whether some window's sum of powers may leave float64's range, and the plan says that it must not matter."""
    return plan.lp_scaled and REACH[plan.dtype] * abs(plan.p) > SAFE


def suspicious(plan: PoolPlan, y: Array) -> bool:
    """Whether results give reason to look at the windows themselves. A norm of magnitudes tells how great they are, a sum of
    signed powers does not."""
    if plan.lp_form is not LpForm.ABSOLUTE and plan.p != 2:
        return True
    exponent = np.frexp(y.astype(np.float64))[1]
    return bool(((y == 0) | np.isinf(y) | (np.abs(exponent) * abs(plan.p) > SAFE - 64)).any())


def scales(plan: PoolPlan, greatest: Array) -> tuple[Array, Any]:
    """Powers of two whose squares take each window's greatest magnitude to about 1, and where they are needed."""
    values = greatest.astype(np.float64)
    usable = np.isfinite(values) & (values > 0)
    exponent = np.where(usable, np.frexp(np.where(usable, values, 1))[1], 0)
    return np.ldexp(1.0, -(exponent >> 1)), np.abs(exponent) * abs(plan.p) > SAFE


__all__ = ["known", "may_leave", "power", "scales", "suspicious", "unread"]
