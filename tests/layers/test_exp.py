"""Exp: by hand, gradients, in place, bases."""

from __future__ import annotations

import numpy as np
import pytest

from astride.errors import ArgumentError
from astride.layers.exp import Exp

from .gradients import Bench, check_gradient
from .single import single

RANDOM = np.random.RandomState(48)


def test_from_its_text() -> None:
    y = single('type: "Exp" exp_param { base: 2 scale: 0.5 shift: 1 }', x=(1, 3)).forward(x=[[-2, 0, 4]])["y"]
    np.testing.assert_allclose(y, [[1, 2, 8]], rtol=1e-6)


def test_the_base_is_e_unless_told() -> None:
    np.testing.assert_allclose(single('type: "Exp"', x=(1, 1)).forward(x=[[1]])["y"], [[np.e]], rtol=1e-6)
    np.testing.assert_allclose(
        single('type: "Exp" exp_param { base: -1 shift: 1 }', x=(1, 1)).forward(x=[[1]])["y"], [[np.e**2]], rtol=1e-6
    )


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("options", [{}, {"base": 2.0}, {"base": 0.5, "scale": 3.0, "shift": 0.5}, {"scale": -1.5, "shift": 1.0}])
def test_gradient(options: dict[str, float], in_place: bool) -> None:
    check_gradient(Bench(Exp(**options), [RANDOM.normal(size=(2, 3, 4))], in_place=in_place))


@pytest.mark.parametrize("base", [0, -2])
def test_a_base_is_positive(base: float) -> None:
    with pytest.raises(ArgumentError, match=f"base > 0: {base}"):
        single(f'type: "Exp" exp_param {{ base: {base} }}', x=(1, 1))


def test_a_shift_that_leaves_all_numbers() -> None:
    with pytest.raises(ArgumentError, match="larger than any number"):
        Exp(base=10.0, shift=400.0)
