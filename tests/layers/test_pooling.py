"""Pooling: gradients of every kind, the mask as second top, stochastic draws."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from astride.errors import ArgumentError
from astride.layers.pooling import Pooling
from astride.rules import caffe

from .gradients import Bench, check_gradient, distinct

RANDOM = np.random.RandomState(6)


def pooling(random: bool = False, **fields: Any) -> Pooling:
    return Pooling(partial(caffe.pooling, **fields), random=random)


@pytest.mark.parametrize("pool", ["MAX", "AVE"])
@pytest.mark.parametrize(
    "fields",
    [
        {"kernel_size": 2, "stride": 2},
        {"kernel_size": 3, "stride": 2},
        {"kernel_size": 3, "stride": 2, "pad": 1},
        {"kernel_h": 3, "kernel_w": 2, "stride_h": 1, "stride_w": 2, "pad_h": 1, "pad_w": 0},
        {"kernel_size": 3, "stride": 2, "round_mode": "FLOOR"},
        {"global_pooling": True},
    ],
)
def test_gradient(pool: str, fields: dict[str, Any]) -> None:
    check_gradient(Bench(pooling(pool=pool, **fields), [distinct(RANDOM, (2, 2, 5, 6))]))


def test_mask_by_hand() -> None:
    bench = Bench(pooling(pool="MAX", kernel_size=2, stride=1), [np.array([[[[1.0, 2, 5], [3, 4, 0], [9, 9, 1]]]])], tops=2)
    top, mask = bench.forward()
    np.testing.assert_array_equal(top, [[[[4, 5], [9, 9]]]])
    #  place in the plane      0 1 2 / 3 4 5 / 6 7 8; of two nines the first
    np.testing.assert_array_equal(mask, [[[[4, 2], [6, 7]]]])


def test_the_mask_passes_no_gradient() -> None:
    check_gradient(Bench(pooling(pool="MAX", kernel_size=2, stride=2), [distinct(RANDOM, (1, 2, 4, 4))], tops=2), silent=[1])


def test_an_empty_maximum_has_mask_minus_one() -> None:
    bench = Bench(pooling(pool="MAX", kernel_size=2, stride=2), [np.full((1, 1, 2, 2), -np.inf)], tops=2)
    top, mask = bench.forward()
    assert top.item() == np.finfo(np.float64).min and mask.item() == -1
    bench.backward([np.ones((1, 1, 1, 1)), np.zeros((1, 1, 1, 1))], [True])
    np.testing.assert_array_equal(bench.bottom[0].diff, np.zeros((1, 1, 2, 2)))


def test_only_a_maximum_has_a_mask() -> None:
    with pytest.raises(ArgumentError, match="only a maximum has a second top"):
        Bench(pooling(pool="AVE", kernel_size=2), [np.zeros((1, 1, 4, 4))], tops=2)


def test_stochastic_training_gradient() -> None:
    layer = pooling(random=True, pool="STOCHASTIC", kernel_size=2, stride=2, phase="TRAIN")
    check_gradient(Bench(layer, [RANDOM.uniform(0.5, 1.0, (2, 2, 4, 4))]))


def test_stochastic_test_time_gradient() -> None:
    check_gradient(Bench(pooling(pool="STOCHASTIC", kernel_size=3, stride=2), [RANDOM.uniform(0.5, 1.0, (2, 2, 5, 5))]))


def test_stochastic_draws_follow_the_number_of_the_pass() -> None:
    layer = pooling(random=True, pool="STOCHASTIC", kernel_size=2, stride=2, phase="TRAIN")
    bench = Bench(layer, [RANDOM.uniform(0.5, 1.0, (1, 4, 8, 8))])
    first = bench.forward()[0]
    layer.forward(bench.bottom, bench.top)
    second = bench.top[0].data.copy()
    assert layer.draws == 2 and not np.array_equal(first, second)
    layer.draws = 1
    layer.forward(bench.bottom, bench.top)
    np.testing.assert_array_equal(bench.top[0].data, second)


def test_stochastic_draws_in_proportion() -> None:
    layer = pooling(random=True, pool="STOCHASTIC", kernel_size=2, stride=2, phase="TRAIN")
    bench = Bench(layer, [np.tile(np.array([[1.0, 2.0], [3.0, 4.0]]), (1, 1, 150, 150))])
    drawn = bench.forward()[0]
    for value in (1, 2, 3, 4):
        assert abs((drawn == value).mean() - value / 10) < 0.01
