"""ReLU: by hand, gradients, in place."""

from __future__ import annotations

import numpy as np
import pytest

from astride.layers.relu import ReLU

from .gradients import Bench, away_from, check_gradient

RANDOM = np.random.RandomState(8)


def test_by_hand() -> None:
    bench = Bench(ReLU(slope=0.5), [np.array([[-2.0, 0, 3, np.nan]])])
    np.testing.assert_array_equal(bench.forward()[0], [[-1, 0, 3, np.nan]])


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("slope", [0.0, 0.1, -0.3])
def test_gradient(slope: float, in_place: bool) -> None:
    """In place as well for a negative slope, where the output's sign no longer tells the input's."""
    check_gradient(Bench(ReLU(slope=slope), [away_from(RANDOM.normal(size=(2, 3, 4)))], in_place=in_place))


def test_at_zero_the_gradient_is_the_slope() -> None:
    bench = Bench(ReLU(slope=0.25), [np.zeros((1, 2))])
    bench.forward()
    bench.backward([np.ones((1, 2))], [True])
    np.testing.assert_array_equal(bench.bottom[0].diff, [[0.25, 0.25]])
