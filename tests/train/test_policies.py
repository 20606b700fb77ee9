"""Learning-rate policies against numbers worked out by hand."""

from __future__ import annotations

import math

import pytest

from astride.errors import ArgumentError, UnsupportedError
from astride.train.policies import POLICIES, Policy, advance, rate


@pytest.mark.parametrize(
    ("policy", "rates"),
    [
        (Policy("fixed", 0.1), {0: 0.1, 7: 0.1}),
        (Policy("step", 0.1, gamma=0.5, stepsize=3), {0: 0.1, 2: 0.1, 3: 0.05, 5: 0.05, 6: 0.025}),
        (Policy("exp", 2.0, gamma=0.5), {0: 2.0, 1: 1.0, 3: 0.25}),
        (Policy("inv", 0.1, gamma=1.0, power=2.0), {0: 0.1, 1: 0.025, 9: 0.001}),
        (Policy("multistep", 1.0, gamma=0.1, stepvalue=(2, 5)), {0: 1.0, 1: 1.0, 2: 0.1, 4: 0.1, 5: 0.01, 99: 0.01}),
        (Policy("poly", 0.4, power=2.0, max_iter=4), {0: 0.4, 1: 0.225, 2: 0.1, 4: 0.0, 5: 0.0}),
        (Policy("sigmoid", 1.0, gamma=1.0, stepsize=3), {3: 0.5, 4: 1 / (1 + math.exp(-1)), 0: 1 / (1 + math.exp(3))}),
    ],
    ids=lambda value: value.name if isinstance(value, Policy) else "",
)
def test_rate_by_hand(policy: Policy, rates: dict[int, float]) -> None:
    for iteration, expected in rates.items():
        assert rate(policy, iteration) == pytest.approx(expected, rel=1e-12, abs=1e-15), iteration


def test_every_policy_has_a_hand_number() -> None:
    assert set(POLICIES) == {"fixed", "step", "exp", "inv", "multistep", "poly", "sigmoid"}


def test_a_falling_sigmoid_far_out_is_zero_and_not_an_overflow() -> None:
    assert rate(Policy("sigmoid", 1.0, gamma=-1.0, stepsize=10), 100_000) == 0
    assert rate(Policy("sigmoid", 1.0, gamma=1.0, stepsize=10), 100_000) == 1


def test_multistep_counts_one_step_an_iteration() -> None:
    """A run restored at 100 with new steps 30, 60, 120 takes them one after the other, as Caffe does."""
    policy = Policy("multistep", 1.0, gamma=0.1, stepvalue=(30, 60, 120))
    first = advance(policy, 100, 0)
    second = advance(policy, 101, first)
    assert (first, second, advance(policy, 102, second), advance(policy, 120, 2)) == (1, 2, 2, 3)


def test_step_counts_from_the_iteration_alone() -> None:
    assert advance(Policy("step", 1.0, gamma=0.1, stepsize=10), 35, 99) == 3


@pytest.mark.parametrize(
    ("name", "given", "missing"),
    [
        ("step", {"gamma": 0.1}, "stepsize"),
        ("step", {"stepsize": 10}, "gamma"),
        ("exp", {}, "gamma"),
        ("inv", {"gamma": 0.1}, "power"),
        ("multistep", {"gamma": 0.1}, "stepvalue"),
        ("poly", {"power": 1.0}, "max_iter"),
        ("poly", {"max_iter": 10}, "power"),
        ("sigmoid", {"gamma": 0.1}, "stepsize"),
    ],
)
def test_a_missing_parameter_is_named(name: str, given: dict[str, float], missing: str) -> None:
    with pytest.raises(ArgumentError, match=f"the policy {name} needs {missing}") as caught:
        Policy(name, 0.1, **given)  # type: ignore[arg-type]
    assert caught.value.hint is not None and caught.value.hint.startswith(missing)


def test_an_unknown_policy_lists_the_known() -> None:
    with pytest.raises(UnsupportedError, match="unknown learning-rate policy") as caught:
        Policy("cosine", 0.1)
    assert all(name in str(caught.value) for name in POLICIES)


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        (dict(name="step", base_lr=0.1, gamma=0.1, stepsize=0), "stepsize >= 1: 0"),
        (dict(name="fixed", base_lr=math.nan), "base_lr"),
        (dict(name="fixed", base_lr=-1.0), "base_lr"),
        (dict(name="multistep", base_lr=0.1, gamma=0.1, stepvalue=(5, 2)), r"\[5, 2\]"),
    ],
)
def test_numbers_that_make_no_policy(policy: dict[str, object], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        Policy(**policy)  # type: ignore[arg-type]


def test_a_rate_beyond_all_numbers_is_an_error() -> None:
    with pytest.raises(ArgumentError, match="iteration 5000 is no number"):
        rate(Policy("exp", 0.1, gamma=2.0), 5000)
    with pytest.raises(ArgumentError, match="is no number"):
        rate(Policy("inv", 0.1, gamma=-1.0, power=0.5), 10)
