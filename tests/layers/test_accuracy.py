"""Accuracy: what counts as right, ties, ignored labels, each class."""

from __future__ import annotations

import numpy as np
import pytest

from astride.errors import ArgumentError, ArrayError, UnsupportedError
from astride.layers.accuracy import Accuracy

from .gradients import Bench

SCORES = np.array([[3.0, 1, 2], [1, 2, 3], [2, 2, 1], [0, 5, 4]])
LABELS = np.array([0.0, 0, 0, 2])


@pytest.mark.parametrize(("top_k", "expected"), [(1, 0.25), (2, 0.75), (3, 1.0)])
def test_top_k(top_k: int, expected: float) -> None:
    """The third place ties with the right class: wrong at top 1, right at top 2."""
    assert Bench(Accuracy(top_k=top_k), [SCORES, LABELS]).forward()[0] == expected


def test_each_class() -> None:
    total, each = Bench(Accuracy(), [SCORES, LABELS], tops=2).forward()
    assert total == 0.25
    np.testing.assert_allclose(each, [1 / 3, 0, 0])


def test_ignored_labels_count_nowhere() -> None:
    total, each = Bench(Accuracy(ignore_label=0), [SCORES, LABELS], tops=2).forward()
    assert total == 0 and not each.any()
    assert Bench(Accuracy(ignore_label=0), [SCORES, np.zeros(4)]).forward()[0] == 0


def test_axis() -> None:
    bench = Bench(Accuracy(axis=-1), [np.array([[[0.0, 1], [1, 0]]]), np.array([[1.0, 1.0]])])
    assert bench.forward()[0] == 0.5


def test_nan_is_wrong() -> None:
    assert Bench(Accuracy(), [np.full((2, 3), np.nan), np.zeros(2)]).forward()[0] == 0


def test_it_has_no_gradient() -> None:
    bench = Bench(Accuracy(), [SCORES, LABELS])
    bench.forward()
    bench.backward([np.ones(())], [False, False])
    with pytest.raises(UnsupportedError, match="no gradient"):
        bench.backward([np.ones(())], [True, False])
    assert not bench.layer.allow_force_backward(0)


def test_errors() -> None:
    with pytest.raises(ArgumentError, match="top_k <= classes: 4 <= 3"):
        Bench(Accuracy(top_k=4), [SCORES, LABELS])
    with pytest.raises(ArgumentError, match="top_k >= 1"):
        Accuracy(top_k=0)
    with pytest.raises(ArgumentError, match="one label for each prediction"):
        Bench(Accuracy(), [SCORES, np.zeros(3)])
    with pytest.raises(ArrayError, match="0 <= label < 3"):
        Bench(Accuracy(), [SCORES, np.array([0.0, 0, 0, 3])]).forward()
