"""Reduction: by hand, gradients of each total, as a loss."""

from __future__ import annotations

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.errors import ArgumentError
from astride.layers.reduction import Reduction
from astride.plan.reduce import Total

from .gradients import Bench, away_from, check_gradient

RANDOM = np.random.RandomState(34)
X = away_from(RANDOM.normal(size=(2, 3, 4)))

NET = """
force_backward: true
input: "data" input_shape { dim: 2 dim: 3 }
layer {
  name: "r" type: "Reduction" bottom: "data" top: "r" loss_weight: 2
  reduction_param { operation: SUMSQ coeff: 0.5 }
}
"""


def test_by_hand() -> None:
    x = np.array([[1.0, -2, 3], [0, 4, -4]])
    assert Bench(Reduction(), [x]).forward()[0].item() == 2
    assert Bench(Reduction(total=Total.MEAN, axis=1, coeff=3), [x]).forward()[0].tolist() == [2, 0]
    assert Bench(Reduction(total=Total.ASUM, axis=-1), [x]).forward()[0].tolist() == [6, 8]
    assert Bench(Reduction(total=Total.SUMSQ, axis=1, coeff=0.5), [x]).forward()[0].tolist() == [7, 16]


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("total", list(Total))
def test_gradient(total: Total, axis: int) -> None:
    check_gradient(Bench(Reduction(total=total, axis=axis, coeff=-1.5), [X]))


def test_at_zero_a_magnitude_has_no_slope() -> None:
    bench = Bench(Reduction(total=Total.ASUM), [np.zeros((2, 2))])
    bench.forward()
    bench.backward([np.array(1.0)], [True])
    assert not bench.bottom[0].diff.any()


def test_no_such_axis() -> None:
    with pytest.raises(ArgumentError, match="no such axis"):
        Bench(Reduction(axis=3), [X])


def test_as_a_loss_of_changing_size() -> None:
    net = load_caffe(NET)
    for batch in (2, 5):
        x = RANDOM.normal(size=(batch, 3)).astype(np.float32)
        net.forward(data=x)
        np.testing.assert_allclose(net.loss, (x**2).sum(), rtol=1e-6)
        np.testing.assert_allclose(net.backward()["data"], 2 * x, rtol=1e-6)
