"""LSTM and RNN, what they have in common: equations, gradients through time, what is remembered, shapes, programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from astride.caffe import load_caffe
from astride.errors import ArgumentError, UnsupportedError
from astride.layers._recurrent import Recurrent
from astride.layers.lstm import LSTM
from astride.layers.rnn import RNN

from .gradients import Bench, check_gradient
from .sequences import Array, Forgetful, lstm_loops, marks, rnn_loops

RANDOM = np.random.RandomState(40)
KINDS = [(LSTM, lstm_loops), (RNN, rnn_loops)]
BEGIN_ANEW = marks("00", "11", "10", "11")

kinds = pytest.mark.parametrize(("kind", "loops"), KINDS, ids=["LSTM", "RNN"])


def x_of(time: int, streams: int, *inputs: int) -> Array:
    return RANDOM.normal(size=(time, streams, *(inputs or (3,))))


TEXT = """
force_backward: true
layer {{ name: "x" type: "Input" top: "x" input_param {{ shape {{ dim: {time} dim: 2 dim: 3 }} }} }}
layer {{ name: "cont" type: "Input" top: "cont" input_param {{ shape {{ dim: {time} dim: 2 }} }} }}
layer {{
  name: "r" type: "{kind}" bottom: "x" bottom: "cont" top: "y"
  recurrent_param {{
    num_output: 2 weight_filler {{ type: "uniform" min: -1 max: 1 }} bias_filler {{ type: "constant" value: 0.5 }}
  }}
}}
"""


def network(kind: str, time: int = 4, seed: int = 0) -> Any:
    return load_caffe(TEXT.format(kind=kind, time=time), seed=seed)


@kinds
@pytest.mark.parametrize("static", [False, True])
def test_equations(kind: type[Recurrent], loops: Callable[..., Array], static: bool) -> None:
    more = [RANDOM.normal(size=(2, 2, 2))] if static else []
    bench = Forgetful(kind(2), [x_of(4, 2, 3, 2), BEGIN_ANEW, *more])
    expected = loops(bench.values[0], BEGIN_ANEW, [p.data for p in bench.layer.params], *more)
    np.testing.assert_allclose(bench.forward()[0], expected, rtol=1e-12, atol=1e-14)


@kinds
def test_gradient_with_another_size_in_between(kind: type[Recurrent], loops: Callable[..., Array]) -> None:
    bench = Forgetful(kind(2), [x_of(4, 2), BEGIN_ANEW])
    check_gradient(bench, [True, False])
    bench.values = [x_of(2, 3), marks("011", "111")]
    check_gradient(bench, [True, False])
    bench.values = [x_of(1, 1), marks("1")]
    check_gradient(bench, [True, False])


@kinds
def test_gradient_of_a_static_input(kind: type[Recurrent], loops: Callable[..., Array]) -> None:
    bench = Forgetful(kind(2), [x_of(3, 2), marks("00", "11", "01"), RANDOM.normal(size=(2, 3))])
    check_gradient(bench, [True, False, True])
    check_gradient(bench, [False, False, True])


@kinds
def test_only_what_is_wanted_is_computed(kind: type[Recurrent], loops: Callable[..., Array]) -> None:
    """A parameter that does not learn keeps its gradient as it is, and the others get what they would get anyway."""
    every, some = (Forgetful(kind(2), [x_of(1, 2).repeat(3, axis=0), marks("00", "11", "11")]) for _ in range(2))
    some.values = every.values
    some.layer.param_wanted = [i % 2 == 1 for i in range(len(some.layer.params))]
    for bench in (every, some):
        y = bench.forward()[0]
        for parameter in bench.layer.params:
            parameter.diff.fill(0)
        bench.backward([np.ones(y.shape)], [bench is every, False])
    for wanted, one, other in zip(some.layer.param_wanted, every.layer.params, some.layer.params, strict=True):
        np.testing.assert_array_equal(other.diff, one.diff if wanted else 0)
    np.testing.assert_array_equal(some.bottom[0].diff, 7e7)


@kinds
def test_parameter_gradients_accumulate(kind: type[Recurrent], loops: Callable[..., Array]) -> None:
    bench = Forgetful(kind(2), [x_of(2, 1), marks("0", "1")])
    once: list[Array] = []
    for _ in range(2):
        bench.backward([np.ones(bench.forward()[0].shape)], [True, False])
        once = once or [p.diff.copy() for p in bench.layer.params]
    for first, parameter in zip(once, bench.layer.params, strict=True):
        np.testing.assert_allclose(parameter.diff, 2 * first, rtol=1e-12)


# What is remembered


@pytest.mark.parametrize("kind", ["LSTM", "RNN"])
def test_the_last_step_begins_the_next_pass(kind: str) -> None:
    """Two halves give what the whole gives, and a mark of 0 begins anew."""
    x, cont = x_of(4, 2).astype("float32"), marks("00", "11", "11", "11")
    whole, halves = network(kind), network(kind, time=2)
    halves.copy_params({"r": [p.data for p in whole.params["r"]]})
    expected = whole.forward(x=x, cont=cont)["y"]
    found = [halves.forward(x=x[part], cont=cont[part])["y"] for part in (slice(0, 2), slice(2, 4))]
    np.testing.assert_allclose(np.concatenate(found), expected, rtol=1e-6)
    np.testing.assert_allclose(halves.forward(x=x[:2], cont=cont[:2])["y"], expected[:2], rtol=1e-6)


@pytest.mark.parametrize("kind", ["LSTM", "RNN"])
def test_at_first_nothing_is_remembered(kind: str) -> None:
    """Which is as if every stream began anew; and again after forget()."""
    x = x_of(4, 2).astype("float32")
    net = network(kind)
    going_on = net.forward(x=x, cont=np.ones((4, 2)))["y"]
    assert not np.allclose(net.forward(x=x, cont=np.ones((4, 2)))["y"], going_on)
    net.layer("r").forget()
    np.testing.assert_array_equal(net.forward(x=x, cont=np.ones((4, 2)))["y"], going_on)
    np.testing.assert_array_equal(net.forward(x=x, cont=marks("00", "11", "11", "11"))["y"], going_on)


@kinds
def test_other_numbers_of_streams(kind: type[Recurrent], loops: Callable[..., Array]) -> None:
    """Fewer streams go on from the first ones; more than ever before all begin anew."""
    bench = Bench(kind(2), [x_of(1, 3), np.ones((1, 3))])
    bench.forward()
    three = bench.forward()[0]
    one = Bench(kind(2), [bench.values[0][:, :1], np.ones((1, 1))])
    for mine, theirs in zip(one.layer.params, bench.layer.params, strict=True):
        mine.data[...] = theirs.data
    one.forward()
    np.testing.assert_allclose(one.forward()[0], three[:, :1], rtol=1e-12)
    fresh = Bench(kind(2), [bench.values[0], np.ones((1, 3))])
    expected = fresh.forward()[0]
    one.values = bench.values
    np.testing.assert_allclose(one.forward()[0], expected, rtol=1e-12)


@kinds
def test_the_gradient_is_that_of_the_pass_although_it_has_moved_on(kind: type[Recurrent], loops: Callable[..., Array]) -> None:
    """What the next pass begins with does not overwrite what this one began with: the weights' gradient needs it."""
    bench, exposed = Bench(kind(2), [x_of(2, 1), np.ones((2, 1))]), kind(2, expose_hidden=True)
    bench.forward()
    assert isinstance(bench.layer, Recurrent)
    state = [b.data.copy() for b in bench.layer._state]
    y = bench.forward()[0]
    bench.backward([np.ones(y.shape)], [True, False])
    other = Bench(exposed, [*bench.values, *state], tops=1 + len(state))
    for mine, theirs in zip(exposed.params, bench.layer.params, strict=True):
        mine.data[...] = theirs.data
    np.testing.assert_allclose(other.forward()[0], y, rtol=1e-12)
    other.backward([np.ones(y.shape), *[np.zeros(s.shape) for s in state]], [True, False, *[False] * len(state)])
    for mine, theirs in zip(exposed.params, bench.layer.params, strict=True):
        np.testing.assert_allclose(mine.diff, theirs.diff, rtol=1e-12)


@kinds
def test_what_is_remembered_as_blobs(kind: type[Recurrent], loops: Callable[..., Array]) -> None:
    """With expose_hidden it comes in and goes out, nothing stays in the layer, and no gradient goes that way."""
    layer = kind(2, expose_hidden=True)
    assert not layer.stateful
    x, count = x_of(4, 2), kind.remembers
    zeros = [np.zeros((1, 2, 2))] * count
    bench = Bench(layer, [x, np.ones((4, 2)), *zeros], tops=1 + count)
    whole, *last = bench.forward()
    np.testing.assert_allclose(whole, loops(x, np.ones((4, 2)), [p.data for p in layer.params]), rtol=1e-12)
    bench.values = [x[:2], np.ones((2, 2)), *zeros]
    first, *middle = bench.forward()
    bench.values = [x[2:], np.ones((2, 2)), *middle]
    second, *end = bench.forward()
    np.testing.assert_allclose(np.concatenate([first, second]), whole, rtol=1e-12)
    np.testing.assert_allclose(end, last, rtol=1e-12)
    check_gradient(bench, [True, False, *[False] * count], silent=range(1, 1 + count))
    bench.backward([np.ones(second.shape), *[np.ones(e.shape) for e in end]], [True, False, *[True] * count])
    assert not any(blob.diff.any() for blob in bench.bottom[2:])


@kinds
def test_a_static_input_before_what_is_remembered(kind: type[Recurrent], loops: Callable[..., Array]) -> None:
    static, count = RANDOM.normal(size=(2, 3)), kind.remembers
    layer = kind(2, expose_hidden=True)
    bench = Bench(layer, [x_of(2, 2), np.ones((2, 2)), static, *[np.zeros((1, 2, 2))] * count], tops=1 + count)
    expected = loops(bench.values[0], np.ones((2, 2)), [p.data for p in layer.params], static)
    np.testing.assert_allclose(bench.forward()[0], expected, rtol=1e-12)
    assert [layer.allow_force_backward(i) for i in range(3 + count)] == [True, False, True, *[False] * count]


# In a network


@pytest.mark.parametrize(("kind", "shapes"), [("LSTM", [(8, 3), (8,), (8, 2)]), ("RNN", [(2, 3), (2,), (2, 2), (2, 2), (2,)])])
def test_parameters(kind: str, shapes: list[tuple[int, ...]]) -> None:
    params = network(kind).params["r"]
    assert [p.shape for p in params] == shapes
    for parameter in params:
        assert (parameter.data == 0.5).all() if len(parameter.shape) == 1 else parameter.data.std() > 0.1


@pytest.mark.parametrize("kind", ["LSTM", "RNN"])
def test_a_program_begins_every_call_with_nothing_remembered(kind: str) -> None:
    x, cont = x_of(4, 2).astype("float32"), np.ones((4, 2), np.float32)
    net = network(kind)
    expected = net.forward(x=x, cont=cont)["y"]
    program = net.compile()
    for _ in range(2):
        np.testing.assert_array_equal(program(x=x, cont=cont)["y"], expected)
    net.layer("r").forget()
    first = net.forward(x=x, cont=cont)["y"]
    np.testing.assert_array_equal(first, expected)
    program(x=x * 2, cont=cont)
    second = net.forward(x=x, cont=cont)["y"]
    net.layer("r").forget()
    np.testing.assert_array_equal([net.forward(x=x, cont=cont)["y"] for _ in range(2)], [first, second])


@pytest.mark.parametrize("kind", ["LSTM", "RNN"])
def test_a_pass_is_not_repeated_behind_ones_back(kind: str) -> None:
    """A second forward pass would go on from the first, so backward does not run one to get what it needs."""
    net = load_caffe(TEXT.format(kind=kind, time=4).replace("force_backward: true", ""), seed=0)
    before = net.forward(x=x_of(4, 2), cont=np.ones((4, 2)))["y"]
    with pytest.raises(UnsupportedError, match="kept its state"):
        net.backward(y=np.ones_like(before))
    np.testing.assert_array_equal(net.blobs["y"].data, before)


def test_two_layers_share_their_parameters_by_name() -> None:
    names = " ".join(f'param {{ name: "w{i}" }}' for i in range(3))
    layer = f'bottom: "x" bottom: "cont" {names} recurrent_param {{ num_output: 2 weight_filler {{ type: "uniform" }} }}'
    inputs = TEXT.format(kind="LSTM", time=4).split('layer {\n  name: "r"')[0]
    net = load_caffe(
        f'{inputs} layer {{ name: "a" type: "LSTM" top: "a" {layer} }} layer {{ name: "b" type: "LSTM" top: "b" {layer} }}',
        seed=0,
    )
    assert len(net.learnable) == 3
    out = net.forward(x=x_of(4, 2), cont=np.ones((4, 2)))
    np.testing.assert_array_equal(out["a"], out["b"])
    net.backward(a=np.ones_like(out["a"]))
    once = [p.diff.copy() for p in net.learnable]
    net.clear_param_diffs()
    net.backward(a=np.ones_like(out["a"]), b=np.ones_like(out["a"]))
    for first, parameter in zip(once, net.learnable, strict=True):
        np.testing.assert_allclose(parameter.diff, 2 * first, rtol=1e-5, atol=1e-7)


def test_a_mark_between_0_and_1_has_the_gradient_of_caffe() -> None:
    """One stream, one output, cont 1/2 at the second step, everything 1 and the gates 0 but for the new value's.

    Caffe's slope of the forget gate is f (1 - f) for f = cont sigmoid(g), 1/4 * 3/4, not cont times the sigmoid's, 1/8.
    """
    bench = Forgetful(LSTM(1), [np.ones((2, 1, 1)), marks("0", "1") * 0.5])
    for parameter in bench.layer.params:
        parameter.data.fill(0)
    bench.layer.params[0].data[3] = 1
    y = bench.forward()[0]
    first = 0.5 * np.tanh(1)
    second = 0.25 * first + 0.5 * np.tanh(1)
    np.testing.assert_allclose(y.reshape(-1), [0.5 * np.tanh(first), 0.5 * np.tanh(second)])
    bench.backward([np.array([[[0.0]], [[1.0]]])], [True, False])
    slope = 0.5 * (1 - np.tanh(second) ** 2) * first * 0.25 * 0.75
    np.testing.assert_allclose(bench.layer.params[0].diff[1], slope)


# What is refused


@kinds
@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([(4, 2), (4, 2)], "time steps and streams"),
        ([(4, 2, 3), (4,)], r"\(4, 2\) == \(4,\)"),
        ([(4, 2, 3), (4, 2), (3, 2)], r"with 2 streams: \(3, 2\)"),
        ([(4, 2, 3), (4, 2), (2,)], "one entry for each stream"),
        ([(4, 2, 3), (4, 2), (2, 2), (2, 2)], "2 or 3 bottoms: 4"),
    ],
)
def test_shapes_that_do_not_fit(
    kind: type[Recurrent], loops: Callable[..., Array], shapes: list[tuple[int, ...]], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        Bench(kind(2), [np.zeros(s) for s in shapes])


@kinds
def test_more_refusals(kind: type[Recurrent], loops: Callable[..., Array]) -> None:
    with pytest.raises(ArgumentError, match="num_output >= 1: 0"):
        kind(0)
    hidden = [np.zeros((1, 3, 2))] * kind.remembers
    with pytest.raises(ArgumentError, match="one time step of the output"):
        Bench(kind(2, expose_hidden=True), [np.zeros((4, 2, 3)), np.zeros((4, 2)), *hidden], tops=1 + kind.remembers)
    with pytest.raises(ArgumentError, match="another number of tops"):
        Bench(kind(2), [np.zeros((4, 2, 3)), np.zeros((4, 2))], tops=2)
    bench = Bench(kind(2), [np.zeros((4, 2, 3)), np.zeros((4, 2))])
    with pytest.raises(UnsupportedError, match="kept its state"):
        bench.backward([np.zeros((4, 2, 2))], [True, False])
    bench.forward()
    with pytest.raises(UnsupportedError, match="marks of a sequence have no gradient"):
        bench.backward([np.zeros((4, 2, 2))], [True, True])
    bench.values[0] = np.zeros((4, 2, 5))
    with pytest.raises(ArgumentError, match="5 == 3"):
        bench.forward()


def test_an_lstm_learns_to_remember() -> None:
    """Every step of a sequence is to give the sequence's first number, through gates that only training opens."""
    inputs = "".join(
        f'layer {{ name: "{name}" type: "Input" top: "{name}" input_param {{ shape {{ {dims} }} }} }}'
        for name, dims in (("x", "dim: 3 dim: 16 dim: 1"), ("cont", "dim: 3 dim: 16"), ("target", "dim: 3 dim: 16 dim: 1"))
    )
    net = load_caffe(
        f"""{inputs}
        layer {{
          name: "lstm" type: "LSTM" bottom: "x" bottom: "cont" top: "h"
          recurrent_param {{ num_output: 8 weight_filler {{ type: "uniform" min: -0.5 max: 0.5 }} }}
        }}
        layer {{
          name: "ip" type: "InnerProduct" bottom: "h" top: "y"
          inner_product_param {{ axis: 2 num_output: 1 weight_filler {{ type: "xavier" }} }}
        }}
        layer {{ name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "target" top: "loss" }}""",
        phase="TRAIN",
        seed=0,
    )
    random, losses = np.random.RandomState(0), []
    speed = [np.zeros(p.shape) for p in net.learnable]
    cont = np.ones((3, 16))
    cont[0] = 0
    for _ in range(160):
        x = random.choice([-1, 1], (3, 16, 1))
        net.forward(x=x, cont=cont, target=np.repeat(x[:1], 3, axis=0))
        losses.append(net.loss)
        net.clear_param_diffs()
        net.backward()
        for step, parameter in zip(speed, net.learnable, strict=True):
            step *= 0.9
            step += 0.1 * parameter.diff
            parameter.data[...] -= step
    assert losses[0] > 1 and max(losses[-20:]) < 0.2
