"""BN: the three forks' layers of that name, told apart by their fields; statistics, gradients, folding."""

from __future__ import annotations

import numpy as np
import pytest

from astride import load_caffe
from astride.errors import ArgumentError
from astride.layers.bn import BN, Statistics

from .gradients import Bench, check_gradient
from .single import single

RANDOM = np.random.RandomState(9)
X = RANDOM.normal(loc=2, scale=3, size=(4, 3, 2, 5))
MEAN, VARIANCE = X.mean((0, 2, 3)), X.var((0, 2, 3))

SEGNET = 'type: "BN" bn_param { scale_filler { value: 2 } shift_filler { value: 1 } bn_mode: %s }'
PSPNET = 'type: "BN" bn_param { slope_filler { value: 2 } bias_filler { value: 1 } momentum: 0.75 eps: 0.5 %s }'
OTHER = 'type: "BN" bn_param { scale_filler { value: 2 } shift_filler { value: 1 } var_eps: 0.5 decay: 0.25 %s }'


def per_channel(values: np.ndarray) -> np.ndarray:
    return np.asarray(values).reshape(1, 3, 1, 1)


def normalized(eps: float) -> np.ndarray:
    return (X - per_channel(MEAN)) / np.sqrt(per_channel(VARIANCE) + eps)


@pytest.mark.parametrize("phase", ["TRAIN", "TEST"])
def test_segnets_takes_the_batchs_statistics_in_either_phase(phase: str) -> None:
    net = single(SEGNET % "LEARN", phase, x=X.shape)
    assert [p.shape for p in net.params["layer"]] == [(1, 3, 1, 1)] * 2
    np.testing.assert_allclose(net.forward(x=X)["y"], 2 * normalized(1e-9) + 1, atol=1e-5)


def test_segnets_folded_form_scales_and_shifts() -> None:
    x = RANDOM.randint(-5, 6, (2, 3, 4, 4))
    net = single(SEGNET % "INFERENCE", x=x.shape)
    np.testing.assert_array_equal(net.forward(x=x)["y"], 2 * x + 1)


def test_segnets_shows_mean_and_variance() -> None:
    text = f"""
    input: "x" input_shape {{ dim: 4 dim: 3 dim: 2 dim: 5 }}
    layer {{ name: "b" bottom: "x" top: "y" top: "mean" top: "variance" {SEGNET % "LEARN"} }}
    """
    out = load_caffe(text).forward(x=X)
    assert out["mean"].shape == out["variance"].shape == (1, 3, 1, 1)
    np.testing.assert_allclose(out["mean"].reshape(-1), MEAN, rtol=1e-5)
    np.testing.assert_allclose(out["variance"].reshape(-1), VARIANCE, rtol=1e-4)


def test_pspnets_gathers_in_training_and_uses_it_later() -> None:
    net = single(PSPNET % "", "TRAIN", x=X.shape)
    params = net.params["layer"]
    assert [p.shape for p in params] == [(1, 3)] * 4 and [p.lr_mult for p in params] == [1, 1, 0, 0]
    params[2].data[...], params[3].data[...] = 8, 4
    np.testing.assert_allclose(net.forward(x=X)["y"], 2 * normalized(0.5) + 1, atol=1e-5)
    np.testing.assert_allclose(params[2].data[0], 0.75 * 8 + 0.25 * MEAN, rtol=1e-5)
    np.testing.assert_allclose(params[3].data[0], 0.75 * 4 + 0.25 * VARIANCE, rtol=1e-5)
    used = single(PSPNET % "", x=X.shape)
    used.share_params(net)
    mean, variance = (per_channel(p.data[0]) for p in params[2:])
    before = params[2].data.copy()
    np.testing.assert_allclose(used.forward(x=X)["y"], 2 * (X - mean) / np.sqrt(variance + 0.5) + 1, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(params[2].data, before)


def test_a_frozen_one_learns_nothing() -> None:
    net = single(PSPNET % "frozen: true" + " param { lr_mult: 1 } param { lr_mult: 1 }", "TRAIN", x=X.shape)
    assert [p.lr_mult for p in net.params["layer"]] == [0, 0, 0, 0]
    assert net.params["layer"][3].data.tolist() == [[1, 1, 1]]
    np.testing.assert_allclose(net.forward(x=X)["y"], 2 * X / np.sqrt(1.5) + 1, rtol=1e-5)


@pytest.mark.parametrize(
    ("option", "phase", "running"), [("", "TEST", False), ("moving_average: true", "TEST", True), ("", "TRAIN", False)]
)
def test_the_third_fork(option: str, phase: str, running: bool) -> None:
    net = single(OTHER % option, phase, x=X.shape)
    params = net.params["layer"]
    assert [p.shape for p in params] == [(1, 3, 1, 1)] * 4
    params[2].data[...], params[3].data[...] = 8, 4
    expected = 2 * (X - 8) / np.sqrt(4.5) + 1 if running else 2 * normalized(0.5) + 1
    np.testing.assert_allclose(net.forward(x=X)["y"], expected, rtol=1e-4, atol=1e-5)
    moved = 0.75 * 8 + 0.25 * MEAN if phase == "TRAIN" else np.full(3, 8.0)
    np.testing.assert_allclose(params[2].data.reshape(-1), moved, rtol=1e-5)


def test_without_fields_the_param_blocks_say_which() -> None:
    four = "param { lr_mult: 1 } param { lr_mult: 1 } param { lr_mult: 0 } param { lr_mult: 0 }"
    assert len(single('type: "BN"', x=X.shape).params["layer"]) == 2
    assert len(single('type: "BN" ' + four, x=X.shape).params["layer"]) == 4


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("statistics", list(Statistics))
def test_gradient(statistics: Statistics, in_place: bool) -> None:
    layer = BN(statistics=statistics, momentum=0.9 if statistics is Statistics.RUNNING else None, eps=0.1)
    bench = Bench(layer, [X], in_place=in_place)
    for parameter in layer.params[2:]:
        parameter.data[...] = np.abs(parameter.data) + 0.5
    check_gradient(bench, params=statistics is not Statistics.RUNNING)


def test_gradient_of_scale_and_shift_beside_running_statistics() -> None:
    bench = Bench(BN(statistics=Statistics.RUNNING, momentum=0.9), [X])
    bench.layer.params[3].data[...] = 1
    bench.forward()
    bench.backward([np.ones(X.shape)], [True])
    scale, shift, mean, variance = bench.layer.params
    np.testing.assert_allclose(shift.diff.reshape(-1), [40, 40, 40])
    np.testing.assert_allclose(scale.diff.reshape(-1), ((X - mean.data) / np.sqrt(1 + 1e-5)).sum((0, 2, 3)), rtol=1e-10)
    assert not mean.diff.any() and not variance.diff.any()


@pytest.mark.parametrize("bn", [PSPNET % "", SEGNET % "INFERENCE"])
def test_folds_into_a_convolution(bn: str) -> None:
    text = f"""
    input: "x" input_shape {{ dim: 1 dim: 2 dim: 5 dim: 5 }}
    layer {{ name: "c" type: "Convolution" bottom: "x" top: "c" convolution_param {{
      num_output: 3 kernel_size: 3 weight_filler {{ type: "gaussian" std: 1 }} }} }}
    layer {{ name: "layer" bottom: "c" top: "y" {bn} }}
    """
    net = load_caffe(text, seed=3)
    for i, parameter in enumerate(net.params["layer"]):
        parameter.data[...] = RANDOM.uniform(0.5, 2, parameter.shape) * (1 if i else -1)
    x = RANDOM.normal(size=(1, 2, 5, 5))
    program = net.compile()
    assert program.folded == [("layer", "c")]
    np.testing.assert_allclose(program(x=x)["y"], net.forward(x=x)["y"], rtol=1e-4, atol=1e-5)


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match="no channels"):
        Bench(BN(statistics=Statistics.BATCH), [np.zeros(3)])
    with pytest.raises(ArgumentError, match="need parameters that hold them"):
        BN(statistics=Statistics.RUNNING)
    bench = Bench(BN(statistics=Statistics.BATCH), [X])
    bench.values[0] = np.zeros((1, 4, 2, 2))
    with pytest.raises(ArgumentError, match="another number of channels"):
        bench.forward()
