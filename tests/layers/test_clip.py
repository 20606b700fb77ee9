"""Clip: by hand, gradients, in place, NaN."""

from __future__ import annotations

import numpy as np
import pytest

from astride.errors import PrototxtError
from astride.layers.clip import Clip
from astride.plan.kinds import Nan

from .gradients import Bench, away_from, check_gradient
from .single import single

RANDOM = np.random.RandomState(46)
LAYER = 'type: "Clip" clip_param { min: -1 max: 2 }'


@pytest.mark.parametrize("in_place", [False, True])
def test_from_its_text(in_place: bool) -> None:
    """On the limits the gradient passes. In place Caffe lets every gradient pass."""
    net = single(LAYER, in_place=in_place, x=(1, 5))
    (y,) = net.forward(x=[[-2, -1, 0.5, 2, 3]]).values()
    assert y.tolist() == [[-1, -1, 0.5, 2, 2]]
    assert net.backward(**{net.outputs[0]: np.ones((1, 5))})["x"].tolist() == [[0, 1, 1, 1, 0]]


def test_limits_are_required() -> None:
    with pytest.raises(PrototxtError, match="max"):
        single('type: "Clip" clip_param { min: -1 }', x=(1, 5))


def test_nan() -> None:
    assert np.isnan(Bench(Clip(-1, 2), [np.array([np.nan])]).forward()[0])
    assert Bench(Clip(-1, 2, nan=Nan.COMPARED), [np.array([np.nan])]).forward()[0] == -1
    assert single(LAYER, x=(1, 1)).forward(x=[[np.nan]])["y"] == -1


@pytest.mark.parametrize("in_place", [False, True])
def test_gradient(in_place: bool) -> None:
    values = away_from(away_from(RANDOM.normal(size=(2, 3, 4)), -0.5), 0.75)
    check_gradient(Bench(Clip(-0.5, 0.75), [values], in_place=in_place))
