"""Steps: the way back through several operators, when some arrays are used twice and some not at all."""

from __future__ import annotations

import numpy as np
import pytest

from astride.errors import UnsupportedError
from astride.layers._steps import Steps, total
from astride.plan.dense import Function

X, Z = np.array([[1.0, 2.0, 3.0, 4.0]]), np.array([[5.0, 6.0, 7.0, 8.0]])
ONES = np.ones((1, 4))


def test_an_array_used_twice_gets_the_sum() -> None:
    """x z + 2 x: z + 2 for x, x for z."""
    steps = Steps(keep=True)
    y = steps.apply(Function.ADD, steps.apply(Function.MULTIPLY, X, Z), X, z_scale=2.0)
    np.testing.assert_array_equal(y, X * Z + 2 * X)
    for _ in range(2):
        dx, dz = steps.backward([(y, ONES)], [X, Z])
        np.testing.assert_array_equal(dx, Z + 2)  # type: ignore[arg-type]
        np.testing.assert_array_equal(dz, X)  # type: ignore[arg-type]


def test_several_results_and_none_that_arrives() -> None:
    steps = Steps(keep=True)
    first, second = steps.apply(Function.MULTIPLY, X, Z), steps.apply(Function.EXP, Z)
    assert [g is None for g in steps.backward([(first, None), (second, ONES)], [X, Z])] == [True, False]
    assert steps.backward([(first, ONES), (first, ONES)], [X])[0] is not None
    np.testing.assert_array_equal(steps.backward([(first, ONES), (first, ONES)], [X])[0], 2 * Z)  # type: ignore[arg-type]


def test_parts_put_zeros_where_nothing_arrives() -> None:
    steps = Steps(keep=True)
    low, high = steps.parts(X, 2)
    np.testing.assert_array_equal(high, [[3, 4]])
    assert steps.backward([(low, None)], [X]) == [None]
    np.testing.assert_array_equal(steps.backward([(high, np.array([[5.0, 6.0]]))], [X])[0], [[0, 0, 5, 6]])  # type: ignore[arg-type]


def test_shapes_and_places_find_their_way_back() -> None:
    steps = Steps(keep=True)
    y = steps.take(steps.shaped(X, (4,)), np.array([3, 0, 3]))
    np.testing.assert_array_equal(y, [4, 1, 4])
    np.testing.assert_array_equal(steps.backward([(y, np.ones(3))], [X])[0], [[1, 0, 0, 2]])  # type: ignore[arg-type]


def test_nothing_wanted_computes_nothing() -> None:
    steps = Steps(keep=True)
    y = steps.note("never", X, X.copy(), lambda gradients, want: pytest.fail("asked for nothing"))
    assert steps.backward([(y, ONES)], []) == []


def test_without_keep_there_is_no_way_back() -> None:
    steps = Steps(keep=False)
    y = steps.apply(Function.EXP, X)
    np.testing.assert_allclose(y, np.exp(X))
    with pytest.raises(UnsupportedError, match="kept its state"):
        steps.backward([(y, ONES)], [X])


def test_total() -> None:
    np.testing.assert_array_equal(total([X, Z, X]), 2 * X + Z)
