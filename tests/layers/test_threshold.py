"""Threshold: by hand, in place, no gradient."""

from __future__ import annotations

import numpy as np
import pytest

from astride.errors import UnsupportedError
from astride.layers.threshold import Threshold

from .gradients import Bench
from .single import single


@pytest.mark.parametrize("in_place", [False, True])
def test_from_its_text(in_place: bool) -> None:
    net = single('type: "Threshold" threshold_param { threshold: 0.5 }', in_place=in_place, x=(1, 4))
    (y,) = net.forward(x=[[-1, 0.5, 0.75, np.nan]]).values()
    assert y.tolist() == [[0, 0, 1, 0]]


def test_there_is_no_gradient() -> None:
    bench = Bench(Threshold(), [np.ones((1, 2))])
    bench.forward()
    with pytest.raises(UnsupportedError, match="a threshold has no gradient"):
        bench.backward([np.ones((1, 2))], [True])
    bench.backward([np.ones((1, 2))], [False])
    assert not bench.layer.allow_force_backward(0)


def test_a_learning_layer_below_is_told() -> None:
    net = single(
        """type: "Threshold" }
        layer { name: "target" type: "Input" top: "target" input_param { shape { dim: 1 dim: 3 } } }
        layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip" inner_product_param { num_output: 3 } }
        layer { name: "step" type: "Threshold" bottom: "ip" top: "step" }
        layer { name: "loss" type: "EuclideanLoss" bottom: "step" bottom: "target" top: "loss" """,
        "TRAIN",
        x=(1, 3),
    )
    net.forward()
    with pytest.raises(UnsupportedError, match=r'layer "step" \(Threshold\)'):
        net.backward()
