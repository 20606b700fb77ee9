"""Dropout: scaled at training, nothing otherwise; masks that can be repeated."""

from __future__ import annotations

import numpy as np
import pytest

from astride.errors import ArgumentError
from astride.layers.dropout import Dropout

from .gradients import Bench, check_gradient

RANDOM = np.random.RandomState(9)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("ratio", [0.0, 0.3, 0.75])
def test_gradient(ratio: float, training: bool, in_place: bool) -> None:
    check_gradient(Bench(Dropout(ratio=ratio, training=training), [RANDOM.normal(size=(3, 5))], in_place=in_place))


def test_values_are_zero_or_enlarged() -> None:
    bench = Bench(Dropout(ratio=0.25, training=True), [np.ones((100, 100))])
    y = bench.forward()[0]
    assert set(np.unique(y)) == {0.0, 1 / 0.75}
    assert abs((y == 0).mean() - 0.25) < 0.02


def test_masks_follow_the_number_of_the_pass() -> None:
    bench = Bench(Dropout(training=True), [np.ones((4, 50))])
    first = bench.forward()[0]
    bench.layer.forward(bench.bottom, bench.top)
    second = bench.top[0].data.copy()
    assert not np.array_equal(first, second)
    bench.layer.draws = 0
    bench.layer.forward(bench.bottom, bench.top)
    np.testing.assert_array_equal(bench.top[0].data, first)


def test_masks_follow_the_key() -> None:
    one, other = (Bench(Dropout(training=True), [np.ones((4, 50))]) for _ in range(2))
    other.layer.key = one.layer.key + 1
    assert not np.array_equal(one.forward()[0], other.forward()[0])


@pytest.mark.parametrize("ratio", [-0.1, 1.0, 1.5])
def test_a_ratio_is_a_part(ratio: float) -> None:
    with pytest.raises(ArgumentError, match="0 <= ratio < 1"):
        Dropout(ratio=ratio)
