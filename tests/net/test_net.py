"""Net: forward, backward, reshape, sharing, random layers."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

from astride.errors import ArgumentError, ArrayError, UnsupportedError
from astride.layers import ArraySource
from astride.layers.memory_data import MemoryData
from astride.net import Net, Node, Phase, memory

from .nets import conv, data, dropout, flatten, ip, loss, net, relu, spec

RANDOM = np.random.RandomState(4)
X, LABELS = RANDOM.normal(size=(2, 4)), np.array([0, 2])


def small(**options: Any) -> Net:
    return net(data(data=(2, 4), label=(2,)), ip("a", "data"), relu("r", "a"), ip("b", "a"), loss("l", "b"), **options)


def test_forward_returns_copies() -> None:
    made = net(data(data=(2, 4)), ip("a", "data"))
    out = made.forward(data=X)
    np.testing.assert_allclose(out["a"], X @ made.params["a"][0].data.T + made.params["a"][1].data)
    out["a"][...] = 0
    assert made.blobs["a"].data.any()


def test_forward_without_arguments_uses_the_blobs() -> None:
    made = net(data(data=(2, 4)), ip("a", "data"))
    made.blobs["data"].data[...] = X
    blobs = made.forward()
    np.testing.assert_array_equal(blobs["a"], made.forward(data=X)["a"])


def test_inputs_are_cast_and_not_modified() -> None:
    made = net(data(data=(2, 4)), relu("r", "data"), dtype="float32")
    x = np.arange(-4, 4).reshape(2, 4)
    np.testing.assert_array_equal(made.forward(data=x)["data"], np.maximum(x, 0))
    assert x.min() == -4
    with pytest.raises(ArrayError, match="not an array of real numbers"):
        made.forward(data=np.zeros((2, 4), complex))


def test_another_size_reshapes_the_network() -> None:
    made = net(data(data=(1, 3, 8, 8)), conv("c", "data"), relu("r", "c"))
    assert made.forward(data=np.zeros((2, 3, 5, 6)))["c"].shape == (2, 2, 3, 4)
    assert made.blobs["data"].shape == (2, 3, 5, 6)
    made.blobs["data"].reshape(1, 3, 4, 4)
    assert made.forward()["c"].shape == (1, 2, 2, 2)
    made.reshape(data=(1, 3, 7, 7))
    assert made.blobs["c"].shape == (1, 2, 5, 5)


def test_a_size_that_does_not_fit_changes_nothing() -> None:
    made = net(data(data=(1, 3, 8, 8)), conv("c", "data"), ip("i", "c"))
    before = made.forward(data=np.ones((1, 3, 8, 8)))["i"]
    with pytest.raises(ArgumentError, match=r'layer "i" \(InnerProduct\)') as caught:
        made.forward(data=np.ones((1, 3, 9, 9)))
    assert caught.value.given['bottom "c"'] == (1, 2, 7, 7)
    assert made.blobs["data"].shape == (1, 3, 8, 8)
    np.testing.assert_array_equal(made.forward()["i"], before)


def test_unknown_names() -> None:
    made = small()
    with pytest.raises(ArgumentError, match="one of data, label"):
        made.forward(image=X)
    with pytest.raises(ArgumentError, match="one of data, label"):
        made.reshape(image=(1, 2))
    with pytest.raises(ArgumentError, match="one of l"):
        made.backward(b=X)
    with pytest.raises(ArrayError, match="another shape than the output"):
        made.backward(l=np.ones(3))
    with pytest.raises(ArgumentError, match="no such layer"):
        made.layer("c")
    assert made.layer("b").type == "InnerProduct"


def test_numeric_gradient_of_a_whole_network() -> None:
    made = small(force_backward=True)
    made.forward(data=X, label=LABELS)
    gradient = made.backward()["data"]
    numeric = np.zeros_like(X)
    for i in np.ndindex(X.shape):
        for sign in (1, -1):
            moved = X.copy()
            moved[i] += sign * 1e-6
            numeric[i] += sign * float(made.forward(data=moved)["l"]) / 2e-6
    np.testing.assert_allclose(gradient, numeric, atol=1e-8)


def test_a_split_network_has_the_gradient_of_the_sum() -> None:
    made = net(
        data(data=(2, 4), label=(2,)), ip("a", "data"), relu("r", "a", "r"), ip("b", "a"), loss("l1", "b"), loss("l2", "r"),
        force_backward=True,
    )  # fmt: skip
    made.forward(data=X, label=LABELS)
    gradient = made.backward()["data"]
    numeric = np.zeros_like(X)
    for i in np.ndindex(X.shape):
        for sign in (1, -1):
            moved = X.copy()
            moved[i] += sign * 1e-6
            made.forward(data=moved)
            numeric[i] += sign * made.loss / 2e-6
    np.testing.assert_allclose(gradient, numeric, atol=1e-8)


def test_parameter_gradients_accumulate_until_cleared() -> None:
    made = small()
    made.forward(data=X, label=LABELS)
    made.backward()
    once = [p.diff.copy() for p in made.learnable]
    made.backward()
    for parameter, diff in zip(made.learnable, once, strict=True):
        np.testing.assert_allclose(parameter.diff, 2 * diff)
    made.clear_param_diffs()
    assert not any(p.diff.any() for p in made.learnable)


def test_shared_parameters_are_one() -> None:
    both = [spec(name="w"), spec(name="b")]
    made = net(
        data(data=(2, 3), label=(2,)),
        ip("a", "data", params=[spec(name="w", lr_mult=2.0), spec(name="b")]),
        ip("b", "a", params=both),
        loss("l", "b"),
    )
    assert made.params["a"][0] is made.params["b"][0] and len(made.learnable) == 2
    assert made.params["b"][0].lr_mult == 2 and made.params["b"][0].name == "w"
    x = RANDOM.normal(size=(2, 3))
    made.forward(data=x, label=LABELS)
    made.backward()
    gradient = made.params["a"][0].diff.copy()
    weight = made.params["a"][0].data
    numeric = np.zeros_like(weight)
    for i in np.ndindex(weight.shape):
        before = weight[i]
        for sign in (1, -1):
            weight[i] = before + sign * 1e-6
            made.forward()
            numeric[i] += sign * made.loss / 2e-6
        weight[i] = before
    np.testing.assert_allclose(gradient, numeric, atol=1e-8)


def test_shared_parameters_must_fit() -> None:
    def two(first: Any, second: Any, outputs: int) -> Net:
        return net(data(data=(2, 4)), ip("a", "data", params=[first]), ip("b", "a", params=[second], outputs=outputs))

    with pytest.raises(ArgumentError, match=r"equal shape: \(4, 3\) == \(3, 4\)") as caught:
        two(spec(name="w"), spec(name="w"), 4)
    assert caught.value.hint == "share_mode: PERMISSIVE"
    shared = two(spec(name="w", lr_mult=3.0), spec(name="w", permissive=True), 4)
    assert np.shares_memory(shared.params["a"][0].data, shared.params["b"][0].data)
    assert shared.params["b"][0].shape == (4, 3) and shared.params["b"][0].lr_mult == 3 and len(shared.learnable) == 3
    with pytest.raises(ArgumentError, match="equal count: 15 == 12"):
        two(spec(name="w"), spec(name="w", permissive=True), 5)
    with pytest.raises(ArgumentError, match="two lr_mult"):
        first, second = ([spec(name="w", lr_mult=rate)] for rate in (1.0, 2.0))
        net(data(data=(2, 3)), ip("a", "data", params=first), ip("b", "a", params=second))
    with pytest.raises(ArgumentError, match="more param blocks"):
        net(data(data=(2, 3)), ip("a", "data", params=[spec(), spec(), spec()]))


def test_two_networks_share_parameters() -> None:
    train, test = small(seed=1), net(data(data=(5, 4)), ip("a", "data"), relu("r", "a"), ip("b", "a"), seed=2)
    test.share_params(train)
    train.params["a"][0].data[...] = 0.5
    assert (test.params["a"][0].data == 0.5).all()
    train.forward(data=X, label=LABELS)
    np.testing.assert_array_equal(test.forward(data=X)["b"], train.blobs["b"].data)
    with pytest.raises(ArrayError, match="do not fit the layer"):
        test.share_params(net(data(data=(1, 5)), ip("a", "data")))


def test_copy_params() -> None:
    one, other = small(seed=1), small(seed=2)
    other.copy_params({name: [p.data for p in params] for name, params in one.params.items()})
    np.testing.assert_array_equal(one.forward(data=X, label=LABELS)["l"], other.forward(data=X, label=LABELS)["l"])
    with pytest.raises(ArrayError, match="do not fit the layer"):
        other.copy_params({"a": [X]})


def test_data_layers() -> None:
    made = Net(
        [Node("data", MemoryData(2, [(4, 1, 1), ()]), [], ["data", "label"]), flatten("f", "data"), ip("a", "f"), loss("l", "a")],
        dtype="float64",
        phase=Phase.TRAIN,
    )
    assert made.inputs == [] and made.sources == {"data": None} and made.batch_size == 2
    with pytest.raises(ArgumentError, match=r'layer "data" \(MemoryData\): the data layer has no data yet'):
        made.forward()
    with pytest.raises(ArgumentError, match=r"net.set_input_arrays\(data, labels\)"):
        made.forward(data=X)
    made.set_input_arrays(RANDOM.normal(size=(4, 4, 1, 1)), np.arange(4).reshape(4, 1, 1, 1) % 3)
    losses = [float(made.forward()["l"]) for _ in range(4)]
    assert losses[:2] == losses[2:] and losses[0] != losses[1]
    source = ArraySource(np.zeros((2, 4, 1, 1)), np.zeros(2))
    made.set_source("data", source)
    assert made.sources["data"] is source
    with pytest.raises(ArgumentError, match="draws no data"):
        made.set_source("a", source)
    with pytest.raises(ArgumentError, match="has no data layer"):
        small().set_input_arrays(X, LABELS)


def test_random_layers_can_be_set_back() -> None:
    made = net(data(data=(2, 40)), dropout("d1", "data", "d1"), dropout("d2", "d1", "d2"))
    x = np.ones((2, 40))
    outs = [made.forward(data=x)["d2"] for _ in range(3)]
    assert made.draws == 3 and not np.array_equal(outs[0], outs[1])
    made.draws = 1
    np.testing.assert_array_equal(made.forward(data=x)["d2"], outs[1])
    assert made.layer("d1").key != made.layer("d2").key


def test_the_seed_decides() -> None:
    one, same, other = small(seed=1), small(seed=1), small(seed=2)
    np.testing.assert_array_equal(one.params["a"][0].data, same.params["a"][0].data)
    assert not np.array_equal(one.params["a"][0].data, other.params["a"][0].data)


def test_memory_is_planned_before_it_is_taken() -> None:
    nodes = (data(data=(2000, 4)), ip("a", "data", outputs=50000))
    with pytest.raises(ArgumentError, match="more memory than it may take") as caught:
        net(*nodes, max_memory=2**20)
    assert caught.value.given["max_memory"] == "1.00 MiB"
    made = net(data(data=(1, 4)), ip("a", "data"), max_memory=2000)
    with pytest.raises(ArgumentError, match="planned <= max_memory"):
        made.forward(data=np.zeros((500, 4)))
    assert made.blobs["data"].shape == (1, 4)
    with pytest.raises(ArgumentError, match="number of bytes"):
        net(*nodes, max_memory="1G")


def test_the_networks_own_memory_is_not_held_against_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is free is asked when the network is made; by the next reshape the network itself is part of what is used."""
    monkeypatch.setattr(memory, "free_memory", lambda: 4000)
    made = net(data(data=(1, 4)), ip("a", "data"))
    monkeypatch.setattr(memory, "free_memory", lambda: 10)
    made.forward(data=np.zeros((20, 4)))
    with pytest.raises(ArgumentError, match="<= 3000 bytes"):
        made.forward(data=np.zeros((100, 4)))


def test_gradients_count_where_they_are_computed() -> None:
    def nodes() -> tuple[Node, ...]:
        return data(data=(2, 4), label=(2,)), ip("a", "data"), loss("l", "a")

    #  data 8, label 2, a 6, loss 1, weights 15 numbers of 8 bytes; gradients of a, loss and the weights besides
    plain, learning = 8 * (8 + 2 + 6 + 1 + 15), 8 * (6 + 1 + 15)
    assert net(*nodes(), max_memory=plain + learning).outputs == ["l"]
    with pytest.raises(ArgumentError, match=f"{plain + learning} <= {plain + learning - 1}"):
        net(*nodes(), max_memory=plain + learning - 1)


def test_no_format_no_file(tmp_path: Any) -> None:
    with pytest.raises(UnsupportedError, match="came from no file"):
        small().save(tmp_path / "x")
    with pytest.raises(UnsupportedError, match="came from no file"):
        small().to_prototxt()


def test_debug_info_reports(caplog: pytest.LogCaptureFixture) -> None:
    made = small(debug_info=True)
    with caplog.at_level(logging.INFO, logger="astride.net"):
        made.forward(data=np.ones((2, 4)), label=LABELS)
        made.backward()
    lines = [record.getMessage() for record in caplog.records]
    assert "[Forward] Layer data, blob data data: 1" in lines
    assert any(line.startswith("[Backward] Layer b, blob a diff: ") for line in lines)


def test_backward_before_forward() -> None:
    with pytest.raises(UnsupportedError, match="backward needs a forward pass"):
        small().backward()


def test_backward_after_a_reshape_wants_a_forward_first() -> None:
    made = small(force_backward=True)
    made.forward(data=X, label=LABELS)
    made.blobs["data"].reshape(3, 4)
    with pytest.raises(ArrayError, match="reshaped after the forward pass"):
        made.backward()
    made.blobs["label"].reshape(3)
    made.forward()
    assert made.backward()["data"].shape == (3, 4)
