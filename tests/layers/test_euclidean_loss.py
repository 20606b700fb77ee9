"""EuclideanLoss: by hand, gradients for both bottoms, shapes."""

from __future__ import annotations

import numpy as np
import pytest

from astride.errors import ArgumentError, UnsupportedError
from astride.layers.euclidean_loss import EuclideanLoss

from .gradients import Bench, check_gradient
from .losses import run

RANDOM = np.random.RandomState(30)
LAYER = 'type: "EuclideanLoss"'


def test_by_hand() -> None:
    """Distances 5 and 1 of two samples: (25 + 1) / 4."""
    loss, gradients = run(LAYER, a=[[3, 0], [0, 1]], b=[[0, 4], [0, 0]])
    assert loss == 6.5
    np.testing.assert_array_equal(gradients["a"], [[1.5, -2], [0, 0.5]])
    np.testing.assert_array_equal(gradients["b"], [[-1.5, 2], [0, -0.5]])


def test_a_loss_weight_scales_the_gradient() -> None:
    loss, gradients = run(LAYER + " loss_weight: 4", a=[[3]], b=[[1]])
    assert loss == 2
    np.testing.assert_array_equal(gradients["a"], [[8]])


def test_gradient_with_another_size_in_between() -> None:
    bench = Bench(EuclideanLoss(), [RANDOM.normal(size=(2, 3)), RANDOM.normal(size=(2, 3))])
    check_gradient(bench)
    bench.values = [RANDOM.normal(size=(4, 2, 2)), RANDOM.normal(size=(4, 2, 2))]
    check_gradient(bench)
    check_gradient(bench, [False, True])


def test_one_layout_against_another() -> None:
    check_gradient(Bench(EuclideanLoss(), [RANDOM.normal(size=(2, 6)), RANDOM.normal(size=(2, 3, 2))]))


def test_no_samples() -> None:
    assert Bench(EuclideanLoss(), [np.zeros((0, 3)), np.zeros((0, 3))]).forward()[0] == 0


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [((2, 3), (3, 2), r"equal first sizes: \(2,\) == \(3,\)"), ((2, 3), (2, 4), "3 == 4"), ((), (), "one entry for each sample")],
)
def test_shapes_that_do_not_fit(a: tuple[int, ...], b: tuple[int, ...], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Bench(EuclideanLoss(), [np.zeros(a), np.zeros(b)])


def test_backward_needs_a_forward_pass_that_kept() -> None:
    bench = Bench(EuclideanLoss(), [np.ones((1, 2)), np.zeros((1, 2))])
    with pytest.raises(UnsupportedError, match="kept its state"):
        bench.backward([np.ones(())], [True, True])
    bench.layer.keep = False
    bench.forward()
    with pytest.raises(UnsupportedError, match="kept its state"):
        bench.backward([np.ones(())], [True, True])
