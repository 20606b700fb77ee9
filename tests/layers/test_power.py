"""Power: by hand, gradients, in place, constants, where the base is 0."""

from __future__ import annotations

import numpy as np
import pytest

from astride.layers.power import Power

from .gradients import Bench, check_gradient
from .single import single

RANDOM = np.random.RandomState(47)


@pytest.mark.parametrize("in_place", [False, True])
def test_from_its_text(in_place: bool) -> None:
    net = single('type: "Power" power_param { power: 2 scale: 0.5 shift: 1.5 }', in_place=in_place, x=(1, 3))
    (y,) = net.forward(x=[[-3, 1, 3]]).values()
    assert y.tolist() == [[0, 4, 9]]
    assert net.backward(**{net.outputs[0]: np.ones((1, 3))})["x"].tolist() == [[0, 2, 3]]


def test_nothing_given_changes_nothing() -> None:
    x = np.float32([[-3, 0, np.nan, np.inf]])
    np.testing.assert_array_equal(single('type: "Power"', x=(1, 4)).forward(x=x)["y"], x)


@pytest.mark.parametrize(
    ("options", "value"), [({"power": 0.0, "scale": 0.5}, 1), ({"scale": 0.0, "shift": 3.0, "power": 2.0}, 9)]
)
def test_constants(options: dict[str, float], value: float) -> None:
    """x takes no part, be it infinite or no number."""
    bench = Bench(Power(**options), [np.array([-1.0, 0, np.inf, np.nan])])
    assert bench.forward()[0].tolist() == [value] * 4
    bench.backward([np.ones(4)], [True])
    assert bench.bottom[0].diff.tolist() == [0] * 4


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize(
    ("power", "scale", "shift"),
    [(1.0, 0.5, 2.0), (2.0, 0.5, 0.0), (2.0, 1.0, 3.0), (3.0, 1.0, 0.0), (0.5, 0.5, 3.0), (-0.75, 1.0, 4.0)],
)
def test_gradient(power: float, scale: float, shift: float, in_place: bool) -> None:
    layer = Power(power=power, scale=scale, shift=shift)
    check_gradient(Bench(layer, [RANDOM.uniform(-1, 1, size=(2, 3, 4))], in_place=in_place))


def test_where_the_base_is_zero() -> None:
    """The derivative, not Caffe's 0 / 0."""
    for power, slope in ((3.0, 0.0), (0.5, np.inf)):
        bench = Bench(Power(power=power), [np.zeros(1)])
        bench.forward()
        bench.backward([np.ones(1)], [True])
        assert bench.bottom[0].diff == slope


def test_a_line_is_folded() -> None:
    folded = Power(scale=2.0, shift=3.0).affine(2)
    assert folded is not None and [part.tolist() for part in folded] == [[2, 2], [3, 3]]
    assert Power(power=2.0).affine(2) is None
