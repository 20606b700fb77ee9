"""Functions of one window, compiled by Numba: the same numbers as plain Python gives, and errors that say what to do."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from tests.cases import window_reduce as cases
from tests.cases.dense import Array, DenseCase
from tests.compare import assert_close, assert_same

import astride
from astride import dispatch, ops
from astride.errors import ArgumentError, ArrayError, UnsupportedError

pytest.importorskip("numba", reason="Numba is not installed")
pytestmark = pytest.mark.live

X = np.random.default_rng(0).normal(size=(2, 3, 9, 8))


@pytest.mark.parametrize("case", cases.COMPILED, ids=str)
def test_compiled_equals_plain(case: DenseCase) -> None:
    arrays = case.arrays()
    assert dispatch.choose(case.plan).name == "reference:compiled"
    y, saved = ops.forward(case.plan, *arrays, save=True)
    z, plain = ops.forward(case.plan, *arrays, save=True, backend="reference:loops4")
    assert saved is not None and plain is not None and saved.kernel == "reference:compiled"
    assert_close(y, z, 1e-6, "y")
    if case in cases.COMPILED[: len(cases.SMOOTH)]:
        dy = np.arange(y.size).reshape(y.shape).astype(y.dtype)
        (dx,), (expected,) = dispatch.backward(case.plan, dy, saved), dispatch.backward(case.plan, dy, plain)
        assert_close(dx, expected, 1e-3 if case.plan.dtype == "float16" else 1e-6, "dx")


def test_arrays_of_any_strides_are_left_alone() -> None:
    op = astride.window_op(cases.half_squares.function, gradient=lambda window, y: window)
    view = X[:, ::-1, ::2, ::-1]
    view.flags.writeable = False
    before = X.copy()
    y, pull = astride.vjp(op, view, kernel=2)
    assert_same(y, op(view.copy(), kernel=2), "y")
    assert_close(pull(y)[0], astride.vjp(cases.half_squares, view.copy(), kernel=2)[1](y)[0], 1e-12, "dx")
    np.testing.assert_array_equal(X, before)


def test_a_function_that_is_compiled_already() -> None:
    import numba

    compiled = numba.njit(lambda window: window.max() - window.min())
    y = astride.window_reduce(X, compiled, kernel=3)
    np.testing.assert_array_equal(y, astride.max_pool(X, kernel=3) - astride.min_pool(X, kernel=3))


def test_half_squares_pass_the_gradient_check() -> None:
    op = astride.window_op(cases.half_squares.function, gradient=lambda window, y: window)
    assert astride.check_gradient(op, X, kernel=3, stride=2, rules="caffe")
    assert astride.check_gradient(astride.window_op(cases.product.function, gradient="numeric"), X, kernel=2, tolerance=1e-5)


def test_it_is_compiled_once() -> None:
    op = astride.window_op(cases.half_squares.function)
    op(X, kernel=2)
    (driver,) = op._definition.drivers.values()
    op(X, kernel=3, stride=1, rules="caffe")
    assert len(driver.signatures) == 1  # type: ignore[attr-defined]
    op(X.astype(np.float32), kernel=2)
    assert len(driver.signatures) == 2  # type: ignore[attr-defined]


def test_the_functional_form_keeps_what_it_compiled() -> None:
    from astride.ops.window_reduce import _operator

    function = cases.half_squares.function
    astride.window_reduce(X, function, kernel=2)
    (driver,) = _operator(function, None, None)._definition.drivers.values()
    astride.window_reduce(X, function, kernel=3)
    assert len(driver.signatures) == 1  # type: ignore[attr-defined]


def test_division_by_zero_is_infinite() -> None:
    y = astride.window_reduce(np.zeros((1, 1, 2)), lambda window: 1 / window[0], kernel=2)
    assert y.item() == np.inf


def test_what_cannot_be_compiled_says_why() -> None:
    def by_name(window: Array) -> Any:
        return {"name": window}["name"].nothing()

    with pytest.raises(ArgumentError) as caught:
        astride.window_reduce(X, by_name, kernel=2)
    assert "Numba cannot compile by_name" in str(caught.value) and "compile=False" in str(caught.value)
    assert caught.value.operator == "by_name" and len(str(caught.value)) < 900


def test_slopes_that_do_not_fit_are_refused() -> None:
    op = astride.window_op(lambda window: window.sum(), gradient=lambda window, y: np.ones(3))
    y, pull = astride.vjp(op, X[:1, :1, :4, :2], kernel=2)
    with pytest.raises(ArrayError, match=r"one slope a tap(.|\n)*window = \(0, 0\)|window = \(0, 0\)(.|\n)*one slope a tap"):
        pull(y)


def test_backward_without_a_gradient_is_refused() -> None:
    y, pull = astride.vjp(astride.window_op(cases.rank_of_last.function), X, kernel=2)
    with pytest.raises(UnsupportedError, match="rank_of_last was given no gradient"):
        pull(y)


def test_an_error_inside_is_its_own() -> None:
    def fails(window: Array) -> Any:
        if window[0] > -100:
            raise ValueError("mine")
        return 0.0

    with pytest.raises(ValueError, match="mine"):
        astride.window_reduce(X, fails, kernel=2)


def test_operators_are_forgotten() -> None:
    from astride.backends._definitions import _known

    op = astride.window_op(lambda window: window[0])
    op(X, kernel=2)
    key = op.plan(X.shape, kernel=2).function
    assert key in _known
    del op
    gc.collect()
    assert key not in _known
