"""A comparison as plain data: what `astride explain --json` prints."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ..errors import AstrideError
from .compare import Comparison, Side
from .values import Values
from .windows import AxisView, Window, is_transposed


def to_dict(comparison: Comparison) -> dict[str, Any]:
    """Numbers, strings, lists and dictionaries only; `plan` is what `plan_from_dict` reads."""
    return {
        "op": comparison.op,
        "shape": list(comparison.shape),
        "w_shape": None if comparison.w_shape is None else list(comparison.w_shape),
        "dtype": comparison.dtype,
        "layout": comparison.layout,
        "arguments": {name: plain(value) for name, value in comparison.arguments.items()},
        "differing": list(comparison.differing),
        "input": None if comparison.input is None else comparison.input.tolist(),
        "rules": [_side(comparison, side) for side in comparison.sides],
    }


def _side(comparison: Comparison, side: Side) -> dict[str, Any]:
    found: dict[str, Any] = {
        "rules": side.rules,
        "arguments": {name: plain(value) for name, value in side.arguments.items()},
        "error": None if side.error is None else error_dict(side.error),
        "plan": None if side.plan is None else side.plan.to_dict(),
        "source": None if side.source is None else asdict(side.source),
    }
    if side.plan is None:
        return found
    transposed = is_transposed(side.plan)
    return found | {
        "facts": dict(side.facts or {}),
        "formulas": list(side.formulas),
        "windows_are": "written" if transposed else "read",
        "values": None if side.values is None else _values(side.values),
        "axes": [_axis(comparison, side, a, axis) for a, axis in enumerate(side.axes)],
        "computed_by": side.computed_by,
        "general_path": side.general_path,
        "kernels": [asdict(rung) for rung in side.rungs],
    }


def _values(values: Values) -> dict[str, Any]:
    """The output and the gradient of dy = 1."""
    return {
        "y": None if values.y is None else values.y.tolist(),
        "dx": None if values.dx is None else values.dx.tolist(),
        "error": None if values.error is None else error_dict(values.error),
    }


def axis_to_dict(axis: AxisView) -> dict[str, Any]:
    """One axis and its windows."""
    return {
        "name": axis.name,
        "size": axis.size,
        "out": axis.out,
        "pads": [axis.pad_lo, axis.pad_hi],
        "formula": axis.formula,
        "untouched_pixels": [list(run) for run in axis.unread],
        "windows_left_out": axis.left_out,
        "windows": [_window(window) for window in axis.windows],
    }


def _axis(comparison: Comparison, side: Side, a: int, axis: AxisView) -> dict[str, Any]:
    found = axis_to_dict(axis)
    for shown, window in zip(found["windows"], axis.windows, strict=True):
        shown["differs"] = comparison.differs(side, a, window)
    return found


def _window(window: Window) -> dict[str, Any]:
    return {
        "index": window.index,
        "taps": [{"position": tap.position, "place": tap.place.value, "reads": tap.reads} for tap in window.taps],
        "pixels": list(window.pixels),
        "divisor": window.divisor,
    }


def error_dict(error: AstrideError) -> dict[str, Any]:
    """An error's parts; `message` is the whole text."""
    return {
        "kind": type(error).__name__,
        "problem": error.problem,
        "given": {name: plain(value) for name, value in error.given.items()},
        "required": error.required,
        "because": error.because,
        "hint": error.hint,
        "message": str(error),
    }


def plain(value: Any) -> Any:
    """Tuples as lists, numbers and strings as they are, anything else as text."""
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
