"""A user's function of every window: `loops4` calls it as Python has it, `compiled` lets Numba make one loop of it all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError, ArrayError, UnsupportedError
from ...plan import WindowPlan
from .._definitions import NUMERIC, Definition, definition_of
from ..protocol import Array, Arrays, Kernel, Saved
from ._window_drivers import STEP, compiled_call, tables
from ._windows import Extension, PixelGradient, as_channels_first, counts_inside, extension, places

EXACT = 2.0**53
"""Whole numbers of at least this magnitude may have been rounded when they became float64."""


def forward_loops4(plan: WindowPlan, x: Array, *, out: Array, save: bool) -> tuple[Array, Saved | None]:
    """For each image, channel and place one call."""
    definition, grown = definition_of(plan.function), _checked(plan, x)
    xv = _wide(plan, grown, x, plan.window_dtype)
    y = _results(plan, xv)
    for n, c in np.ndindex(*xv.shape[:2]):
        for place in places(grown.axes):
            if len(place.offsets):
                value = definition.function(xv[(n, c, *place.pixels)])
                y[(n, c, *place.window)] = _number(definition, value)
    return _finish(plan, definition, x, y, out, save)


def backward_loops4(plan: WindowPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """For each window its slopes times its gradient, added to the pixels of its taps."""
    if not want[0]:
        return (None,)
    definition, gradient = _differentiable(saved), _pixel_gradient(plan, dy, saved)
    grown = extension(plan.axes, plan.edge)
    assert saved.x is not None and saved.y is not None
    numeric = definition.gradient == NUMERIC
    xv = _wide(plan, grown, saved.x, "float64" if numeric else plan.window_dtype)
    dyv = as_channels_first(dy, plan.layout).astype(xv.dtype)
    total = np.zeros(xv.shape, xv.dtype)
    for n, c in np.ndindex(*xv.shape[:2]):
        for place in places(grown.axes):
            if len(place.offsets):
                window, here = xv[(n, c, *place.pixels)], (n, c, *place.window)
                slopes = _numeric(definition, window) if numeric else _slopes(definition, window, saved.y[here], here)
                total[(n, c, *place.pixels)] += slopes * dyv[here]
    gradient.total[...] = total
    return (gradient.finish(),)


def forward_compiled(plan: WindowPlan, x: Array, *, out: Array, save: bool) -> tuple[Array, Saved | None]:
    """One compiled loop over all windows of all planes."""
    definition, grown = definition_of(plan.function), _checked(plan, x)
    xv = _wide(plan, grown, x, plan.window_dtype)
    y = _results(plan, xv)
    compiled_call(definition, "forward", _planes(xv), *_geometry(plan, grown), _planes(y))
    return _finish(plan, definition, x, y, out, save)


def backward_compiled(plan: WindowPlan, dy: Array, saved: Saved, *, want: Sequence[bool]) -> Arrays:
    """One compiled loop, window after window in the order of loops4."""
    if not want[0]:
        return (None,)
    definition, gradient = _differentiable(saved), _pixel_gradient(plan, dy, saved)
    grown = extension(plan.axes, plan.edge)
    assert saved.x is not None and saved.y is not None
    numeric = definition.gradient == NUMERIC
    xv = _wide(plan, grown, saved.x, "float64" if numeric else plan.window_dtype)
    dyv = np.ascontiguousarray(as_channels_first(dy, plan.layout), xv.dtype)
    total = np.zeros(xv.shape, xv.dtype)
    part = "numeric" if numeric else "gradient"
    arrays = (_planes(array) for array in (saved.y, dyv, total))
    wrong = compiled_call(definition, part, _planes(xv), *_geometry(plan, grown), *arrays)
    if wrong >= 0:
        place = tuple(int(i) for i in np.unravel_index(wrong, dyv.shape[2:]))
        raise _misfit(definition, place, "another number of slopes than the window has taps")
    gradient.total[...] = total
    return (gradient.finish(),)


def by_choice(plan: WindowPlan) -> str | None:
    """Why the compiled kernel declines: never because Numba is missing, which is an error, not a choice."""
    return None if plan.compiled else "compile=False: the function runs as plain Python"


def _checked(plan: WindowPlan, x: Array) -> Extension:
    """The grown input's geometry. Raises ArgumentError: a window without taps, and no value for it."""
    grown = extension(plan.axes, plan.edge)
    if plan.empty is None and x.size:
        for a, axis in enumerate(grown.axes):
            without = np.flatnonzero(counts_inside(axis) == 0)
            if len(without):
                raise ArgumentError(
                    "a window has no tap inside the input, and the function is of the taps",
                    given={"axis": a, "window": int(without[0])},
                    hint="empty=0.0 in window_op gives such windows a value",
                )
    return grown


def _wide(plan: WindowPlan, grown: Extension, x: Array, dtype: str) -> Array:
    """(N, C, *grown) in the dtype the function is given, contiguous."""
    return np.ascontiguousarray(grown.grow(as_channels_first(x, plan.layout), plan.edge_value), dtype)


def _results(plan: WindowPlan, xv: Array) -> Array:
    """Room for the values, (N, C, *out); that of windows without taps is there already."""
    shape = (*xv.shape[:2], *(axis.out for axis in plan.axes))
    return np.full(shape, 0.0 if plan.empty is None else plan.empty, plan.result_dtype)


def _geometry(plan: WindowPlan, grown: Extension) -> tuple[Any, tuple[int, ...], int]:
    """What drivers know of the windows: three axes' taps, three axes' sizes, the most taps of one."""
    sizes = (1,) * (3 - len(grown.axes)) + tuple(axis.size for axis in grown.axes)
    return tables(grown.axes), sizes, math.prod(int(counts_inside(axis).max(initial=0)) for axis in grown.axes)


def _planes(array: Array) -> Array:
    """(N, C, ...) as (N * C, everything else)."""
    return array.reshape(array.shape[0] * array.shape[1], int(np.prod(array.shape[2:])))


def _finish(plan: WindowPlan, definition: Definition, x: Array, y: Array, out: Array, save: bool) -> tuple[Array, Saved | None]:
    """The values in the arrays' dtype. Raises ArrayError: a whole-number array and a value that is none."""
    if plan.whole:
        limits = np.iinfo(plan.dtype)
        wrong = ~((y == np.rint(y)) & (np.abs(y) < EXACT) & (y >= float(limits.min)) & (y <= float(limits.max)))
        if wrong.any():
            raise ArrayError(
                f"{definition.name} gave a value that {plan.dtype} does not hold exactly",
                given={"value": float(y[wrong][0])},
                hint='x.astype("float64")',
            )
    as_channels_first(out, plan.layout)[...] = y
    if not save:
        return out, None
    return out, Saved(shapes=(x.shape,), x=x, y=y, extra={"definition": definition})


def _differentiable(saved: Saved) -> Definition:
    """The definition forward used. Raises UnsupportedError: it has no gradient."""
    definition: Definition = saved.extra["definition"]
    if definition.gradient is None:
        raise UnsupportedError(
            f"{definition.name} was given no gradient",
            because="a function of one window says nothing of its slopes, and differences of it may be wrong at its kinks",
            hint='window_op(gradient=function of (window, y)), or gradient="numeric"',
        )
    return definition


def _pixel_gradient(plan: WindowPlan, dy: Array, saved: Saved) -> PixelGradient:
    assert saved.shapes[0] is not None
    return PixelGradient(saved.shapes[0], dy.dtype, plan.layout, extension(plan.axes, plan.edge), plan.window_dtype)


def _number(definition: Definition, value: Any) -> Any:
    if np.ndim(value) or not isinstance(value, int | float | np.number | np.bool_):
        raise ArrayError(f"{definition.name} did not give a number", given={"value": value}, hint="return float(...)")
    return value


def _slopes(definition: Definition, window: Array, y: Any, here: tuple[int, ...]) -> Array:
    assert callable(definition.gradient)
    slopes = np.asarray(definition.gradient(window.copy(), y), window.dtype)
    if slopes.shape != window.shape:
        raise _misfit(definition, here[2:], f"slopes of shape {slopes.shape} for {len(window)} taps")
    return slopes


def _misfit(definition: Definition, place: tuple[int, ...], what: str) -> ArrayError:
    return ArrayError(
        f"the gradient of {definition.name} does not fit the window",
        given={"window": place},
        required=f"one slope a tap: {what}",
        hint="return an array like the window",
    )


def _numeric(definition: Definition, window: Array) -> Array:
    """Central differences, tap by tap."""
    slopes = np.empty_like(window)
    for tap, here in enumerate(window.tolist()):
        step = STEP * max(1.0, abs(here))
        above, below = window.copy(), window.copy()
        above[tap], below[tap] = here + step, here - step
        slopes[tap] = (definition.function(above) - definition.function(below)) / ((here + step) - (here - step))
    return slopes


KERNELS = (
    Kernel("compiled", forward_compiled, backward_compiled, by_choice),
    Kernel("loops4", forward_loops4, backward_loops4),
)
