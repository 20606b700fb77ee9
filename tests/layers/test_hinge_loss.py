"""HingeLoss: by hand for both norms, gradients, labels."""

from __future__ import annotations

import numpy as np
import pytest

from astride.errors import ArgumentError, ArrayError, UnsupportedError
from astride.layers.hinge_loss import HingeLoss, Norm

from .gradients import Bench, away_from, check_gradient
from .losses import run

RANDOM = np.random.RandomState(32)
LAYER = 'type: "HingeLoss" '
SCORES = [[2, 0.5, -3], [-0.5, 0, 1]]
"""With labels 0 and 1 the excess is (0, 1.5, 0) and (0.5, 1, 2)."""


def test_by_hand() -> None:
    loss, gradients = run(LAYER, x=SCORES, label=[0, 1])
    assert loss == (1.5 + 3.5) / 2
    np.testing.assert_array_equal(gradients["x"], [[0, 0.5, 0], [0.5, -0.5, 0.5]])
    assert not gradients["label"].any()


def test_squares_by_hand() -> None:
    loss, gradients = run(LAYER + "hinge_loss_param { norm: L2 }", x=SCORES, label=[0, 1])
    assert loss == (1.5**2 + 0.5**2 + 1 + 4) / 2
    np.testing.assert_array_equal(gradients["x"], [[0, 1.5, 0], [0.5, -1, 2]])


def test_exactly_on_the_margin_nothing_flows() -> None:
    assert not run(LAYER, x=[[1, -1]], label=[0])[1]["x"].any()


@pytest.mark.parametrize("norm", Norm)
def test_gradient_with_another_size_in_between(norm: Norm) -> None:
    def scores(*shape: int) -> np.ndarray:
        return away_from(away_from(RANDOM.normal(size=shape), 1), -1)

    bench = Bench(HingeLoss(norm=norm), [scores(3, 4), np.array([0.0, 3, 2])])
    check_gradient(bench, [True, False])
    bench.values = [scores(2, 2, 3), np.array([[5.0], [0]])]
    check_gradient(bench, [True, False])


def test_labels() -> None:
    with pytest.raises(ArrayError, match="0 <= label < 3"):
        Bench(HingeLoss(), [np.zeros((1, 3)), np.array([3.0])]).forward()
    with pytest.raises(ArgumentError, match=r"labels.count == samples: 4 == 2"):
        Bench(HingeLoss(), [np.zeros((2, 3)), np.zeros((2, 2))])
    bench = Bench(HingeLoss(), [np.zeros((1, 3)), np.zeros(1)])
    bench.forward()
    with pytest.raises(UnsupportedError, match="labels have no gradient"):
        bench.backward([np.ones(())], [True, True])
