"""Sigmoid: by hand, gradients, in place, far out."""

from __future__ import annotations

import numpy as np
import pytest

from astride.layers.sigmoid import Sigmoid

from .gradients import Bench, check_gradient
from .single import single

RANDOM = np.random.RandomState(40)


def test_from_its_text() -> None:
    y = single('type: "Sigmoid"', x=(1, 3)).forward(x=[[0, np.log(3), -np.log(3)]])["y"]
    np.testing.assert_allclose(y, [[0.5, 0.75, 0.25]], rtol=1e-6)


@pytest.mark.parametrize("in_place", [False, True])
def test_gradient(in_place: bool) -> None:
    check_gradient(Bench(Sigmoid(), [RANDOM.normal(size=(2, 3, 4))], in_place=in_place))


def test_far_out() -> None:
    bench = Bench(Sigmoid(), [np.array([-1e6, 1e6])])
    assert bench.forward()[0].tolist() == [0, 1]
    bench.backward([np.ones(2)], [True])
    assert bench.bottom[0].diff.tolist() == [0, 0]


def test_the_gradient_outlives_an_overwritten_top() -> None:
    bench = Bench(Sigmoid(), [np.zeros(2)])
    bench.forward()
    bench.top[0].data[...] = 9
    bench.backward([np.ones(2)], [True])
    assert bench.bottom[0].diff.tolist() == [0.25, 0.25]
