"""Normalize: the lengths, the learned scale, gradients, and its text."""

from __future__ import annotations

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.errors import ArgumentError, UnsupportedError
from astride.layers.normalize import Normalize

from .gradients import Bench, check_gradient

RANDOM = np.random.RandomState(51)
X = RANDOM.normal(size=(2, 3, 4, 2))


@pytest.mark.parametrize("across_spatial", [True, False])
@pytest.mark.parametrize("channel_shared", [True, False])
@pytest.mark.parametrize("shape", [(2, 3, 4, 2), (2, 5), (1, 2, 3, 2, 2)])
@pytest.mark.parametrize("in_place", [True, False])
def test_values_and_gradient(across_spatial: bool, channel_shared: bool, shape: tuple[int, ...], in_place: bool) -> None:
    x = RANDOM.normal(size=shape)
    layer = Normalize(across_spatial=across_spatial, channel_shared=channel_shared, eps=0.1)
    bench = Bench(layer, [x], in_place=in_place)
    axes = tuple(range(1, len(shape))) if across_spatial else (1,)
    scale = layer.params[0].data.reshape((-1,) + (1,) * (len(shape) - 2))
    assert layer.params[0].shape == (() if channel_shared else shape[1:2])
    expected = x / np.sqrt((x**2).sum(axis=axes, keepdims=True) + 0.1) * scale
    np.testing.assert_allclose(bench.forward()[0], expected, rtol=0, atol=1e-14)
    check_gradient(bench)


def test_by_hand() -> None:
    """Ones in four channels: a half each, times the scale; over four places besides: a quarter."""
    ones = np.ones((1, 4, 2, 2))
    for across_spatial, length in ((False, 2.0), (True, 4.0)):
        bench = Bench(Normalize(across_spatial=across_spatial, channel_shared=False), [ones])
        bench.layer.params[0].data[...] = [1, 2, 3, 4]
        np.testing.assert_allclose(bench.forward()[0][0, :, 0, 0], np.array([1, 2, 3, 4]) / length, rtol=1e-9)


def test_zeros_stay() -> None:
    bench = Bench(Normalize(across_spatial=False), [np.zeros((1, 3, 2, 2))])
    assert not bench.forward()[0].any()
    bench.backward([np.ones((1, 3, 2, 2))], [True])
    assert np.isfinite(bench.bottom[0].diff).all()


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match="no channels"):
        Bench(Normalize(), [np.ones(3)])
    bench = Bench(Normalize(channel_shared=False), [X])
    bench.bottom[0].reshape(2, 4, 4, 2)
    with pytest.raises(ArgumentError, match="another number of channels"):
        bench.layer.reshape(bench.bottom, bench.top)
    with pytest.raises(UnsupportedError, match="forward pass"):
        Bench(Normalize(), [X]).backward([X], [True])


NET = """
force_backward: true
input: "x" input_shape { dim: 2 dim: 3 dim: 4 dim: 2 }
layer {
  name: "n" type: "Normalize" bottom: "x" top: "y"
  norm_param { across_spatial: false channel_shared: false scale_filler { type: "constant" value: 20 } eps: 1e-5 }
}
"""


def test_text() -> None:
    net = load_caffe(NET, dialect="ssd")
    assert net.params["n"][0].shape == (3,) and (net.params["n"][0].data == 20).all()
    y = net.forward(x=X)["y"]
    np.testing.assert_allclose(y, 20 * X / np.sqrt((X**2).sum(axis=1, keepdims=True) + 1e-5), rtol=0, atol=2e-5)
    net.backward(y=np.ones_like(y))
    np.testing.assert_allclose(net.params["n"][0].diff, y.sum(axis=(0, 2, 3)) / 20, rtol=0, atol=1e-5)
    again = load_caffe(net.to_prototxt())
    np.testing.assert_array_equal(again.forward(x=X)["y"], y)
    bare = load_caffe(NET[: NET.index("  norm_param")] + "}")
    assert bare.params["n"][0].shape == () and bare.params["n"][0].data == 1
