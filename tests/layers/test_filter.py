"""Filter and BatchReindex: which items pass, and where their gradients go."""

from __future__ import annotations

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.errors import ArgumentError, UnsupportedError
from astride.layers.filter import Filter

from .gradients import Bench, check_gradient

RANDOM = np.random.RandomState(36)
A, B = RANDOM.normal(size=(4, 3, 2)), RANDOM.normal(size=(4, 1))
SELECTOR = np.array([[[0.0]], [[1]], [[0]], [[-2]]])

NET = """
force_backward: true
input: "data" input: "pass"
input_shape { dim: 4 dim: 3 } input_shape { dim: 4 }
layer { name: "f" type: "Filter" bottom: "data" bottom: "pass" top: "f" }
layer { name: "ip" type: "InnerProduct" bottom: "f" top: "out" inner_product_param { num_output: 2 weight_filler { value: 1 } } }
"""


def test_by_hand_and_gradient() -> None:
    bench = Bench(Filter(), [A, B, SELECTOR], tops=2)
    assert [t.shape for t in bench.top] == [(4, 3, 2), (4, 1)], "before forward there is room for all"
    first, second = bench.forward()
    np.testing.assert_array_equal(first, A[[1, 3]])
    np.testing.assert_array_equal(second, B[[1, 3]])
    check_gradient(bench, want=[True, True, False])
    assert not bench.bottom[0].diff[[0, 2]].any()


@pytest.mark.parametrize(("selector", "kept"), [((1, 1, 1, 1), 4), ((0, 0, 0, 0), 0), ((0, 0, 5, 0), 1)])
def test_any_number_may_pass(selector: tuple[int, ...], kept: int) -> None:
    net = load_caffe(NET)
    x = RANDOM.normal(size=(4, 3)).astype(np.float32)
    y = net.forward(data=x, **{"pass": np.array(selector)})["out"]
    chosen = np.array(selector) != 0
    np.testing.assert_allclose(y, np.repeat(x[chosen].sum(1, keepdims=True), 2, 1), rtol=1e-5)
    assert y.shape == (kept, 2)
    dx = net.backward(out=np.ones_like(y))["data"]
    np.testing.assert_array_equal(dx, np.repeat(np.where(chosen, 2, 0)[:, None], 3, 1))


def test_pass_after_pass() -> None:
    net = load_caffe(NET)
    x = np.ones((6, 3), np.float32)
    for selector in ([1, 1, 0, 0, 0, 0], [1] * 6, [0] * 6, [0, 0, 0, 0, 0, 1]):
        assert net.forward(data=x, **{"pass": selector})["out"].shape == (sum(selector), 2)


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match="tops == bottoms - 1: 2 == 1"):
        Bench(Filter(), [A, SELECTOR], tops=2)
    with pytest.raises(ArgumentError, match="one value an item"):
        Bench(Filter(), [A, np.zeros((4, 2))])
    with pytest.raises(ArgumentError, match="3 items"):
        Bench(Filter(), [A, np.zeros(3)])
    bench = Bench(Filter(), [A, SELECTOR])
    bench.forward()
    with pytest.raises(UnsupportedError, match="a selector has no gradient"):
        bench.backward([np.zeros((2, 3, 2))], [True, True])
