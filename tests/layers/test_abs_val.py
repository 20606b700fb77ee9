"""AbsVal: by hand, gradients, not in place."""

from __future__ import annotations

import numpy as np
import pytest

from astride.errors import ArgumentError
from astride.layers.abs_val import AbsVal

from .gradients import Bench, away_from, check_gradient
from .single import single

RANDOM = np.random.RandomState(42)


def test_from_its_text() -> None:
    net = single('type: "AbsVal"', x=(1, 3))
    assert net.forward(x=[[-2, 0, 3]])["y"].tolist() == [[2, 0, 3]]
    assert net.backward(y=np.ones((1, 3)))["x"].tolist() == [[-1, 0, 1]]


def test_gradient() -> None:
    check_gradient(Bench(AbsVal(), [away_from(RANDOM.normal(size=(2, 3, 4)))]))


def test_not_in_place() -> None:
    with pytest.raises(ArgumentError, match="cannot work in place"):
        single('type: "AbsVal"', in_place=True, x=(1, 3))
