"""Pooling in WGSL against the reference: cases, random plans, draws, and what is declined. A sample in every run."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from tests.backends.ladder import assert_agree, run
from tests.backends.random_plans import random_inputs
from tests.cases.records import Case, inputs_of
from tests.compare import assert_same

import astride
from astride import dispatch
from astride.backends import backend
from astride.backends.webgpu import pooling, scan
from astride.backends.webgpu.device import LIMITS
from astride.plan import PoolPlan

OPERATORS = ("max_pool", "min_pool", "avg_pool", "lp_pool", "stochastic_pool", "max_unpool")
CASES = {op: import_module(f"tests.cases.{op}").CASES for op in (*OPERATORS, "adaptive_pool")}
ALL = [(op, case) for op, cases in CASES.items() for case in cases]
SAMPLE = [(op, case) for op, cases in CASES.items() for case in cases[:: max(len(cases) // 24, 1)]]
PLANS, SWEEP = 12, 400


def check(inputs: Any, where: str) -> bool:
    """Compare with the reference, unless the backend declines. Whether it computed."""
    kernels = backend("webgpu").kernels(inputs.plan.op)
    if kernels[0].declines(inputs.plan) is not None:
        return False
    before = [None if a is None else a.tobytes() for a in inputs.arrays]
    assert_agree(inputs, run(inputs, "webgpu"), run(inputs, "reference"), where)
    assert [None if a is None else a.tobytes() for a in inputs.arrays] == before, "an input was changed"
    return True


@pytest.mark.parametrize(("op", "case"), SAMPLE, ids=[f"{op}: {case}" for op, case in SAMPLE])
def test_case(device: Any, op: str, case: Case) -> None:
    check(inputs_of(op, case), f"{op}: {case}")


@pytest.mark.slow
@pytest.mark.parametrize("op", CASES)
def test_every_case(device: Any, op: str) -> None:
    computed = [check(inputs_of(op, case), f"{op}: {case}") for case in CASES[op]]
    assert sum(computed) > 0.8 * len(computed)


@pytest.mark.parametrize("op", OPERATORS)
def test_random_plans(device: Any, op: str) -> None:
    computed = [check(random_inputs(op, seed), f"{op} {seed}") for seed in range(PLANS)]
    assert any(computed)


@pytest.mark.slow
@pytest.mark.parametrize("op", OPERATORS)
def test_many_random_plans(device: Any, op: str) -> None:
    computed = [check(random_inputs(op, seed), f"{op} {seed}") for seed in range(PLANS, SWEEP)]
    assert any(computed)


def test_a_divisor_of_zero_is_positive(device: Any) -> None:
    """Caffe's divisor is a product of counts that may be 0 on one axis and negative on another."""
    assert check(random_inputs("avg_pool", 358), "0 * -1")


def test_a_wrong_result_is_found(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = inputs_of("max_pool", next(case for case in CASES["max_pool"] if case.name == "two axes"))
    true = pooling.numbers_of
    monkeypatch.setattr(pooling, "numbers_of", lambda plan: true(plan) | {"start": 0x42000000})
    with pytest.raises(AssertionError, match="differ"):
        check(inputs, "started at 32")


def test_an_adaptive_pool_of_fours_of_channels(device: Any, rng: np.random.Generator) -> None:
    x = rng.integers(-9, 9, (2, 9, 7, 8)).astype(np.float32)
    for reduce in ("max", "average"):
        got, expected = (
            astride.adaptive_pool(x, output_size=(4, 3), reduce=reduce, layout="channels_last", backend=name)
            for name in ("webgpu", "reference")
        )
        np.testing.assert_allclose(got, expected, rtol=1e-6)


@pytest.mark.parametrize("seed", [0, 7, 2**40 + 3])
def test_draws_are_those_of_every_backend(device: Any, rng: np.random.Generator, seed: int) -> None:
    x = rng.integers(0, 9, (3, 4, 12, 11)).astype(np.float32)
    got, expected = (
        astride.stochastic_pool(x, kernel=3, stride=2, training=True, seed=seed, backend=name) for name in ("webgpu", "cpu")
    )
    assert_same(got, expected)


def test_batches_beyond_a_binding_go_in_parts(device: Any, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    monkeypatch.setattr("astride.backends.webgpu.host.BINDING_MAX", 4 * 3 * 64 * 2)
    x = rng.integers(-9, 9, (5, 3, 8, 8)).astype(np.float32)
    assert len(pooling._parts(x.shape, (5, 3, 4, 4), "float32")) == 3
    plan = astride.plan("max_pool", x.shape, kernel=2, stride=2)
    dy = rng.integers(-9, 9, (5, 3, 4, 4)).astype(np.float32)
    results = []
    for name in ("webgpu", "reference"):
        y, saved = dispatch.forward(plan, x, save=True, backend=name)
        assert saved is not None
        results.append((y, saved.offsets, dispatch.backward(plan, dy, saved, backend=name)[0]))
    for got, expected in zip(*results, strict=True):
        assert_same(got, expected)


def test_a_record_of_another_backend_serves(device: Any, rng: np.random.Generator) -> None:
    x = rng.integers(-9, 9, (2, 3, 8, 8)).astype(np.float32)
    plan = astride.plan("max_pool", x.shape, kernel=3, stride=2)
    y, saved = dispatch.forward(plan, x, save=True, backend="reference")
    assert saved is not None
    got, expected = (dispatch.backward(plan, y, saved, backend=name)[0] for name in ("webgpu", "reference"))
    assert_same(got, expected)


def test_no_images_and_no_channels(device: Any) -> None:
    for shape in ((0, 3, 8, 8), (2, 0, 8, 8)):
        x = np.zeros(shape, np.float32)
        assert astride.max_pool(x, kernel=2, backend="webgpu").shape == (*shape[:2], 4, 4)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (dict(dtype="float64"), "not float64"),
        (dict(accumulate="float64"), "sums in float32"),
    ],
)
def test_what_is_declined_has_a_reason(changes: dict[str, Any], reason: str) -> None:
    plan = astride.plan("avg_pool", (1, 1, 8, 8), kernel=2)
    assert isinstance(plan, PoolPlan)
    assert reason in (pooling.declines(replace(plan, **changes)) or "")


@pytest.mark.parametrize("op", OPERATORS[:-1])
def test_long_loops_run_in_parts(device: Any, monkeypatch: pytest.MonkeyPatch, op: str) -> None:
    """As if drivers stopped after 8 turns: variables are handed on from one dispatch to the next."""
    names: list[int] = []
    true = scan.parts

    def counted(*loops: int) -> list[dict[str, int]]:
        names.append(len(found := list(true(*loops))))
        return found

    monkeypatch.setattr(pooling, "LOOP_MAX", 8)
    monkeypatch.setattr(scan, "LOOP_MAX", 8)
    monkeypatch.setattr(pooling, "parts", counted)
    pooling.refusal.cache_clear()
    try:
        computed = [check(random_inputs(op, seed), f"{op} {seed}") for seed in range(100, 150)]
    finally:
        pooling.refusal.cache_clear()
    assert any(computed) and max(names) > 1


@pytest.mark.parametrize("reduce", ["max_pool", "avg_pool"])
def test_a_window_of_more_taps_than_drivers_loop(device: Any, reduce: str) -> None:
    """The greatest value and the ones that count stand behind tap 65,535."""
    x = np.zeros((1, 2, 300, 300), np.float32)
    x[0, 0, 299, 298] = 9
    x[0, 1, 250:, :] = 1
    plan = astride.plan(reduce, x.shape, kernel=300)
    dy = np.array([3, 5], np.float32).reshape(1, 2, 1, 1) * (1 if reduce == "max_pool" else 90_000)
    results = []
    for name in ("webgpu", "reference"):
        y, saved = dispatch.forward(plan, x, save=True, backend=name)
        assert saved is not None
        results.append((y, dispatch.backward(plan, dy, saved, backend=name)[0]))
    for got, expected in zip(*results, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_windows_too_large_for_any_split_are_declined() -> None:
    plan = astride.plan("max_pool", (1, 1, 2, 70_000), kernel=(2, 70_000))
    assert "65535 times" in (pooling.refusal(plan) or "")  # type: ignore[arg-type]


def test_the_device_has_no_more_than_the_default_limits(device: Any) -> None:
    """Pipelines are made within them, or not at all: wgpu checks each against the device's own limits."""
    have = device.wgpu.limits
    for name, value in LIMITS.items():
        assert have[name] == value, name
