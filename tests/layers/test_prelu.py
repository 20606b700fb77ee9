"""PReLU: by hand, gradients of x and slopes, in place, one slope for all, gathered gradients."""

from __future__ import annotations

import numpy as np
import pytest

from astride.errors import ArgumentError
from astride.layers import Blob
from astride.layers.prelu import PReLU

from .gradients import Bench, away_from, check_gradient
from .single import single

RANDOM = np.random.RandomState(50)
LAYER = 'type: "PReLU" prelu_param { filler { type: "constant" value: 0.5 } }'


@pytest.mark.parametrize("in_place", [False, True])
def test_from_its_text(in_place: bool) -> None:
    net = single(LAYER, in_place=in_place, x=(1, 2, 2))
    net.params["layer"][0].data[1] = -1
    (y,) = net.forward(x=[[[-2, 4], [-2, 4]]]).values()
    assert y.tolist() == [[[-1, 4], [2, 4]]]
    dx = net.backward(**{net.outputs[0]: [[[1, 1], [1, 3]]]})["x"]
    assert dx.tolist() == [[[0.5, 1], [-1, 3]]]
    assert net.params["layer"][0].diff.tolist() == [-2, -2]


def test_slopes_begin_at_a_quarter() -> None:
    assert single('type: "PReLU"', x=(1, 2, 3)).params["layer"][0].data.tolist() == [0.25, 0.25]
    shared = single('type: "PReLU" prelu_param { channel_shared: true }', x=(1, 2, 3)).params["layer"][0]
    assert shared.shape == () and shared.data == 0.25


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("channel_shared", [False, True])
def test_gradient(channel_shared: bool, in_place: bool) -> None:
    values = away_from(RANDOM.normal(size=(2, 3, 2, 2)))
    check_gradient(Bench(PReLU(channel_shared=channel_shared), [values], in_place=in_place))


def test_gradients_of_the_slopes_add_up() -> None:
    net = single(LAYER, x=(1, 1))
    for _ in range(3):
        net.forward(x=[[-2]])
        net.backward(y=[[1]])
    assert net.params["layer"][0].diff.tolist() == [-6]


def test_nan_stays() -> None:
    assert np.isnan(single(LAYER, x=(1, 1)).forward(x=[[np.nan]])["y"])


def test_a_bottom_without_channels_is_refused() -> None:
    with pytest.raises(ArgumentError, match="no such axis"):
        Bench(PReLU(), [np.zeros(3)])


def test_another_number_of_channels_is_refused() -> None:
    bench = Bench(PReLU(), [np.zeros((2, 3))])
    with pytest.raises(ArgumentError, match=r"bottom.shape\[1:2\] == \(3,\): \(4,\)"):
        bench.layer.reshape([Blob((2, 4), "float64")], bench.top)
