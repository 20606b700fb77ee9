"""ELU: by hand, gradients, in place."""

from __future__ import annotations

import numpy as np
import pytest

from astride.layers.elu import ELU

from .gradients import Bench, away_from, check_gradient
from .single import single

RANDOM = np.random.RandomState(44)


def test_from_its_text() -> None:
    y = single('type: "ELU" elu_param { alpha: 2 }', x=(1, 3)).forward(x=[[-np.log(2), 0, 3]])["y"]
    np.testing.assert_allclose(y, [[-1, 0, 3]], rtol=1e-6)


def test_alpha_is_one_unless_told() -> None:
    np.testing.assert_allclose(single('type: "ELU"', x=(1, 1)).forward(x=[[-1e3]])["y"], [[-1]])


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("alpha", [1.0, 0.5, -0.5])
def test_gradient(alpha: float, in_place: bool) -> None:
    """In place as well for a negative alpha, where the result's sign does not tell that of x."""
    check_gradient(Bench(ELU(alpha=alpha), [away_from(RANDOM.normal(size=(2, 3, 4)))], in_place=in_place))


def test_at_zero_the_gradient_is_alpha() -> None:
    bench = Bench(ELU(alpha=0.25), [np.zeros((1, 2))])
    bench.forward()
    bench.backward([np.ones((1, 2))], [True])
    assert bench.bottom[0].diff.tolist() == [[0.25, 0.25]]
