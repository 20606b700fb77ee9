"""Every kernel of every backend on every case: forward, indices and gradients equal to those of the rung below."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from tests.backends.ladder import assert_agree, climb, run
from tests.cases.records import Case, inputs_of

WINDOWS = (
    "max_pool",
    "min_pool",
    "avg_pool",
    "lp_pool",
    "stochastic_pool",
    "adaptive_pool",
    "max_unpool",
    "conv",
    "conv_transpose",
)
ALL = [(op, case) for op in WINDOWS for case in import_module(f"tests.cases.{op}").CASES]


@pytest.mark.parametrize(("op", "case"), ALL, ids=[f"{op}: {case}" for op, case in ALL])
def test_equals_the_rung_below(op: str, case: Case) -> None:
    inputs = inputs_of(op, case)
    kernels = climb(inputs.plan)
    assert len(kernels) >= 2, "nothing judges this plan"
    before = [None if a is None else a.tobytes() for a in inputs.arrays]
    below = run(inputs, kernels[0])
    for kernel, judge in zip(kernels[1:], kernels, strict=False):
        here = run(inputs, kernel)
        assert_agree(inputs, here, below, f"{kernel} against {judge}")
        below = here
    assert [None if a is None else a.tobytes() for a in inputs.arrays] == before, "an input was changed"


def test_names_are_unique() -> None:
    names = [(op, case.name) for op, case in ALL]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("op", WINDOWS)
def test_every_rung_has_cases(op: str) -> None:
    """No kernel declines all of its operator's cases, so none goes unseen."""
    from astride.backends import backend

    taken = {kernel for case in import_module(f"tests.cases.{op}").CASES for kernel in climb(inputs_of(op, case).plan)}
    assert taken >= {f"reference:{kernel.name}" for kernel in backend("reference").kernels(op)}


@pytest.mark.parametrize("part", ["y", "indices", "gradient"])
def test_a_wrong_kernel_is_found(part: str) -> None:
    case = next(case for _, case in ALL if case.name == "two axes")
    inputs = inputs_of("max_pool", case)
    right = run(inputs, "reference:loops2")

    def off_by_one(array: Any) -> Any:
        wrong = np.array(array)
        wrong.flat[-1] += 1
        return wrong

    wrong = type(right)(
        off_by_one(right.y) if part == "y" else right.y,
        off_by_one(right.indices) if part == "indices" else right.indices,
        (off_by_one(right.gradients[0]), None) if part == "gradient" else right.gradients,
    )
    assert_agree(inputs, right, right, "itself")
    with pytest.raises(AssertionError, match=part):
        assert_agree(inputs, wrong, right, "wrong against right")
