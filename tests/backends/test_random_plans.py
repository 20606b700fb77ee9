"""Every kernel on random small plans: a sample in every run, thousands in the complete sweep."""

from __future__ import annotations

import pytest
from tests.backends.ladder import assert_agree, climb, run
from tests.backends.random_plans import random_inputs
from tests.backends.test_contract import WINDOWS

from astride.ops import FORMS
from astride.plan import plan_from_dict

OPERATORS = tuple(op for op in WINDOWS if op not in FORMS)
SAMPLE, SWEEP, BLOCK = 50, 4050, 25
"""Almost every plan needs kernels of its own, a tenth of a second each to compile: 50 an operator still have every value of
every field (below), and cost ten seconds of two cores."""


def check(op: str, first: int, last: int) -> None:
    for seed in range(first, last):
        inputs = random_inputs(op, seed)
        assert plan_from_dict(inputs.plan.to_dict()) == inputs.plan
        kernels = climb(inputs.plan)
        below = run(inputs, kernels[0])
        for kernel, judge in zip(kernels[1:], kernels, strict=False):
            here = run(inputs, kernel)
            assert_agree(inputs, here, below, f"plan {seed}, {kernel} against {judge}: {inputs.plan}")
            below = here


@pytest.mark.parametrize("first", range(0, SAMPLE, BLOCK))
@pytest.mark.parametrize("op", OPERATORS)
def test_sample(op: str, first: int) -> None:
    check(op, first, first + BLOCK)


@pytest.mark.conformance
@pytest.mark.parametrize("first", range(SAMPLE, SWEEP, 40 * BLOCK))
@pytest.mark.parametrize("op", OPERATORS)
def test_sweep(op: str, first: int) -> None:
    check(op, first, first + 40 * BLOCK)


def test_the_sample_is_varied() -> None:
    plans = [random_inputs(op, seed).plan for op in OPERATORS for seed in range(SAMPLE)]
    assert len(set(plans)) > 0.95 * len(plans)
    pools = [plan for plan in plans if hasattr(plan, "tie")]
    for field in ("tie", "start", "nan", "unpicked", "edge", "divisor", "empty", "lp_form", "lp_scale", "layout"):
        kinds = type(getattr(pools[0], field))
        assert {getattr(plan, field) for plan in pools} == set(kinds), field
