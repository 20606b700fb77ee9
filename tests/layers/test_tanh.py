"""TanH: by hand, gradients, in place."""

from __future__ import annotations

import numpy as np
import pytest

from astride.layers.tanh import TanH

from .gradients import Bench, check_gradient
from .single import single

RANDOM = np.random.RandomState(41)


def test_from_its_text() -> None:
    y = single('type: "TanH"', x=(1, 3)).forward(x=[[0, np.log(2), -1e6]])["y"]
    np.testing.assert_allclose(y, [[0, 0.6, -1]], rtol=1e-6)


@pytest.mark.parametrize("in_place", [False, True])
def test_gradient(in_place: bool) -> None:
    check_gradient(Bench(TanH(), [RANDOM.normal(size=(2, 3, 4))], in_place=in_place))
