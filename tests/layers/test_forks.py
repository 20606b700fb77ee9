"""Layers of forks that need no file of their own: activations, shuffles, depthwise convolutions, Axpy, Pad, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from astride import load_caffe
from astride.errors import ArgumentError
from astride.layers import Layer
from astride.layers.axpy import Axpy
from astride.layers.hard_sigmoid import HardSigmoid
from astride.layers.hard_swish import HardSwish
from astride.layers.mish import Mish
from astride.layers.pad import Pad
from astride.layers.relu6 import ReLU6
from astride.layers.reorg import Reorg
from astride.layers.shuffle_channel import ShuffleChannel

from .gradients import Bench, away_from, check_gradient
from .single import single

RANDOM = np.random.RandomState(77)
X = RANDOM.normal(scale=3, size=(2, 4, 4, 2))


@pytest.mark.parametrize(
    ("layer", "x", "y"),
    [
        ('type: "ReLU6"', [-1, 0, 2, 6, 7], [0, 0, 2, 6, 6]),
        ('type: "ReLU6" relu6_param { negative_slope: 0.5 }', [-4, 2, 7], [-2, 2, 6]),
        ('type: "HardSwish"', [-4, -3, -1, 0, 3, 5], [0, 0, -1 / 3, 0, 3, 5]),
        ('type: "HardSigmoid"', [-3, -2.5, 0, 1, 3], [0, 0, 0.5, 0.7, 1]),
        ('type: "HardSigmoid" hard_sigmoid_param { alpha: 1 beta: 0.25 }', [-1, 0.5, 1], [0, 0.75, 1]),
        ('type: "Mish"', [0, 1, -1e4, 1e4], [0, np.tanh(np.log1p(np.e)), 0, 1e4]),
    ],
)
@pytest.mark.parametrize("in_place", [False, True])
def test_activations(layer: str, x: Any, y: Any, in_place: bool) -> None:
    net = single(layer, x=(1, len(x)), in_place=in_place)
    np.testing.assert_allclose(net.forward(x=[x])["x" if in_place else "y"], [y], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize(
    ("make", "kinks"),
    [
        (Mish, ()),
        (HardSwish, (-3, 3)),
        (HardSigmoid, (-2.5, 2.5)),
        (ReLU6, (0, 6)),
        (lambda: ReLU6(limit=2, slope=0.1), (0, 2)),
    ],
)
def test_gradients_of_activations(make: Any, kinks: tuple[float, ...], in_place: bool) -> None:
    x = X
    for kink in kinks:
        x = away_from(x, kink)
    check_gradient(Bench(make(), [x], in_place=in_place))


def test_relu6_at_its_corners() -> None:
    bench = Bench(ReLU6(slope=0.25), [np.array([[0.0, 6.0, 3.0]])])
    bench.forward()
    bench.backward([np.ones((1, 3))], [True])
    assert bench.bottom[0].diff.tolist() == [[0.25, 0, 1]]


def test_channels_are_shuffled() -> None:
    x = np.arange(6.0).reshape(1, 6, 1, 1)
    net = single('type: "ShuffleChannel" shuffle_channel_param { group: 3 }', x=(1, 6, 1, 1))
    assert net.forward(x=x)["y"].reshape(-1).tolist() == [0, 2, 4, 1, 3, 5]
    check_gradient(Bench(ShuffleChannel(2), [X]))
    with pytest.raises(ArgumentError, match="do not divide into the groups"):
        Bench(ShuffleChannel(3), [X])


def darknet(x: np.ndarray, s: int, reverse: bool) -> np.ndarray:
    """Darknet's loop, index by index."""
    n, c, h, w = x.shape
    out_c = c // s**2
    y = np.zeros(x.size)
    flat = x.reshape(-1)
    for b in range(n):
        for k in range(c):
            for j in range(h):
                for i in range(w):
                    here = i + w * (j + h * (k + c * b))
                    w2, h2 = i * s + (k // out_c) % s, j * s + (k // out_c) // s
                    there = w2 + w * s * (h2 + h * s * (k % out_c + out_c * b))
                    if reverse:
                        y[there] = flat[here]
                    else:
                        y[here] = flat[there]
    return y.reshape((n, c // s**2, h * s, w * s) if reverse else (n, c * s**2, h // s, w // s))


@pytest.mark.parametrize("reverse", [False, True])
def test_reorg_is_darknets(reverse: bool) -> None:
    x = RANDOM.normal(size=(2, 8, 4, 6)).astype(np.float32)
    text = f'type: "Reorg" reorg_param {{ stride: 2 reverse: {"true" if reverse else "false"} }}'
    np.testing.assert_array_equal(single(text, x=x.shape).forward(x=x)["y"], darknet(x, 2, reverse))
    check_gradient(Bench(Reorg(2, reverse=reverse), [x]))


def test_reorg_refuses() -> None:
    for shape in ((1, 4, 3, 4), (1, 3, 4, 4), (4, 4)):
        with pytest.raises(ArgumentError, match="does not divide into blocks"):
            Bench(Reorg(2), [np.zeros(shape)])
    with pytest.raises(ArgumentError, match="stride >= 1: 0"):
        Reorg(0)


@pytest.mark.parametrize("shape", [(2, 4), (2, 4, 1, 1)])
def test_axpy(shape: tuple[int, ...]) -> None:
    a, z = RANDOM.randint(-3, 4, shape), RANDOM.randint(-3, 4, X.shape)
    x = RANDOM.randint(-3, 4, X.shape)
    y = single('type: "Axpy"', a=shape, x=X.shape, z=X.shape).forward(a=a, x=x, z=z)["y"]
    np.testing.assert_array_equal(y, a.reshape(2, 4, 1, 1) * x + z)
    check_gradient(Bench(Axpy(), [RANDOM.normal(size=shape), X, X + 1]))


def test_axpy_refuses() -> None:
    for shapes in (((2, 3), X.shape, X.shape), ((2, 4, 2, 1), X.shape, X.shape), ((2, 4), X.shape, (2, 4, 4, 3))):
        with pytest.raises(ArgumentError, match="do not belong together"):
            Bench(Axpy(), [np.zeros(s) for s in shapes])


def test_pad() -> None:
    net = single('type: "Pad" pad_param { paddings: [0, 0, 1, 2] constant_values: 9 }', x=(1, 2))
    assert net.forward(x=[[3, 4]])["y"].tolist() == [[9, 3, 4, 9, 9]]
    check_gradient(Bench(Pad([(0, 0), (1, 0), (0, 2), (1, 1)], value=5), [X]))
    with pytest.raises(ArgumentError, match="each axis needs two pads"):
        single('type: "Pad" pad_param { paddings: [0, 0] }', x=(1, 2))
    with pytest.raises(ArgumentError, match="an even number: 3"):
        single('type: "Pad" pad_param { paddings: [0, 0, 1] }', x=(1, 2))


WEIGHTS = RANDOM.randint(-2, 3, (3, 1, 2, 2))


@pytest.mark.parametrize(
    "layer",
    [
        'type: "ConvolutionDepthwise" convolution_param { num_output: 7 kernel_size: 2 stride: 2 bias_term: false }',
        'type: "DepthwiseConvolution" convolution_param { num_output: 3 kernel_size: 2 stride: 2 bias_term: false }',
        'type: "DepthwiseConvolution" convolution_param { num_output: 3 group: 3 kernel_size: 2 stride: 2 bias_term: false }',
    ],
)
def test_depthwise_convolutions_are_grouped_ones(layer: str) -> None:
    x = RANDOM.randint(-3, 4, (2, 3, 5, 6))
    net = single(layer, x=x.shape)
    assert net.params["layer"][0].shape == (3, 1, 2, 2)
    net.params["layer"][0].data[...] = WEIGHTS
    blocks = x[:, :, :4].reshape(2, 3, 2, 2, 3, 2)
    np.testing.assert_array_equal(net.forward(x=x)["y"], np.einsum("ncyixj,cij->ncyx", blocks, WEIGHTS[:, 0]))
    same = single(
        'type: "Convolution" convolution_param { num_output: 3 group: 3 kernel_size: 2 stride: 2 bias_term: false }', x=x.shape
    )
    same.params["layer"][0].data[...] = WEIGHTS
    ones = np.ones((2, 3, 2, 3))
    same.forward(x=x)
    np.testing.assert_array_equal(net.backward(y=ones)["x"], same.backward(y=ones)["x"])
    np.testing.assert_array_equal(net.params["layer"][0].diff, same.params["layer"][0].diff)


def test_a_depthwise_convolution_of_more_outputs() -> None:
    net = single('type: "DepthwiseConvolution" convolution_param { num_output: 6 kernel_size: 1 }', x=(1, 3, 2, 2))
    assert net.params["layer"][0].shape == (6, 1, 1, 1) and net.blobs["y"].shape == (1, 6, 2, 2)


def test_texts_of_forks_come_back() -> None:
    text = """
    input: "x" input_shape { dim: 1 dim: 4 dim: 4 dim: 4 }
    layer { name: "a" type: "ReLU6" bottom: "x" top: "x" }
    layer { name: "b" type: "ShuffleChannel" bottom: "x" top: "b" shuffle_channel_param { group: 2 } }
    layer { name: "c" type: "Reorg" bottom: "b" top: "c" reorg_param { stride: 2 } }
    layer { name: "d" type: "DepthwiseConvolution" bottom: "c" top: "d"
      convolution_param { num_output: 16 kernel_size: 1 group: 16 } }
    """
    x = RANDOM.normal(size=(1, 4, 4, 4))
    net = load_caffe(text, seed=1)
    again = load_caffe(net.to_prototxt(), seed=1)
    np.testing.assert_array_equal(again.forward(x=x)["d"], net.forward(x=x)["d"])
    np.testing.assert_allclose(net.compile()(x=x)["d"], net.forward(x=x)["d"], rtol=1e-6)


def test_a_layer_made_of_steps_keeps_nothing_unless_asked() -> None:
    layer: Layer = Mish()
    layer.keep = False
    bench = Bench(layer, [X])
    bench.forward()
    with pytest.raises(NotImplementedError, match="kept its state"):
        bench.backward([np.ones(X.shape)], [True])
