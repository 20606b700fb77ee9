"""BNLL: by hand, gradients, in place, far out."""

from __future__ import annotations

import numpy as np
import pytest

from astride.layers.bnll import BNLL

from .gradients import Bench, check_gradient
from .single import single

RANDOM = np.random.RandomState(43)


def test_from_its_text() -> None:
    y = single('type: "BNLL"', x=(1, 4)).forward(x=[[0, np.log(3), -1e6, 1e6]])["y"]
    np.testing.assert_allclose(y, [[np.log(2), np.log(4), 0, 1e6]], rtol=1e-6)


@pytest.mark.parametrize("in_place", [False, True])
def test_gradient(in_place: bool) -> None:
    check_gradient(Bench(BNLL(), [3 * RANDOM.normal(size=(2, 3, 4))], in_place=in_place))


def test_far_out_the_slope_is_nothing_or_one() -> None:
    bench = Bench(BNLL(), [np.array([-1e6, 60, 1e6])])
    bench.forward()
    bench.backward([np.ones(3)], [True])
    np.testing.assert_allclose(bench.bottom[0].diff, [0, 1, 1], atol=1e-20)
