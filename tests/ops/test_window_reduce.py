"""window_reduce and window_op, run as plain Python: by hand, against loops, gradients, and what is refused."""

from __future__ import annotations

import gc
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.cases import window_reduce as cases
from tests.cases.dense import Array, DenseCase, DenseRefusal

import astride
from astride import ops
from astride.backends._definitions import definition_of
from astride.errors import ArgumentError, ArrayError, BackendUnavailable, UnsupportedError
from astride.ops.window_reduce import WINDOWS, WindowOperator
from astride.plan import ExplicitAxis, WindowPlan, plan_from_dict
from astride.plan.kinds import Edge, Layout

from .dense import check_contract, check_gradient, check_refusal, check_wanted


def loops(plan: WindowPlan, x: Array) -> Array:
    """Every window gathered pixel by pixel."""
    if plan.layout is Layout.CHANNELS_LAST:
        x = np.moveaxis(x, -1, 1)
    function = definition_of(plan.function).function
    y = np.zeros((*x.shape[:2], *(axis.out for axis in plan.axes)))
    for n, c, *window in np.ndindex(y.shape):
        taps = [np.array(axis.taps(i)) for axis, i in zip(plan.axes, window, strict=True)]
        values = [
            pixel(plan, x[n, c], tuple(int(p) for p in at))
            for at in np.array(np.meshgrid(*taps, indexing="ij")).reshape(len(taps), -1).T
        ]
        found = np.array([v for v in values if v is not None], np.float64)
        y[(n, c, *window)] = function(found) if len(found) else plan.empty
    y = y.astype(x.dtype)
    return np.moveaxis(y, 1, -1) if plan.layout is Layout.CHANNELS_LAST else y


def pixel(plan: WindowPlan, image: Array, at: tuple[int, ...]) -> Any:
    if all(0 <= p < size for p, size in zip(at, image.shape, strict=True)):
        return image[at]
    if plan.edge is Edge.CONSTANT:
        return plan.edge_value
    if plan.edge is Edge.MIRROR:
        return image[tuple(size - 1 - abs(size - 1 - abs(p)) for p, size in zip(at, image.shape, strict=True))]
    return None


@pytest.mark.parametrize("case", cases.CASES, ids=str)
def test_contract(case: DenseCase) -> None:
    check_contract(case, loops)


@pytest.mark.parametrize("case", cases.SMOOTH, ids=str)
def test_gradient(case: DenseCase) -> None:
    check_gradient(case)
    check_wanted(case)


@pytest.mark.parametrize("refusal", cases.REFUSALS, ids=str)
def test_refusal(refusal: DenseRefusal) -> None:
    check_refusal(cases.rank_of_last, refusal)


X = np.array([[1, 5, 2], [4, 3, 6], [0, 2, 1]], np.float64)[None, None]


def test_by_hand() -> None:
    #  1 5 2        medians of      1 5 4 3   5 2 3 6
    #  4 3 6        2 x 2 windows   4 3 0 2   3 6 2 1
    #  0 2 1
    y = astride.window_reduce(X, np.median, kernel=2, stride=1, compile=False)
    assert y[0, 0].tolist() == [[3.5, 4], [2.5, 2.5]]


@pytest.mark.parametrize("rules", ["explicit", "caffe", "pytorch", "mps", "tensorflow", "numpy_loops"])
def test_windows_are_those_of_the_rules(rules: str) -> None:
    """The greatest tap is that framework's max pooling, whatever its sizes, padding and edges."""
    x = np.random.default_rng(0).normal(size=(2, 2, 7, 7)).astype(np.float32)
    y = astride.window_reduce(x, np.max, kernel=3, stride=2, rules=rules, compile=False)
    np.testing.assert_array_equal(y, astride.max_pool(x, kernel=3, stride=2, rules=rules))


def test_the_windows_of_other_operators() -> None:
    x = np.random.default_rng(0).normal(size=(1, 2, 7, 5))
    y = astride.window_reduce(x, np.mean, windows="adaptive_pool", output_size=(3, 2), compile=False)
    np.testing.assert_allclose(y, astride.adaptive_pool(x, output_size=(3, 2)))
    y = astride.window_reduce(x, np.min, windows="min_pool", kernel=2, compile=False)
    np.testing.assert_array_equal(y, astride.min_pool(x, kernel=2))
    assert set(WINDOWS) <= set(ops.OPERATORS)


def test_a_decorated_function_is_an_operator() -> None:
    @astride.window_op(gradient=lambda window, y: np.full(len(window), 1 / len(window)), compile=False)
    def mean(window: Array) -> Any:
        """The mean."""
        return window.mean()

    assert isinstance(mean, WindowOperator) and mean.__name__ == "mean" and mean.__doc__ == "The mean."
    assert "mean" in repr(mean) and mean.function(np.ones(3)) == 1
    y, pull = astride.vjp(mean, X, kernel=2, stride=1)
    expected, expected_pull = astride.vjp(astride.avg_pool, X, kernel=2, stride=1)
    np.testing.assert_allclose(y, expected)
    np.testing.assert_allclose(pull(y)[0], expected_pull(expected)[0])
    assert astride.check_gradient(mean, X, kernel=2)
    assert isinstance(mean.plan((1, 1, 4), kernel=2), WindowPlan)


def test_a_bare_decorator() -> None:
    @astride.window_op
    def first(window: Array) -> Any:
        return window[0]

    assert first(X, kernel=3, compile=False).tolist() == [[[[1]]]]
    assert first.compile and first.plan(X.shape, kernel=3).compiled


def test_the_functional_form_takes_operators_and_functions() -> None:
    op = astride.window_op(np.max, compile=False)
    np.testing.assert_array_equal(astride.window_reduce(X, op, kernel=2), op(X, kernel=2))
    y, pull = astride.vjp(astride.window_reduce, X, np.sum, kernel=3, gradient=lambda w, y: np.ones(len(w)), compile=False)
    gradients = pull(np.ones_like(y))
    assert gradients[0] is not None and gradients[0].tolist() == np.ones((1, 1, 3, 3)).tolist() and gradients[1] is None
    with pytest.raises(ArgumentError, match="already"):
        astride.window_reduce(X, op, kernel=2, empty=0.0)


def test_a_function_that_hashes_not() -> None:
    class Plus:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, window: Array) -> Any:
            return window.sum() + 1

    assert astride.window_reduce(X, Plus(), kernel=3, compile=False).item() == 25


def test_the_window_may_be_changed() -> None:
    def spoil(window: Array) -> Any:
        window[:] = np.sort(window)
        return window[-1]

    def slopes(window: Array, y: Any) -> Array:
        window -= y
        return window == 0

    before = X.copy()
    y, pull = astride.vjp(astride.window_reduce, X, spoil, kernel=2, stride=1, gradient=slopes, compile=False)
    expected, expected_pull = astride.vjp(astride.max_pool, X, kernel=2, stride=1)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(pull(y)[0], expected_pull(y)[0])
    np.testing.assert_array_equal(X, before)


def test_backward_without_a_gradient_is_refused() -> None:
    y, pull = astride.vjp(cases.rank_of_last, X, kernel=2)
    with pytest.raises(UnsupportedError) as caught:
        pull(np.ones_like(y))
    assert "rank_of_last was given no gradient" in str(caught.value) and 'gradient="numeric"' in str(caught.value)


def test_a_numeric_gradient_is_near_the_given_one() -> None:
    given, numeric = cases.half_squares, astride.window_op(cases.half_squares.function, gradient="numeric", compile=False)
    x = np.random.default_rng(0).normal(size=(1, 2, 5, 5)).astype(np.float32)
    y, pull = astride.vjp(given, x, kernel=3, stride=2)
    z, about = astride.vjp(numeric, x, kernel=3, stride=2)
    np.testing.assert_array_equal(y, z)
    np.testing.assert_allclose(about(y)[0], pull(y)[0], rtol=1e-5, atol=1e-6)


def test_bfloat16_is_summed_in_float32() -> None:
    x = np.array([[[1, 1 / 256, 1 / 256]]]).astype(ml_dtypes.bfloat16)
    seen: list[str] = []

    def total(window: Array) -> Any:
        seen.append(window.dtype.name)
        return window.sum()

    y, pull = astride.vjp(astride.window_reduce, x, total, kernel=3, compile=False, gradient=lambda w, y: np.ones(3))
    assert seen == ["float32"] and y.dtype == x.dtype and float(y[0, 0, 0]) == 1 + 1 / 128
    dx = pull(y)[0]
    assert dx is not None and dx.dtype == x.dtype


def test_infinities_and_nan_reach_the_function() -> None:
    seen: list[float] = []

    def note(window: Array) -> Any:
        seen.extend(window.tolist())
        return 0.0

    astride.window_reduce(np.array([[[np.inf, -np.inf, np.nan, -0.0]]]), note, kernel=4, compile=False)
    assert str(seen) == "[inf, -inf, nan, -0.0]"


def test_whole_numbers_stay_exact() -> None:
    x = np.array([[[1, 2, 7, 9]]], np.int16)
    y = astride.window_reduce(x, np.max, kernel=2, compile=False)
    assert y.dtype == np.int16 and y.tolist() == [[[2, 9]]]
    for function, value in ((np.mean, "1.5"), (lambda w: 40_000, "40000"), (lambda w: np.nan, "nan")):
        with pytest.raises(ArrayError, match=f"int16 does not hold exactly(.|\n)*{value}"):
            astride.window_reduce(x, function, kernel=2, compile=False)
    with pytest.raises(ArrayError, match="exactly"):
        astride.window_reduce(np.full((1, 1, 2), 2**53 + 1), np.max, kernel=2, compile=False)


@pytest.mark.parametrize("value", [np.ones(2), "text", None, [1.0], 1j])
def test_what_is_no_number_is_refused(value: Any) -> None:
    with pytest.raises(ArrayError, match="did not give a number"):
        astride.window_reduce(X, lambda window: value, kernel=2, compile=False)


@pytest.mark.parametrize("slopes", [np.ones(3), np.ones((4, 1)), 1.0])
def test_slopes_that_do_not_fit_are_refused(slopes: Any) -> None:
    y, pull = astride.vjp(astride.window_reduce, X, np.max, kernel=2, stride=1, gradient=lambda w, y: slopes, compile=False)
    with pytest.raises(ArrayError, match=r"the gradient of (a?max) does not fit(.|\n)*window = \(0, 0\)"):
        pull(np.ones_like(y))


@pytest.mark.parametrize(("function", "gradient"), [(3, None), (cases.product, None), (np.max, "analytic"), (np.max, 3)])
def test_what_makes_no_operator(function: Any, gradient: Any) -> None:
    with pytest.raises(ArgumentError, match="function of"):
        astride.window_op(function, gradient=gradient)


def test_an_error_of_the_function_is_its_own() -> None:
    def fails(window: Array) -> Any:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        astride.window_reduce(X, fails, kernel=2, compile=False)


def test_no_numba_is_an_error_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    op = astride.window_op(np.max)
    with pytest.raises(BackendUnavailable) as caught:
        op(X, kernel=2)
    assert 'pip install "astride[window]"' in str(caught.value) and "compile=False" in str(caught.value)
    assert op(X, kernel=2, compile=False).shape == (1, 1, 1, 1)
    assert op(X, kernel=2, backend="reference:loops4").shape == (1, 1, 1, 1)


def test_a_kernel_by_name() -> None:
    with pytest.raises(UnsupportedError, match="compile=False: the function runs as plain Python"):
        cases.half_squares(X, kernel=2, backend="reference:compiled")


def test_plans_find_their_function_while_it_lives() -> None:
    def local(window: Array) -> Any:
        return window[0]

    op = astride.window_op(local, compile=False)
    plan = op.plan((1, 1, 4), kernel=2)
    assert plan_from_dict(plan.to_dict()) == plan
    y, pull = astride.vjp(astride.window_op(local, gradient="numeric", compile=False), np.ones((1, 1, 4)), kernel=2)
    del op
    gc.collect()
    with pytest.raises(ArgumentError, match="not defined here"):
        ops.forward(plan, np.ones((1, 1, 4), np.float32))
    np.testing.assert_allclose(pull(y)[0], [[[1, 0, 1, 0]]], atol=1e-9)


def test_equal_names_do_not_meet() -> None:
    def make(value: float) -> WindowOperator:
        def constant(window: Array) -> Any:
            return value

        return astride.window_op(constant, compile=False)

    one, two = make(1.0), make(2.0)
    assert one(X, kernel=3).item() == 1 and two(X, kernel=3).item() == 2
    assert one.plan(X.shape, kernel=3) != two.plan(X.shape, kernel=3)


def test_a_plan_of_explicit_windows() -> None:
    plan = cases.half_squares.plan((1, 1, 5), windows="adaptive_pool", output_size=2)
    assert isinstance(plan.axes[0], ExplicitAxis) and "adaptive" not in plan.op
    assert "half_squares" in str(plan)


@pytest.mark.parametrize(
    "fields",
    [
        {"axes": ()},
        {"dtype": "complex64"},
        {"edge": Edge.CLAMP, "axes": (ExplicitAxis(4, (0,), (2,)),)},
    ],
)
def test_plans_check_themselves(fields: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        WindowPlan(**{"dtype": "float32", "axes": (ExplicitAxis(4, (0,), (2,)),), "function": "f", **fields})
