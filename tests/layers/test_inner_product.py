"""InnerProduct: by hand, gradients, axis and transpose."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from astride.errors import ArgumentError
from astride.layers import Blob
from astride.layers.inner_product import InnerProduct

from .gradients import Bench, check_gradient

RANDOM = np.random.RandomState(7)


@pytest.mark.parametrize("transpose", [False, True])
def test_by_hand(transpose: bool) -> None:
    bench = Bench(InnerProduct(2, transpose=transpose), [np.array([[1.0, 2.0, 3.0]])])
    weights = np.array([[1.0, 0, 0], [1, 1, 1]])
    bench.layer.params[0].data[...] = weights.T if transpose else weights
    bench.layer.params[1].data[...] = [10, 20]
    np.testing.assert_array_equal(bench.forward()[0], [[11, 26]])


@pytest.mark.parametrize("options", [{}, {"axis": 2}, {"axis": -1, "bias": False}, {"transpose": True}])
def test_gradient(options: dict[str, Any]) -> None:
    check_gradient(Bench(InnerProduct(3, **options), [RANDOM.normal(size=(2, 3, 2, 2))]))


def test_shapes() -> None:
    bench = Bench(InnerProduct(3, axis=2), [np.zeros((2, 5, 4, 3))])
    assert bench.forward()[0].shape == (2, 5, 3) and bench.layer.params[0].shape == (3, 12)


def test_a_batch_may_change_and_be_empty() -> None:
    bench = Bench(InnerProduct(3), [RANDOM.normal(size=(2, 4))])
    for rows in (5, 1, 0):
        bench.values = [RANDOM.normal(size=(rows, 4))]
        assert bench.forward()[0].shape == (rows, 3)


def test_another_number_of_inputs_is_refused() -> None:
    bench = Bench(InnerProduct(3), [np.zeros((2, 4))])
    with pytest.raises(ArgumentError, match="another number of inputs"):
        bench.layer.reshape([Blob((2, 5), "float64")], bench.top)


def test_outputs_count_from_one() -> None:
    with pytest.raises(ArgumentError, match="num_output >= 1: 0"):
        InnerProduct(0)
