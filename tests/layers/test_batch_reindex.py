"""BatchReindex: items by number, summed gradients, numbers that name no item."""

from __future__ import annotations

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.errors import ArgumentError, ArrayError, UnsupportedError
from astride.layers.batch_reindex import BatchReindex

from .gradients import Bench, check_gradient

X = np.random.RandomState(37).normal(size=(4, 3, 2))
NUMBERS = np.array([2.0, 0, 2, 2, 3])

NET = """
force_backward: true
input: "data" input: "numbers"
input_shape { dim: 3 dim: 2 } input_shape { dim: 5 }
layer { name: "b" type: "BatchReindex" bottom: "data" bottom: "numbers" top: "b" }
"""


def test_items_and_gradient() -> None:
    bench = Bench(BatchReindex(), [X, NUMBERS])
    np.testing.assert_array_equal(bench.forward()[0], X[NUMBERS.astype(int)])
    check_gradient(bench, want=[True, False])
    assert not bench.bottom[0].diff[1].any()


@pytest.mark.parametrize("number", [-1, 4])
def test_a_number_that_names_no_item(number: int) -> None:
    with pytest.raises(ArrayError, match="an index names no place") as caught:
        Bench(BatchReindex(), [X, np.array([0.0, number])]).forward()
    assert f"0 <= {number} < 4" in str(caught.value)


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match="the numbers are a list"):
        Bench(BatchReindex(), [X, np.zeros((2, 1))])
    bench = Bench(BatchReindex(), [X, NUMBERS])
    bench.forward()
    with pytest.raises(UnsupportedError, match="numbers have no gradient"):
        bench.backward([np.zeros((5, 3, 2))], [True, True])


def test_in_a_network_of_changing_size() -> None:
    net = load_caffe(NET)
    for batch, numbers in ((3, [0, 1, 2, 1, 1]), (6, [5, 5])):
        x = np.random.RandomState(batch).normal(size=(batch, 2)).astype(np.float32)
        y = net.forward(data=x, numbers=numbers)["b"]
        np.testing.assert_array_equal(y, x[numbers])
        dx = net.backward(b=np.ones_like(y))["data"]
        np.testing.assert_array_equal(dx[:, 0], np.bincount(numbers, minlength=batch))
