"""Softmax and SoftmaxWithLoss: gradients, axes, ignored labels, normalizations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from astride.errors import ArgumentError, ArrayError, UnsupportedError
from astride.layers.softmax import Softmax
from astride.layers.softmax_loss import SoftmaxWithLoss
from astride.plan.dense import Normalization

from .gradients import Bench, check_gradient

RANDOM = np.random.RandomState(10)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("axis", [1, 2, -1])
def test_gradient(axis: int, in_place: bool) -> None:
    check_gradient(Bench(Softmax(axis=axis), [RANDOM.normal(size=(2, 4, 3))], in_place=in_place))


def test_the_gradient_outlives_an_overwritten_top() -> None:
    """What a later layer in place does to the top does not reach the gradient."""
    one, other = (Bench(Softmax(), [np.array([[0.1, 0.7, -0.4]])]) for _ in range(2))
    for bench in (one, other):
        bench.forward()
    other.top[0].data[...] = 0
    for bench in (one, other):
        bench.backward([np.array([[1.0, 2.0, 3.0]])], [True])
    np.testing.assert_array_equal(one.bottom[0].diff, other.bottom[0].diff)


def loss_bench(layer: SoftmaxWithLoss, tops: int = 1) -> Bench:
    labels = np.array([[[0.0, 2], [1, 1]], [[3, 0], [2, 2]]])
    return Bench(layer, [RANDOM.normal(size=(2, 4, 2, 2)), labels], tops=tops)


@pytest.mark.parametrize(
    "options", [{}, {"ignore_label": 2}, {"ignore_label": 7}, *[{"ignore_label": 1, "normalization": n} for n in Normalization]]
)
def test_loss_gradient(options: dict[str, Any]) -> None:
    check_gradient(loss_bench(SoftmaxWithLoss(**options)), [True, False])


def test_loss_by_hand() -> None:
    scores = np.log(np.array([[0.5, 0.5], [0.25, 0.75]]))
    bench = Bench(SoftmaxWithLoss(), [scores, np.array([0.0, 1.0])])
    np.testing.assert_allclose(bench.forward()[0], -(np.log(0.5) + np.log(0.75)) / 2)


@pytest.mark.parametrize(("mode", "divisor"), [("full", 8), ("valid", 5), ("batch_size", 2), ("none", 1)])
def test_normalizations(mode: str, divisor: int) -> None:
    """Eight places in two images, three of which have the ignored label."""
    bench = loss_bench(SoftmaxWithLoss(ignore_label=2, normalization=Normalization(mode)))
    summed = loss_bench(SoftmaxWithLoss(ignore_label=2, normalization=Normalization.NONE))
    summed.values = bench.values
    np.testing.assert_allclose(bench.forward()[0] * divisor, summed.forward()[0])


def test_everything_ignored_is_zero() -> None:
    bench = Bench(SoftmaxWithLoss(ignore_label=1), [np.ones((2, 3)), np.ones(2)])
    assert bench.forward()[0] == 0
    bench.backward([np.ones(())], [True, False])
    assert not bench.bottom[0].diff.any()


def test_the_second_top_holds_the_probabilities() -> None:
    bench = loss_bench(SoftmaxWithLoss(), tops=2)
    probabilities = bench.forward()[1]
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    check_gradient(bench, [True, False], silent=[1])


def test_an_impossible_label_costs_no_more_than_the_smallest_number() -> None:
    bench = Bench(SoftmaxWithLoss(), [np.array([[0.0, 1e4]]), np.zeros(1)])
    np.testing.assert_allclose(bench.forward()[0], -np.log(np.float64(np.finfo(np.float32).tiny)))


@pytest.mark.parametrize(
    ("labels", "message"), [([0.0, 3.0], "0 <= label < 3"), ([-1.0, 0.0], "names no class"), ([np.nan, 0.0], "not all finite")]
)
def test_labels_out_of_range(labels: list[float], message: str) -> None:
    with pytest.raises(ArrayError, match=message):
        Bench(SoftmaxWithLoss(), [np.zeros((2, 3)), np.array(labels)]).forward()


def test_labels_have_no_gradient() -> None:
    bench = loss_bench(SoftmaxWithLoss())
    bench.forward()
    with pytest.raises(UnsupportedError, match="labels have no gradient"):
        bench.backward([np.ones(())], [True, True])
    assert [bench.layer.allow_force_backward(i) for i in (0, 1)] == [True, False]


def test_labels_of_another_number() -> None:
    with pytest.raises(ArgumentError, match="one label for each prediction"):
        Bench(SoftmaxWithLoss(), [np.zeros((2, 3, 2)), np.zeros(2)])
