"""The graph: splits, blobs in place, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from astride.errors import ArgumentError
from astride.layers.split import Split
from astride.net import Node

from .nets import accuracy, conv, data, flatten, ip, loss, net, relu

RANDOM = np.random.RandomState(2)


def test_a_blob_read_twice_is_split() -> None:
    made = net(data(data=(2, 4), label=(2,)), ip("a", "data"), loss("loss", "a"), accuracy("acc", "a"))
    assert [n.name for n in made.nodes] == ["data", "label_data_1_split", "a", "a_a_0_split", "loss", "acc"]
    assert made.nodes[3].tops == ["a_a_0_split_0", "a_a_0_split_1"]
    assert made.nodes[4].bottoms == ["a_a_0_split_0", "label_data_1_split_0"]
    assert made.inputs == ["data", "label"] and made.outputs == ["acc", "loss"]
    assert np.shares_memory(made.blobs["a"].data, made.blobs["a_a_0_split_1"].data)


def test_an_input_read_twice_is_split_and_its_gradients_summed() -> None:
    made = net(data(data=(2, 4)), ip("a", "data"), ip("b", "data"), force_backward=True)
    made.forward(data=RANDOM.normal(size=(2, 4)))
    both = made.backward(a=np.ones((2, 3)), b=np.full((2, 3), 10.0))["data"]
    weights = [made.params[name][0].data for name in "ab"]
    np.testing.assert_allclose(both, np.ones((2, 3)) @ weights[0] + np.full((2, 3), 10.0) @ weights[1])


def test_readers_after_a_layer_in_place_read_what_it_wrote() -> None:
    made = net(data(data=(2, 4)), ip("a", "data"), relu("relu", "a"), ip("b", "a"), ip("c", "a"))
    assert [n.name for n in made.nodes] == ["data", "a", "relu", "a_relu_0_split", "b", "c"]
    assert made.nodes[2].bottoms == made.nodes[2].tops == ["a"]
    assert made.blobs["a"] is made._parts.tops[2][0]


def test_a_loss_weight_counts_as_a_reader() -> None:
    """The loss that another layer reads, too, keeps its weight on the split's first top."""
    made = net(
        data(data=(2, 4), label=(2,)), ip("a", "data"), loss("l", "a", loss_weights=[2.0]), Node("copy", Split(), ["l"], ["m"])
    )
    split = next(n for n in made.nodes if n.name == "l_l_0_split")
    assert split.loss_weights == [2.0, 0.0] and split.tops == ["l_l_0_split_0", "l_l_0_split_1"]
    outs = made.forward(data=RANDOM.normal(size=(2, 4)), label=[0, 1])
    assert made.loss == 2 * float(outs["l_l_0_split_0"])
    made.backward()
    assert made.params["a"][0].diff.any()


def test_memory_overwritten_in_place_is_not_shared() -> None:
    """Flatten shares its bottom's memory, unless a later layer overwrites its top."""
    x = RANDOM.normal(size=(2, 4, 1))
    shared = net(data(data=(2, 4, 1)), flatten("f", "data"), relu("r", "f", "r"))
    assert np.shares_memory(shared.blobs["f"].data, shared.blobs["data"].data)
    copied = net(data(data=(2, 4, 1)), flatten("f", "data"), relu("r", "f"), ip("again", "data"))
    copied.forward(data=x)
    np.testing.assert_array_equal(copied.blobs["data"].data, x)
    np.testing.assert_array_equal(copied.blobs["f"].data, np.maximum(x, 0).reshape(2, 4))


def test_an_explicit_split_before_a_layer_in_place_copies() -> None:
    made = net(data(data=(2, 4)), Node("s", Split(), ["data"], ["a", "b"]), relu("r", "a"), ip("i", "b"))
    x = RANDOM.normal(size=(2, 4))
    made.forward(data=x)
    np.testing.assert_array_equal(made.blobs["b"].data, x)
    np.testing.assert_array_equal(made.blobs["a"].data, np.maximum(x, 0))


def test_a_loss_without_a_top_has_one_of_its_name() -> None:
    node = loss("loss", "a")
    node.tops = []
    assert net(data(data=(2, 4), label=(2,)), ip("a", "data"), node).outputs == ["loss"]


def test_unknown_bottom() -> None:
    with pytest.raises(ArgumentError, match=r'layer "b" \(InnerProduct\): nobody has made this bottom blob') as caught:
        net(data(data=(2, 4)), ip("conv1", "data"), ip("b", "conv"))
    assert caught.value.hint == 'bottom: "conv1"'
    with pytest.raises(ArgumentError, match='move layer "late"'):
        net(data(data=(2, 4)), ip("b", "late"), ip("late", "data"))


def test_a_top_made_twice() -> None:
    with pytest.raises(ArgumentError, match="two layers make this top"):
        net(data(data=(2, 4)), ip("a", "data", "x"), ip("b", "data", "x"))
    with pytest.raises(ArgumentError, match="two layers make this top"):
        # Somebody else reads the blob as well, so the layer is not in place any more.
        net(data(data=(2, 4)), ip("a", "data"), ip("b", "a"), relu("r", "a"))


def test_in_place_where_it_cannot_be() -> None:
    with pytest.raises(ArgumentError, match="cannot work in place"):
        net(data(data=(2, 4)), ip("a", "data", "data", outputs=4))


def test_a_name_used_twice() -> None:
    with pytest.raises(ArgumentError, match="two layers have this name"):
        net(data(data=(2, 4)), ip("a", "data", "x"), ip("a", "x", "y"))


def test_numbers_of_blobs_and_weights() -> None:
    with pytest.raises(ArgumentError, match="another number of bottoms") as caught:
        net(data(data=(2, 4)), Node("r", relu("r", "x").layer, [], ["y"], line=7))
    assert caught.value.given == {"bottoms": [], "line": 7}
    with pytest.raises(ArgumentError, match="another number of tops"):
        net(data(data=(2, 4)), Node("r", relu("r", "x").layer, ["data"], ["y", "z"]))
    with pytest.raises(ArgumentError, match="loss_weight must be given once for each blob"):
        net(data(data=(2, 4)), ip("a", "data", loss_weights=[1.0, 1.0]))
    with pytest.raises(ArgumentError, match="propagate_down must be given once"):
        net(data(data=(2, 4)), ip("a", "data", propagate_down=[True, True]))


def test_errors_name_layer_type_and_shapes() -> None:
    with pytest.raises(ArgumentError, match=r'layer "c" \(Convolution\)') as caught:
        net(data(data=(2, 3, 2, 2)), conv("c", "data", line=12))
    assert caught.value.given['bottom "data"'] == (2, 3, 2, 2) and caught.value.given["line"] == 12
