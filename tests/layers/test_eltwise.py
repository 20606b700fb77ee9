"""Eltwise: by hand, gradients of each operation and number of bottoms, ties, NaN, coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from astride.errors import ArgumentError
from astride.layers.eltwise import Eltwise
from astride.plan.dense import Function
from astride.plan.kinds import Nan

from .gradients import Bench, check_gradient, distinct
from .single import single

RANDOM = np.random.RandomState(56)
SHAPES = {"a": (1, 3), "b": (1, 3), "c": (1, 3)}
VALUES = {"a": [[1, 5, 2]], "b": [[2, 5, -3]], "c": [[2, 5, 4]]}


def run(text: str) -> tuple[list[float], list[list[float]]]:
    """The top, and the three gradients of its sum."""
    net = single(f'type: "Eltwise" eltwise_param {{ {text} }}', **SHAPES)
    y = net.forward(**VALUES)["y"]
    gradients = net.backward(y=np.ones((1, 3)))
    return y[0].tolist(), [gradients[name][0].tolist() for name in "abc"]


def test_from_its_text() -> None:
    assert run("") == ([5, 15, 3], [[1, 1, 1]] * 3)
    assert run("operation: SUM coeff: 1 coeff: -1 coeff: 0.5") == ([0, 2.5, 7], [[1] * 3, [-1] * 3, [0.5] * 3])
    assert run("operation: PROD") == ([4, 125, -24], [[4, 25, -12], [2, 25, 8], [2, 25, -6]])
    assert run("operation: PROD stable_prod_grad: false") == ([4, 125, -24], [[4, 25, -12], [2, 25, 8], [2, 25, -6]])


def test_ties_as_in_caffe() -> None:
    """Of the first two the second has the gradient, and a third only where it is greater."""
    assert run("operation: MAX") == ([2, 5, 4], [[0, 0, 0], [1, 1, 0], [0, 0, 1]])


def test_ties_to_the_first() -> None:
    bench = Bench(Eltwise(Function.MAXIMUM), [np.array(v) for v in VALUES.values()])
    bench.forward()
    bench.backward([np.ones((1, 3))], [True] * 3)
    assert [b.diff[0].tolist() for b in bench.bottom] == [[0, 1, 0], [1, 0, 0], [0, 0, 1]]


def test_nan() -> None:
    """Kept, or lost to the comparisons of Caffe's C++."""
    bottoms = [np.array([np.nan, 1, 1]), np.array([1, np.nan, 1]), np.array([0, 2, np.nan])]
    assert np.isnan(Bench(Eltwise(Function.MAXIMUM), bottoms).forward()[0]).all()
    compared = Bench(Eltwise(Function.MAXIMUM, second_wins_ties=True, nan=Nan.COMPARED), bottoms)
    np.testing.assert_array_equal(compared.forward()[0], [1, np.nan, 1])


def test_a_product_with_zeros() -> None:
    """The product of the others is right there; Caffe's older quotient is 0 / 0."""
    bottoms = [np.array([0.0, 2]), np.array([3.0, 5])]
    for stable, first in ((True, [3, 5]), (False, [np.nan, 5])):
        bench = Bench(Eltwise(Function.MULTIPLY, stable_gradient=stable), bottoms)
        bench.forward()
        bench.backward([np.ones(2)], [True, True])
        np.testing.assert_array_equal(bench.bottom[0].diff, first)
        np.testing.assert_array_equal(bench.bottom[1].diff, [0, 2])


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize(
    ("function", "options"),
    [
        (Function.ADD, {}),
        (Function.ADD, {"coeffs": (0.5, -2.0, 3.0, 1.0)}),
        (Function.MULTIPLY, {}),
        (Function.MULTIPLY, {"stable_gradient": False}),
        (Function.MAXIMUM, {"second_wins_ties": True}),
        (Function.MAXIMUM, {"nan": Nan.COMPARED}),
    ],
)
def test_gradient(function: Function, options: dict[str, Any], count: int) -> None:
    bottoms = list(distinct(RANDOM, (count, 2, 3), 0.5, 2))
    options = {k: v[:count] if k == "coeffs" else v for k, v in options.items()}
    check_gradient(Bench(Eltwise(function, **options), bottoms))
    for wanted in range(count):
        check_gradient(Bench(Eltwise(function, **options), bottoms), [i == wanted for i in range(count)])


@pytest.mark.parametrize("function", [Function.ADD, Function.MULTIPLY, Function.MAXIMUM])
def test_the_gradient_outlives_an_overwritten_top(function: Function) -> None:
    """As a ReLU in place behind it would do."""
    for stable in (True, False):
        bench = Bench(Eltwise(function, stable_gradient=stable), [np.array([3.0, 2]), np.array([1.0, 5])])
        bench.forward()
        bench.backward([np.ones(2)], [True, True])
        before = [b.diff.copy() for b in bench.bottom]
        bench.top[0].data[...] = 0
        bench.backward([np.ones(2)], [True, True])
        np.testing.assert_array_equal([b.diff for b in bench.bottom], before)


def test_a_blob_twice() -> None:
    text = """type: "Power" }
        layer { name: "square" type: "Eltwise" bottom: "y" bottom: "y" top: "z" eltwise_param { operation: PROD } """
    net = single(text, x=(1, 2))
    assert net.forward(x=[[3, -4]])["z"].tolist() == [[9, 16]]
    assert net.backward(z=[[1, 1]])["x"].tolist() == [[6, -8]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("operation: PROD coeff: 1 coeff: 2 coeff: 3", "only a sum has coefficients"),
        ("coeff: 1 coeff: 2", "3 coefficients: 2"),
    ],
)
def test_coefficients_that_cannot_be(text: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        run(text)


def test_other_refusals() -> None:
    with pytest.raises(ArgumentError, match=r"equal shapes: \(2, 3\) == \(3, 2\)"):
        Bench(Eltwise(), [np.zeros((2, 3)), np.zeros((3, 2))])
    with pytest.raises(ArgumentError, match="one of multiply, add, maximum"):
        Eltwise(Function.TANH)
    with pytest.raises(ArgumentError, match="cannot work in place"):
        single('type: "Eltwise"', in_place=True, a=(1, 2), b=(1, 2))
    with pytest.raises(ArgumentError, match="2 <= bottoms: 1"):
        single('type: "Eltwise"', a=(1, 2))
