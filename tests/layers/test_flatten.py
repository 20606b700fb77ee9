"""Flatten and Split: shared memory, copies where sharing would be wrong, summed gradients."""

from __future__ import annotations

import numpy as np
import pytest

from astride.errors import ArgumentError
from astride.layers.flatten import Flatten
from astride.layers.split import Split

from .gradients import Bench, check_gradient

X = np.arange(24.0).reshape(2, 3, 2, 2)


@pytest.mark.parametrize(
    ("axis", "end_axis", "shape"), [(1, -1, (2, 12)), (0, 1, (6, 2, 2)), (0, -1, (24,)), (-2, 2, (2, 3, 2, 2)), (2, 3, (2, 3, 4))]
)
@pytest.mark.parametrize("copies", [False, True])
def test_flatten(axis: int, end_axis: int, shape: tuple[int, ...], copies: bool) -> None:
    layer = Flatten(axis=axis, end_axis=end_axis)
    layer.copies = copies
    bench = Bench(layer, [X])
    np.testing.assert_array_equal(bench.forward()[0], X.reshape(shape))
    assert np.shares_memory(bench.top[0].data, bench.bottom[0].data) is not copies
    dy = np.random.RandomState(0).normal(size=shape)
    bench.backward([dy], [True])
    np.testing.assert_array_equal(bench.bottom[0].diff, dy.reshape(X.shape))


def test_flatten_refuses_the_wrong_order() -> None:
    with pytest.raises(ArgumentError, match="wrong order"):
        Bench(Flatten(axis=3, end_axis=1), [X])
    with pytest.raises(ArgumentError, match="no such axis"):
        Bench(Flatten(axis=4), [X])


@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize("tops", [1, 2, 3])
def test_split_sums(tops: int, copies: bool) -> None:
    layer = Split()
    layer.copies = copies
    bench = Bench(layer, [X], tops=tops)
    for y in bench.forward():
        np.testing.assert_array_equal(y, X)
    assert np.shares_memory(bench.top[-1].data, bench.bottom[0].data) is not copies
    check_gradient(bench)


def test_split_leaves_out_what_has_no_gradient() -> None:
    layer = Split()
    bench = Bench(layer, [X], tops=3)
    bench.forward()
    layer.sums = [True, False, True]
    bench.backward([np.full(X.shape, 1.0), np.full(X.shape, 10.0), np.full(X.shape, 100.0)], [True])
    assert (bench.bottom[0].diff == 101).all()
    layer.sums = [False, False, False]
    bench.backward([np.ones(X.shape)] * 3, [True])
    assert not bench.bottom[0].diff.any()
