"""From a plan and arrays to a recorded result: the step every operator shares."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dispatch, tape
from ..backends.protocol import Array, Saved
from ..errors import ArrayError, AstrideError
from ..plan import Plan
from ..rules import rule


def as_array(value: Any, name: str) -> Array:
    """An array as it is, or nested numbers made one. Raises ArrayError for anything that has no numeric dtype."""
    array = value if isinstance(value, np.ndarray) else np.asarray(value)
    if array.dtype.kind in "OSUMmc":
        raise ArrayError(f"{name} is not an array of real numbers", given={name: array}, hint="numpy.asarray(x, dtype='float32')")
    return array


def make_plan(op: str, rules: str, *shapes: Any, given: dict[str, Array] | None = None, **arguments: Any) -> Any:
    """The plan a framework's rule makes of these arguments; its errors gain the operator's name, the rules' and the arrays."""
    try:
        return rule(rules, op)(*shapes, **arguments)
    except AstrideError as error:
        raise error.within(operator=op, rules=rules, given=given)


def run(plan: Plan, *arrays: Array | None, out: Array | None = None, backend: str | None = None, save: bool = False) -> tuple[Array, Saved | None]:
    """Compute, and record the step where a tape is active. `save` asks for the saved record in any case."""
    recorded = tape.active()
    y, saved = dispatch.forward(plan, *arrays, out=out, save=save or recorded, backend=backend)
    if recorded and saved is not None:
        kept = saved

        def pull(gradients: tuple[Array | None, ...], want: tuple[bool, ...]) -> tuple[Array | None, ...]:
            dy = gradients[0]
            return (None,) * len(arrays) if dy is None else dispatch.backward(plan, dy, kept, want=want)

        tape.record(tape.Node(plan.op, arrays, (y,), pull))
    return y, saved
