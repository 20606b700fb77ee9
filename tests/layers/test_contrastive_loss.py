"""ContrastiveLoss: by hand, both versions, the gradient of equal samples."""

from __future__ import annotations

import numpy as np
import pytest

from astride.errors import ArgumentError
from astride.layers.contrastive_loss import ContrastiveLoss

from .gradients import Bench, check_gradient
from .losses import run

RANDOM = np.random.RandomState(33)
LAYER = 'type: "ContrastiveLoss" '
PAIRS = {"a": [[3, 0], [3, 0], [0, 0]], "b": [[0, 4], [0, 4], [0, 0.5]]}
"""Distances 5, 5 and 1/2; the first pair belongs together."""


def test_by_hand() -> None:
    """The second pair is farther apart than the margin, the third lacks 3/2 of it."""
    loss, gradients = run(LAYER + "contrastive_loss_param { margin: 2 }", **PAIRS, label=[1, 0, 0])
    assert loss == pytest.approx((25 + 0 + 2.25) / 6)
    # Caffe divides by the distance and 1e-4 more.
    last = 1.5 * 0.5 / (0.5 + 1e-4) / 3
    np.testing.assert_allclose(gradients["a"], [[1, -4 / 3], [0, 0], [0, last]], rtol=1e-6)
    np.testing.assert_array_equal(gradients["b"], -gradients["a"])
    assert not gradients["label"].any()


def test_legacy_by_hand() -> None:
    loss, gradients = run(LAYER + "contrastive_loss_param { margin: 2 legacy_version: true }", **PAIRS, label=[3, 0, 0])
    assert loss == pytest.approx((25 + 0 + 1.75) / 6)
    np.testing.assert_allclose(gradients["a"], [[1, -4 / 3], [0, 0], [0, 0.5 / 3]], rtol=1e-6)


@pytest.mark.parametrize("legacy", [False, True])
def test_gradient_with_another_size_in_between(legacy: bool) -> None:
    bench = Bench(
        ContrastiveLoss(margin=2.5, legacy=legacy, epsilon=1e-12),
        [RANDOM.normal(size=(5, 2)), RANDOM.normal(size=(5, 2)), np.array([0.0, 1, 0, 1, 0])],
    )
    check_gradient(bench, [True, True, False])
    bench.values = [RANDOM.normal(size=(3, 3, 1, 1)), RANDOM.normal(size=(3, 3, 1, 1)), np.array([0.0, 0, 0])]
    check_gradient(bench, [True, True, False])
    check_gradient(bench, [False, True, False])


def test_equal_samples_have_a_finite_gradient() -> None:
    bench = Bench(ContrastiveLoss(), [np.ones((1, 2)), np.ones((1, 2)), np.zeros(1)])
    assert bench.forward()[0] == 0.5
    bench.backward([np.ones(())], [True, True, False])
    assert not bench.bottom[0].diff.any()


@pytest.mark.parametrize(
    ("a", "b", "label", "message"),
    [
        ((2, 3), (2, 4), (2,), "two rows of equally many features"),
        ((2, 3, 2), (2, 3, 2), (2,), "two rows of equally many features"),
        ((2, 3), (2, 3), (2, 2), "labels.count == samples: 4 == 2"),
        ((2, 3), (3, 3), (2,), "equal first sizes"),
    ],
)
def test_shapes_that_do_not_fit(a: tuple[int, ...], b: tuple[int, ...], label: tuple[int, ...], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Bench(ContrastiveLoss(), [np.zeros(a), np.zeros(b), np.zeros(label)])


def test_epsilon_is_positive() -> None:
    with pytest.raises(ArgumentError, match="epsilon > 0: 0"):
        ContrastiveLoss(epsilon=0)
