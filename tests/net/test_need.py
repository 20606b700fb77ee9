"""Which gradients are computed: Caffe's analysis."""

from __future__ import annotations

import numpy as np
import pytest

from astride.errors import ArgumentError, UnsupportedError
from astride.layers import ArraySource
from astride.layers.memory_data import MemoryData
from astride.net import Net, Node

from .nets import accuracy, data, dropout, ip, loss, net, relu, spec

RANDOM = np.random.RandomState(3)
X, LABELS = RANDOM.normal(size=(2, 4)), np.array([0, 2])
FROZEN = [spec(lr_mult=0.0), spec(lr_mult=0.0)]


def runs(made: Net) -> list[str]:
    return [n.name for n, r in zip(made.nodes, made._need.layers, strict=True) if r]


def test_without_a_loss_nothing_runs() -> None:
    made = net(data(data=(2, 4)), ip("a", "data"))
    assert runs(made) == []
    made.forward(data=X)
    made.blobs["a"].diff[...] = 1
    assert not made.backward()["data"].any() and not made.params["a"][0].has_diff


def test_a_loss_runs_what_learns_below_it() -> None:
    made = net(data(data=(2, 4), label=(2,)), ip("a", "data"), relu("r", "a"), ip("b", "a"), loss("l", "b"), accuracy("acc", "b"))
    assert runs(made) == ["a", "r", "b", "b_b_0_split", "l"]
    made.forward(data=X, label=LABELS)
    assert not made.backward()["data"].any(), "nothing asks for the inputs' gradients"
    assert made.params["a"][0].diff.any() and made.params["b"][1].diff.any()


def test_force_backward_reaches_the_inputs() -> None:
    made = net(data(data=(2, 4), label=(2,)), ip("a", "data"), loss("l", "a"), accuracy("acc", "a"), force_backward=True)
    made.forward(data=X, label=LABELS)
    gradients = made.backward()
    assert gradients["data"].any() and not gradients["label"].any()


def test_a_rate_of_zero_freezes_weights_and_lets_gradients_through() -> None:
    made = net(
        data(data=(2, 4), label=(2,)),
        ip("a", "data"),
        ip("b", "a", params=[spec(lr_mult=0.0), spec(lr_mult=0.0)]),
        loss("l", "b"),
    )
    made.forward(data=X, label=LABELS)
    made.backward()
    assert made.params["a"][0].diff.any()
    assert not any(p.has_diff for p in made.params["b"])


def test_below_the_lowest_that_learns_nothing_runs() -> None:
    made = net(data(data=(2, 4), label=(2,)), ip("a", "data", params=FROZEN), ip("b", "a"), loss("l", "b"))
    assert runs(made) == ["b", "l"]


def test_propagate_down_stops_and_forces() -> None:
    stopped = net(data(data=(2, 4), label=(2,)), ip("a", "data"), ip("b", "a", propagate_down=[False]), loss("l", "b"))
    assert runs(stopped) == ["b", "l"]
    forced = net(data(data=(2, 4), label=(2,)), ip("a", "data", propagate_down=[True]), loss("l", "a"))
    forced.forward(data=X, label=LABELS)
    assert forced.backward()["data"].any()


def test_a_stopped_reader_of_a_split_adds_nothing() -> None:
    """Also where an earlier pass, asked for everything, has left a gradient in the split's top."""
    made = net(
        data(data=(2, 4), label=(2,)), ip("a", "data"), ip("b", "a"), ip("c", "a", propagate_down=[False]), loss("l", "b")
    )
    made.forward(data=X, label=LABELS)
    made.backward()
    expected = made.params["a"][0].diff.copy()
    made.backward(c=np.ones((2, 3)), l=1.0)
    made.clear_param_diffs()
    made.backward()
    np.testing.assert_array_equal(made.params["a"][0].diff, expected)


def test_weight_zero_is_no_loss() -> None:
    made = net(data(data=(2, 4), label=(2,)), ip("a", "data"), loss("l", "a", loss_weights=[0.0]))
    made.forward(data=X, label=LABELS)
    assert made.loss == 0 and runs(made) == []


@pytest.mark.parametrize("weight", [0.5, 3.0])
def test_weights_scale_loss_and_gradient(weight: float) -> None:
    plain, weighted = (
        net(data(data=(2, 4), label=(2,)), ip("a", "data"), loss("l", "a", loss_weights=[w])) for w in (1.0, weight)
    )
    for made in (plain, weighted):
        made.forward(data=X, label=LABELS)
        made.backward()
    assert weighted.loss == pytest.approx(weight * plain.loss)
    np.testing.assert_allclose(weighted.params["a"][0].diff, weight * plain.params["a"][0].diff)


def test_explicit_gradients_flow_without_a_loss() -> None:
    """A gradient that the caller gives at the top flows to the inputs, whatever the network was loaded for."""
    lazy = net(data(data=(2, 4)), ip("a", "data"), relu("r", "a"), ip("b", "a"))
    eager = net(data(data=(2, 4)), ip("a", "data"), relu("r", "a"), ip("b", "a"), force_backward=True)
    dy = RANDOM.normal(size=(2, 3))
    for made in (lazy, eager):
        made.forward(data=X)
    np.testing.assert_array_equal(lazy.backward(b=dy)["data"], eager.backward(b=dy)["data"])
    lazy.forward(data=2 * X)
    eager.forward(data=2 * X)
    np.testing.assert_array_equal(lazy.backward(b=dy)["data"], eager.backward(b=dy)["data"])


def test_tops_that_pass_no_gradient_take_none() -> None:
    made = net(data(data=(2, 4), label=(2,)), ip("a", "data"), accuracy("acc", "a"))
    made.forward(data=X, label=LABELS)
    assert not made.backward(acc=0.0)["data"].any()
    with pytest.raises(ArgumentError, match=r'layer "acc" \(Accuracy\): this output passes no gradient'):
        made.backward(acc=1.0)
    node = accuracy("acc", "a")
    node.loss_weights = [1.0]
    with pytest.raises(ArgumentError, match="a loss weight is given to a top that passes no gradient"):
        net(data(data=(2, 4), label=(2,)), ip("a", "data"), node)


def test_other_outputs_start_from_zero() -> None:
    made = net(data(data=(2, 4)), ip("a", "data"), ip("b", "data"))
    made.forward(data=X)
    one = made.backward(a=np.ones((2, 3)))["data"]
    made.backward(b=np.ones((2, 3)))
    np.testing.assert_array_equal(made.backward(a=np.ones((2, 3)))["data"], one)


def test_what_cannot_run_again_says_what_to_do() -> None:
    made = net(data(data=(2, 4)), ip("a", "data"), dropout("d", "a"))
    made.forward(data=X)
    with pytest.raises(UnsupportedError, match="force_backward: true"):
        made.backward(a=np.ones((2, 3)))
    source = MemoryData(2, [(4,)], ArraySource(X))
    fed = Net([Node("data", source, [], ["data"]), ip("a", "data")], dtype="float64")
    fed.forward()
    with pytest.raises(UnsupportedError, match="force_backward: true"):
        fed.backward(a=np.ones((2, 3)))
