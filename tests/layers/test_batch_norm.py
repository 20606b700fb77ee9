"""BatchNorm: by hand, gradients in both phases, in place, running statistics, what is refused, folded."""

from __future__ import annotations

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.errors import ArgumentError, UnsupportedError
from astride.layers import Blob
from astride.layers.batch_norm import BatchNorm
from astride.net import Net

from .gradients import Bench, check_gradient
from .single import single

RANDOM = np.random.RandomState(55)
X = RANDOM.normal(size=(3, 2, 2, 2))
LAYER = 'type: "BatchNorm" batch_norm_param { moving_average_fraction: 0.5 eps: 3 }'


def statistics(net: Net) -> list[list[float]]:
    return [p.data.tolist() for p in net.params["layer"]]


@pytest.mark.parametrize("in_place", [False, True])
def test_training_from_its_text(in_place: bool) -> None:
    """Means 2 and 5, variances 1 and 0; the running variance is of m - 1."""
    net = single(LAYER, "TRAIN", in_place=in_place, x=(2, 2))
    (y,) = net.forward(x=[[1, 5], [3, 5]]).values()
    assert y.tolist() == [[-0.5, 0], [0.5, 0]]
    assert statistics(net) == [[2, 5], [2, 0], [1]]
    net.forward(x=[[1, 5], [3, 5]])
    assert statistics(net) == [[3, 7.5], [3, 0], [1.5]]


@pytest.mark.parametrize("in_place", [False, True])
def test_use_from_its_text(in_place: bool) -> None:
    """The sums are divided by their weight: means 2 and 5, variances 1 and 6. Nothing moves."""
    net = single(LAYER, in_place=in_place, x=(2, 2))
    for parameter, values in zip(net.params["layer"], ([4, 10], [2, 12], [2]), strict=True):
        parameter.data[...] = values
    (y,) = net.forward(x=[[1, 5], [4, 8]]).values()
    np.testing.assert_allclose(y, [[-0.5, 0], [1, 1]], rtol=1e-6)
    np.testing.assert_allclose(net.backward(**{net.outputs[0]: [[1, 1], [2, 3]]})["x"], [[0.5, 1 / 3], [1, 1]], rtol=1e-6)
    assert statistics(net) == [[4, 10], [2, 12], [2]]


def test_a_weight_of_nothing_is_mean_and_variance_zero() -> None:
    y = single(LAYER, x=(1, 2)).forward(x=[[3, 6]])["y"]
    np.testing.assert_allclose(y, np.array([[3, 6]]) / 3**0.5, rtol=1e-6)


@pytest.mark.parametrize(("phase", "given", "moves"), [("TRAIN", "true", False), ("TEST", "false", True)])
def test_the_text_outdoes_the_phase(phase: str, given: str, moves: bool) -> None:
    net = single(f'type: "BatchNorm" batch_norm_param {{ use_global_stats: {given} }}', phase, x=(2, 2))
    net.forward(x=[[1, 5], [3, 5]])
    assert (statistics(net)[2] == [1]) is moves


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("shape", [(3, 2, 2, 2), (6, 4), (24,)])
def test_gradient_through_the_statistics(shape: tuple[int, ...], in_place: bool) -> None:
    bench = Bench(BatchNorm(use_global_stats=False, eps=0.1), [X.reshape(shape)], in_place=in_place)
    check_gradient(bench, params=False)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("shape", [(3, 2, 2, 2), (6, 4), (24,)])
def test_gradient_of_running_statistics(shape: tuple[int, ...], in_place: bool) -> None:
    bench = Bench(BatchNorm(use_global_stats=True), [X.reshape(shape)], in_place=in_place)
    for parameter, value in zip(bench.layer.params, (0.5, 3.0, 2.0), strict=True):
        parameter.data[...] = value
    check_gradient(bench, params=False)


def test_statistics_are_never_learned() -> None:
    net = single(LAYER, "TRAIN", x=(2, 2))
    net.forward(x=[[1, 5], [3, 5]])
    net.backward(y=np.ones((2, 2)))
    assert [p.lr_mult for p in net.params["layer"]] == [0, 0, 0]
    assert not any(p.diff.any() for p in net.params["layer"])
    with pytest.raises(ArgumentError, match=r"lr_mult == 0: 1"):
        single('type: "BatchNorm" param { lr_mult: 1 }', x=(2, 2))
    single('type: "BatchNorm" param { lr_mult: 0 decay_mult: 0 }', x=(2, 2))


def test_a_pass_is_not_repeated_behind_the_callers_back() -> None:
    """A backward pass that forward was not told of would have to run it again, and the statistics would move twice."""
    net = load_caffe(
        """
        input: "x" input_shape { dim: 2 dim: 2 }
        layer { name: "layer" type: "BatchNorm" bottom: "x" top: "y" }
        """,
        phase="TRAIN",
    )
    net.forward(x=[[1, 5], [3, 5]])
    with pytest.raises(UnsupportedError, match="kept its state"):
        net.backward(y=np.ones((2, 2)))
    assert statistics(net)[2] == [1]


def test_an_empty_batch_moves_nothing() -> None:
    net = single(LAYER, "TRAIN", x=(2, 2))
    net.forward(x=[[1, 5], [3, 5]])
    before = statistics(net)
    assert net.forward(x=np.zeros((0, 2)))["y"].shape == (0, 2)
    assert statistics(net) == before


def test_one_value_a_channel_has_its_variance_as_it_is() -> None:
    net = single(LAYER, "TRAIN", x=(1, 2))
    assert net.forward(x=[[1, 5]])["y"].tolist() == [[0, 0]]
    assert statistics(net) == [[1, 5], [0, 0], [1]]


def test_another_number_of_channels_is_refused() -> None:
    bench = Bench(BatchNorm(use_global_stats=True), [X])
    with pytest.raises(ArgumentError, match="channels == 2: 3"):
        bench.layer.reshape([Blob((3, 3, 2, 2), "float64")], bench.top)


def test_what_is_folded() -> None:
    bench = Bench(BatchNorm(use_global_stats=True, eps=3.0), [X])
    for parameter, values in zip(bench.layer.params, ([4, 10], [2, 12], [2]), strict=True):
        parameter.data[...] = values
    folded = bench.layer.affine(2)
    assert folded is not None
    np.testing.assert_allclose(folded[0], [1 / 2, 1 / 3])
    np.testing.assert_allclose(folded[1], [-1, -5 / 3])
    y = X * folded[0].reshape(2, 1, 1) + folded[1].reshape(2, 1, 1)
    np.testing.assert_allclose(bench.forward()[0], y)
    assert Bench(BatchNorm(use_global_stats=False), [X]).layer.affine(2) is None
    bench.layer.params[2].data[...] = 0
    nothing = bench.layer.affine(2)
    assert nothing is not None
    np.testing.assert_allclose(nothing[0], [3**-0.5] * 2)
    assert not nothing[1].any()


@pytest.mark.parametrize("given", ["true", "false"])
def test_compiled_it_is_the_same(given: str) -> None:
    """Folded into a convolution where it is a line, and by itself, moving nothing, where it is not."""
    net = single(
        f"""type: "Convolution" convolution_param {{ num_output: 3 kernel_size: 1 weight_filler {{ type: "xavier" }} }} }}
        layer {{ name: "bn" type: "BatchNorm" bottom: "y" top: "y" batch_norm_param {{ use_global_stats: {given} }} }}
        layer {{ name: "scale" type: "Scale" bottom: "y" top: "y" scale_param {{ bias_term: true filler {{ value: 2 }} }} """,
        x=(2, 2, 3, 3),
    )
    for parameter, value in zip(net.params["bn"], (0.5, 3.0, 2.0), strict=True):
        parameter.data[...] = value
    x = RANDOM.normal(size=(2, 2, 3, 3)).astype(np.float32)
    program = net.compile()
    assert [name for name, _ in program.folded] == (["bn", "scale"] if given == "true" else [])
    np.testing.assert_allclose(program(x=x)["y"], net.forward(x=x)["y"], rtol=1e-5, atol=1e-6)
