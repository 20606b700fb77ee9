"""Swish: by hand, gradients, in place."""

from __future__ import annotations

import numpy as np
import pytest

from astride.layers.swish import Swish

from .gradients import Bench, check_gradient
from .single import single

RANDOM = np.random.RandomState(45)


def test_from_its_text() -> None:
    y = single('type: "Swish" swish_param { beta: 0.5 }', x=(1, 3)).forward(x=[[0, 2 * np.log(3), -1e6]])["y"]
    np.testing.assert_allclose(y, [[0, 1.5 * np.log(3), 0]], rtol=1e-6)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("beta", [1.0, 0.5, -2.0, 0.0])
def test_gradient(beta: float, in_place: bool) -> None:
    check_gradient(Bench(Swish(beta=beta), [RANDOM.normal(size=(2, 3, 4))], in_place=in_place))
