"""Bias: by hand, gradients, a second bottom, in place, folded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from astride.layers.bias import Bias

from .gradients import Bench, check_gradient
from .single import single

RANDOM = np.random.RandomState(52)
X = RANDOM.normal(size=(2, 3, 4))


@pytest.mark.parametrize("in_place", [False, True])
def test_from_its_text(in_place: bool) -> None:
    net = single('type: "Bias" bias_param { axis: 0 num_axes: 2 filler { value: 10 } }', in_place=in_place, x=(2, 2))
    net.params["layer"][0].data[0, 1] = 20
    (y,) = net.forward(x=[[1, 2], [3, 4]]).values()
    assert y.tolist() == [[11, 22], [13, 14]]
    assert net.backward(**{net.outputs[0]: [[1, 2], [3, 4]]})["x"].tolist() == [[1, 2], [3, 4]]
    assert net.params["layer"][0].diff.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("options", [{}, {"axis": 0, "num_axes": 2}, {"axis": -1}, {"num_axes": 0}])
def test_gradient(options: dict[str, Any], in_place: bool) -> None:
    check_gradient(Bench(Bias(**options), [X], in_place=in_place))


@pytest.mark.parametrize("in_place", [False, True])
def test_gradient_of_a_second_bottom(in_place: bool) -> None:
    check_gradient(Bench(Bias(), [X, RANDOM.normal(size=(3, 4))], in_place=in_place))
    check_gradient(Bench(Bias(), [X, RANDOM.normal(size=3)]), [False, True])


def test_what_is_folded() -> None:
    bench = Bench(Bias(), [X])
    bench.layer.params[0].data[...] = [4, 5, 6]
    folded = bench.layer.affine(3)
    assert folded is not None and [part.tolist() for part in folded] == [[1, 1, 1], [4, 5, 6]]
    assert Bench(Bias(axis=2), [X]).layer.affine(4) is None
    assert Bench(Bias(), [X, np.ones(3)]).layer.affine(3) is None
