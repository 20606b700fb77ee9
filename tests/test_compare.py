"""A comparison that cannot fail shows nothing: each of tests/compare.py is made to."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import astride
from tests.compare import assert_close, assert_near, assert_same, assert_unchanged, tolerance_of

ONE = np.array([1.0, np.nan, np.inf, -2.0], np.float32)


def changed(place: int, value: float) -> Any:
    array = ONE.copy()
    array[place] = value
    return array


def test_equal_arrays_pass() -> None:
    assert_same(ONE, ONE.copy())
    assert_close(ONE, changed(0, 1 + 1e-7), 1e-6)
    assert_near(ONE.tolist(), ONE, 0.0)
    assert_same(np.array([1, 2], ml_dtypes.bfloat16), np.array([1, 2], ml_dtypes.bfloat16))
    assert_unchanged(ONE, ONE.tobytes())


@pytest.mark.parametrize("other", [changed(0, 1.5), changed(0, np.nan), changed(1, 0), changed(2, -np.inf), changed(2, 3e38)])
def test_another_value_fails(other: Any) -> None:
    for compare in (lambda a, e: assert_same(a, e), lambda a, e: assert_close(a, e, 1e-3), lambda a, e: assert_near(a, e, 1e-3)):
        with pytest.raises(AssertionError, match="is not"):
            compare(other, ONE)
        with pytest.raises(AssertionError, match="is not"):
            compare(ONE, other)


@pytest.mark.parametrize("other", [ONE[:3], ONE[None], ONE.astype(np.float64), None])
def test_another_shape_or_dtype_fails(other: Any) -> None:
    for compare in (lambda a, e: assert_same(a, e), lambda a, e: assert_close(a, e, 1e-3)):
        with pytest.raises(AssertionError, match="is not"):
            compare(other, ONE)


def test_nothing_is_no_result() -> None:
    with pytest.raises(AssertionError, match="nothing to compare"):
        assert_same(None, None)


def test_a_changed_input_fails() -> None:
    before = ONE.tobytes()
    with pytest.raises(AssertionError, match="was changed"):
        assert_unchanged(changed(3, 2), before)


def test_tolerances_are_tight() -> None:
    """A window's tolerance is some roundings wide, far below the difference that one wrong tap would make."""
    plan = astride.plan("avg_pool", (1, 1, 6, 6), kernel=3)
    assert 1e-7 < tolerance_of(plan) < 1e-4
    assert tolerance_of(astride.plan("avg_pool", (1, 1, 6, 6), kernel=3, dtype="float64")) < 1e-12
