"""The teaching code's rules: whole windows only, and the gradient idioms by name."""

from __future__ import annotations

import pytest
from tests.rules.geometry import size, size_or_none

import astride
from astride.plan.kinds import Tie
from astride.rules import numpy_loops


@pytest.mark.parametrize(("idiom", "tie"), [("mask", Tie.ALL_FULL), ("share", Tie.EQUAL_SHARE), ("argmax", Tie.FIRST_NAN)])
def test_idioms_are_tie_rules(idiom: str, tie: Tie) -> None:
    assert numpy_loops.max_pool((1, 1, 4), kernel=2, gradient=idiom).tie is tie
    assert numpy_loops.min_pool((1, 1, 4), kernel=2, gradient=idiom).tie is tie


def test_the_mask_is_the_default() -> None:
    assert numpy_loops.max_pool((1, 1, 4), kernel=2).tie is Tie.ALL_FULL


def test_windows_fill_the_input() -> None:
    assert size("max_pool", 6, rules="numpy_loops", kernel=2) == 3
    assert size("max_pool", 7, rules="numpy_loops", kernel=3, stride=2) == 3
    assert size_or_none("max_pool", 6, rules="numpy_loops", kernel=3, stride=2) is None
    assert size_or_none("max_pool", 2, rules="numpy_loops", kernel=3) is None


def test_convolution_pads_but_does_not_floor() -> None:
    plan = astride.plan("conv", (1, 3, 7, 7), w_shape=(2, 3, 3, 3), rules="numpy_loops", stride=2, padding=1)
    assert [axis.out for axis in plan.axes] == [4, 4]
    with pytest.raises(astride.ArgumentError, match="do not fill the input exactly"):
        astride.plan("conv", (1, 3, 8, 8), w_shape=(2, 3, 3, 3), rules="numpy_loops", stride=2, padding=1)
