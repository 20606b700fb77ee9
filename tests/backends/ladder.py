"""The kernels of an operator from the plainest up, and one run of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from tests.cases.records import Inputs
from tests.compare import assert_close, assert_same, tolerance_of

from astride import dispatch
from astride.backends import BACKENDS, backend
from astride.errors import BackendUnavailable
from astride.ops.max_pool import plane_indices
from astride.plan import ConvPlan, Plan, PoolPlan
from astride.plan.kinds import Reduce, Tie

RUNGS = ("loops4", "loops3", "loops2", "im2col")


def climb(plan: Plan) -> list[str]:
    """Every kernel that takes the plan, `backend:kernel`: the reference's rungs from the plainest up, then all others."""
    rungs, others = [], []
    for place in BACKENDS:
        if place == "webgpu":
            continue  # needs a device: tests/backends/webgpu has its contract
        try:
            kernels = backend(place).kernels(plan.op)
        except BackendUnavailable:
            continue
        for kernel in kernels:
            if kernel.declines(plan) is None:
                (rungs if place == "reference" and kernel.name in RUNGS else others).append(f"{place}:{kernel.name}")
    return sorted(rungs, key=lambda name: RUNGS.index(name.partition(":")[2])) + others


@dataclass(frozen=True)
class Result:
    y: Any
    indices: Any
    gradients: tuple[Any, ...]


def run(inputs: Inputs, kernel: str) -> Result:
    """Forward and backward by one kernel; indices where the plan picks one tap."""
    plan = inputs.plan
    y, saved = dispatch.forward(plan, *inputs.arrays, save=True, backend=kernel)
    assert saved is not None
    indices = plane_indices(plan, saved) if isinstance(plan, PoolPlan) and plan.picks else None
    bare = isinstance(plan, ConvPlan) and plan.whole  # integers have no gradient
    return Result(y, indices, () if bare else dispatch.backward(plan, inputs.dy, saved))


def assert_agree(inputs: Inputs, actual: Result, expected: Result, where: str) -> None:
    """Equal where arithmetic is exact in any order, else within the roundings of the plan's sums."""
    plan = inputs.plan
    compare_y = assert_same if exact_forward(plan) else _close(plan)
    compare_y(actual.y, expected.y, f"{where}, y")
    if expected.indices is not None:
        assert_same(actual.indices, expected.indices, f"{where}, indices")
    largest = float(np.abs(inputs.dy.astype("float64")).max(initial=0.0))
    compare_gradient = assert_same if exact_backward(plan) else _close(plan, largest)
    assert len(actual.gradients) == len(expected.gradients)
    for role, a, e in zip(plan.roles, actual.gradients, expected.gradients, strict=False):
        if a is not None or e is not None:
            compare_gradient(a, e, f"{where}, gradient of {role}")


def exact_forward(plan: Plan) -> bool:
    """Small integers: sums are exact, and one division or none follows."""
    return not isinstance(plan, PoolPlan) or plan.reduce is not Reduce.LP


def exact_backward(plan: Plan) -> bool:
    """No quotients are added up."""
    if isinstance(plan, ConvPlan):
        return True
    if not isinstance(plan, PoolPlan):
        return True
    return plan.reduce in (Reduce.MAX, Reduce.MIN, Reduce.STOCHASTIC) and plan.tie is not Tie.EQUAL_SHARE


def _close(plan: Plan, scale: float = 0.0) -> Any:
    return lambda a, e, where: assert_close(a, e, tolerance_of(plan), where, scale=scale)


def forward(inputs: Inputs, kernel: str, **options: Any) -> Any:
    return dispatch.forward(inputs.plan, *inputs.arrays, backend=kernel, **options)[0]


def aside(array: Any) -> Any:
    """A copy in C order, in the machine's own byte order."""
    return np.array(array, dtype=array.dtype.newbyteorder("="), order="C")
