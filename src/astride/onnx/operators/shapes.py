"""Operators that give an array another shape and compute nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...backends.protocol import Array
from ...errors import ArgumentError
from ...ops._run import as_array
from .record import Call, Operator


def _squeeze(x: Array, axes: tuple[int, ...] | None) -> Array:
    """Axes of size 1 left out: those named, or all."""
    wanted = tuple(i for i, n in enumerate(x.shape) if n == 1) if axes is None else _from_the_front(axes, x.ndim)
    if any(x.shape[axis] != 1 for axis in wanted):
        raise ArgumentError(
            "only axes of size 1 can be left out",
            given={"data": x, "axes": axes},
            required=f"sizes are 1: {tuple(x.shape[axis] for axis in wanted)}",
        )
    return np.squeeze(x, wanted)


def _unsqueeze(x: Array, axes: tuple[int, ...] | None) -> Array:
    """Axes of size 1 put in, counted in the result."""
    if axes is None:
        raise ArgumentError("the axes are not given", given={"data": x, "axes": None}, hint="axes=[0]")
    return np.expand_dims(x, _from_the_front(axes, x.ndim + len(axes)))


def _from_the_front(axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    counted = tuple(axis % rank for axis in axes if -rank <= axis < rank)
    if len(set(counted)) != len(axes):
        raise ArgumentError(
            "axes are named twice, or are not there",
            given={"axes": axes},
            required=f"different axes from {-rank} to {rank - 1}: {axes}",
        )
    return counted


def _reshaped(change: Callable[[Array, tuple[int, ...] | None], Array]) -> Callable[[Call], list[Any]]:
    """The axes are an attribute up to opset 12, an input from 13 on. Results are copies."""

    def run(call: Call) -> list[Any]:
        data, given = call.inputs
        found = call.attributes.get("axes") if call.opset < 13 else given
        axes = None if found is None else tuple(int(axis) for axis in np.asarray(found).reshape(-1))
        return [np.ascontiguousarray(change(as_array(data, "data"), axes)).copy()]

    return run


SHAPES: dict[str, Operator] = {
    "Squeeze": Operator(_reshaped(_squeeze), inputs=2, required=1, attributes=frozenset({"axes"})),
    "Unsqueeze": Operator(_reshaped(_unsqueeze), inputs=2, required=1, attributes=frozenset({"axes"})),
}
