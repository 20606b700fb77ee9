"""SigmoidCrossEntropyLoss: by hand, ignored targets, normalizations, large scores."""

from __future__ import annotations

import numpy as np
import pytest

from astride.errors import ArgumentError, ArrayError, UnsupportedError
from astride.layers.sigmoid_cross_entropy_loss import SigmoidCrossEntropyLoss
from astride.plan.dense import Normalization

from .gradients import Bench, check_gradient
from .losses import run

RANDOM = np.random.RandomState(31)
LAYER = 'type: "SigmoidCrossEntropyLoss" '


def test_by_hand() -> None:
    """Scores whose sigmoids are 1/2 and 3/4."""
    loss, gradients = run(LAYER, x=[[0, np.log(3)]], t=[[1, 0]])
    assert loss == pytest.approx(-np.log(1 / 2) - np.log(1 / 4))
    np.testing.assert_allclose(gradients["x"], [[-0.5, 0.75]], rtol=1e-6)
    assert not gradients["t"].any()


@pytest.mark.parametrize(
    ("options", "divisor"),
    [
        ("", 2),
        ("normalization: FULL", 6),
        ("normalization: VALID", 4),
        ("normalization: BATCH_SIZE", 2),
        ("normalization: NONE", 1),
        ("normalize: true", 4),
        ("normalize: false", 2),
    ],
)
def test_normalizations(options: str, divisor: int) -> None:
    """Two samples of three targets, two of which are ignored: four times log 2."""
    loss, gradients = run(LAYER + f"loss_param {{ ignore_label: 7 {options} }}", x=np.zeros((2, 3)), t=[[0, 1, 7], [7, 1, 0]])
    assert loss == pytest.approx(4 * np.log(2) / divisor)
    np.testing.assert_allclose(gradients["x"] * divisor, [[0.5, -0.5, 0], [0, -0.5, 0.5]])


@pytest.mark.parametrize("ignore", [None, -1])
def test_gradient_with_another_size_in_between(ignore: int | None) -> None:
    bench = Bench(SigmoidCrossEntropyLoss(ignore_label=ignore), [RANDOM.normal(size=(2, 3)), RANDOM.randint(-1, 2, (2, 3))])
    check_gradient(bench, [True, False])
    bench.values = [RANDOM.normal(size=(3, 2, 2)), RANDOM.uniform(size=(3, 4))]
    check_gradient(bench, [True, False])


def test_large_scores_overflow_nowhere() -> None:
    bench = Bench(SigmoidCrossEntropyLoss(), [np.array([[1e4, -1e4, 1e4]]), np.array([[1.0, 0, 0]])])
    assert bench.forward()[0] == pytest.approx(1e4)
    bench.backward([np.ones(())], [True, False])
    np.testing.assert_allclose(bench.bottom[0].diff, [[0, 0, 1]])


def test_ignored_places_may_hold_anything() -> None:
    bench = Bench(SigmoidCrossEntropyLoss(ignore_label=2), [np.array([[0.0, np.nan, np.inf]]), np.array([[1.0, 2, 2.5]])])
    assert bench.forward()[0] == pytest.approx(np.log(2))
    bench.backward([np.ones(())], [True, False])
    np.testing.assert_allclose(bench.bottom[0].diff, [[-0.5, 0, 0]])


def test_everything_ignored_is_zero() -> None:
    layer = SigmoidCrossEntropyLoss(ignore_label=1, normalization=Normalization.VALID)
    bench = Bench(layer, [np.ones((2, 3)), np.ones((2, 3))])
    assert bench.forward()[0] == 0
    bench.backward([np.ones(())], [True, False])
    assert not bench.bottom[0].diff.any()


def test_targets_have_no_gradient_and_must_fit() -> None:
    bench = Bench(SigmoidCrossEntropyLoss(), [np.zeros((2, 3)), np.zeros((2, 3))])
    bench.forward()
    with pytest.raises(UnsupportedError, match="labels have no gradient"):
        bench.backward([np.ones(())], [True, True])
    with pytest.raises(ArgumentError, match="equal counts: 6 == 4"):
        Bench(SigmoidCrossEntropyLoss(), [np.zeros((2, 3)), np.zeros((2, 2))])
    with pytest.raises(ArrayError, match="not all finite"):
        Bench(SigmoidCrossEntropyLoss(ignore_label=0), [np.zeros((1, 1)), np.array([[np.nan]])]).forward()
