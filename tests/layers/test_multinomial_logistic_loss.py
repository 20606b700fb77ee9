"""MultinomialLogisticLoss: by hand, gradients, the floor."""

from __future__ import annotations

import numpy as np
import pytest

from astride.errors import ArgumentError, ArrayError
from astride.layers.multinomial_logistic_loss import MultinomialLogisticLoss

from .gradients import Bench, check_gradient
from .losses import run

RANDOM = np.random.RandomState(34)
LAYER = 'type: "MultinomialLogisticLoss" '


def test_by_hand() -> None:
    loss, gradients = run(LAYER, p=[[0.5, 0.5], [0.75, 0.25]], label=[0, 1])
    assert loss == pytest.approx((np.log(2) + np.log(4)) / 2)
    np.testing.assert_array_equal(gradients["p"], [[-1, 0], [0, -2]])
    assert not gradients["label"].any()


def test_below_the_floor() -> None:
    """As in Caffe the gradient there is that of the floor."""
    loss, gradients = run(LAYER, p=[[0, 1], [-1, 1]], label=[0, 0])
    assert loss == pytest.approx(-np.log(1e-20))
    np.testing.assert_allclose(gradients["p"], [[-5e19, 0], [-5e19, 0]], rtol=1e-6)


def test_gradient_with_another_size_in_between() -> None:
    bench = Bench(MultinomialLogisticLoss(), [RANDOM.uniform(0.1, 1, (3, 4)), np.array([0.0, 3, 2])])
    check_gradient(bench, [True, False])
    bench.values = [RANDOM.uniform(0.1, 1, (2, 2, 3)), np.array([[5.0], [0]])]
    check_gradient(bench, [True, False])


def test_labels() -> None:
    with pytest.raises(ArrayError, match="0 <= label < 3"):
        Bench(MultinomialLogisticLoss(), [np.ones((1, 3)), np.array([-1.0])]).forward()
    with pytest.raises(ArgumentError, match=r"labels.count == samples: 4 == 2"):
        Bench(MultinomialLogisticLoss(), [np.ones((2, 3)), np.zeros((2, 2))])
