"""Log: by hand, gradients, in place, bases, what has no logarithm."""

from __future__ import annotations

import numpy as np
import pytest

from astride.errors import ArgumentError
from astride.layers.log import Log

from .gradients import Bench, check_gradient
from .single import single

RANDOM = np.random.RandomState(49)


def test_from_its_text() -> None:
    y = single('type: "Log" log_param { base: 10 scale: 2 shift: 20 }', x=(1, 2)).forward(x=[[-5, 490]])["y"]
    np.testing.assert_allclose(y, [[1, 3]], rtol=1e-6)


def test_the_base_is_e_unless_told() -> None:
    np.testing.assert_allclose(single('type: "Log"', x=(1, 1)).forward(x=[[np.e]])["y"], [[1]], rtol=1e-6)


def test_what_is_not_positive() -> None:
    np.testing.assert_array_equal(Bench(Log(), [np.array([-1.0, 0])]).forward()[0], [np.nan, -np.inf])


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("options", [{"shift": 2.0}, {"base": 2.0, "shift": 3.0}, {"base": 0.5, "scale": -0.5, "shift": 1.0}])
def test_gradient(options: dict[str, float], in_place: bool) -> None:
    check_gradient(Bench(Log(**options), [RANDOM.uniform(-1, 1, size=(2, 3, 4))], in_place=in_place))


@pytest.mark.parametrize(("base", "message"), [(0, "base > 0: 0"), (-3, "base > 0: -3"), (1, "base != 1")])
def test_bases_that_have_no_logarithm(base: float, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        single(f'type: "Log" log_param {{ base: {base} }}', x=(1, 1))
