"""Plans and checked calls that are remembered: only those of equal arguments, of equal types, and not without bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import astride
from astride import dispatch
from astride.errors import ArgumentError, ArrayError
from astride.ops import _run
from astride.plan import ExplicitAxis, windows_listed

X = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)


def test_a_plan_is_made_once() -> None:
    made = astride.plan("max_pool", (1, 1, 4, 4), kernel=2, stride=[1, 2])
    assert astride.plan("max_pool", (1, 1, 4, 4), kernel=2, stride=[1, 2]) is made


@pytest.mark.parametrize("kernel", [1.0, True, "1", np.float32(1)])
def test_what_equals_a_kernel_is_none(kernel: Any) -> None:
    assert astride.max_pool(X, kernel=1).shape == X.shape
    with pytest.raises(ArgumentError, match="not a whole number"):
        astride.max_pool(X, kernel=kernel)


def test_arguments_that_change() -> None:
    kernel = [2, 2]
    assert astride.max_pool(X, kernel=kernel).shape == (1, 1, 2, 2)
    kernel[0] = 4
    assert astride.max_pool(X, kernel=kernel).shape == (1, 1, 1, 2)


def test_a_negative_zero_is_none() -> None:
    calls: list[dict[str, Any]] = [dict(kernel=1, padding=1, edge="constant", edge_value=value) for value in (0.0, -0.0, 0.0)]
    corners = [astride.max_pool(X, **call)[0, 0, 0, 0] for call in calls]
    assert np.signbit(corners).tolist() == [False, True, False]


def test_an_empty_windows_negative_zero() -> None:
    corners = [
        astride.window_reduce(X, np.sum, kernel=1, padding=1, stride=5, empty=value, compile=False)[0, 0, 0, 0]
        for value in (0.0, -0.0, 0.0)
    ]
    assert np.signbit(corners).tolist() == [False, True, False]


def test_lists_within_themselves() -> None:
    kernel: list[Any] = [2]
    kernel.append(kernel)
    with pytest.raises(ArgumentError, match="not a whole number"):
        astride.max_pool(X, kernel=kernel)


def test_large_plans_are_not_kept() -> None:
    few, many = 8, _run.WINDOWS_KEPT + 1
    x = np.zeros((1, 1, 8), np.float32)
    for out in (few, many):
        plan = astride.plan("adaptive_pool", x.shape, output_size=out)
        assert isinstance(plan.axes[0], ExplicitAxis) and windows_listed(plan) == out
        assert astride.adaptive_pool(x, output_size=out).shape == (1, 1, out)
        assert (astride.plan("adaptive_pool", x.shape, output_size=out) is plan) == (out == few)
        assert any(ready.plan == plan for ready in dispatch._ready.values()) == (out == few)


def test_remembered_checks_are_of_the_arrays_they_saw() -> None:
    plan = astride.plan("max_pool", (1, 1, 4, 4), kernel=2)
    y, _ = dispatch.forward(plan, X)
    np.testing.assert_array_equal(dispatch.forward(plan, X.astype(">f4"))[0], y)
    for other in (X.astype(np.float64), X[..., :3], X[0], X.tolist()):
        with pytest.raises(ArrayError):
            dispatch.forward(plan, other)
    np.testing.assert_array_equal(dispatch.forward(plan, X)[0], y)
    assert dispatch.forward(plan, np.concatenate([X, X]))[0].shape == (2, 1, 2, 2)


def test_a_backend_set_later_is_asked() -> None:
    plan = astride.plan("max_pool", (1, 1, 4, 4), kernel=2)
    kernels = []
    for wanted in ("reference:loops2", "reference:loops4", "reference:loops2"):
        with astride.use(backend=wanted):
            saved = dispatch.forward(plan, X, save=True)[1]
            assert saved is not None
            kernels.append(saved.kernel)
    assert kernels == ["reference:loops2", "reference:loops4", "reference:loops2"]
