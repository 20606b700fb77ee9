"""Programs: equal to the network they were compiled from, frozen, with no more memory than needed at a time."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from astride.caffe import load_caffe
from astride.errors import ArgumentError, ArrayError, UnsupportedError
from astride.layers import ArraySource, Blob
from astride.net import Net, Phase, program

from .nets import conv, data, dropout, flatten, ip, loss, net, relu

Array = npt.NDArray[Any]
RANDOM = np.random.RandomState(50)
LENET = str(files("astride.examples") / "lenet" / "lenet.prototxt")


def images(*shape: int) -> Array:
    return RANDOM.normal(size=shape)


def branching() -> Net:
    """A convolution whose output two layers read; in-place layers before and after; Dropout and Flatten, which pass on."""
    return net(
        data(data=(2, 3, 6, 6)),
        conv("c", "data"),
        relu("r", "c"),
        dropout("d", "c", "dropped", training=False),
        flatten("f", "dropped"),
        ip("a", "f"),
        relu("s", "a"),
        flatten("g", "c"),
        ip("b", "g"),
    )


def assert_same(found: dict[str, Array], expected: dict[str, Array]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-6, atol=1e-12, err_msg=name)


def test_lenet() -> None:
    made = load_caffe(LENET, seed=3)
    compiled = made.compile()
    assert (compiled.inputs, compiled.outputs) == (made.inputs, made.outputs)
    for count in (1, 3):
        x = images(count, 1, 28, 28)
        assert_same(compiled(data=x), made.forward(data=x))
    assert "LeNet" in repr(compiled) and "prob" in repr(compiled)


def test_branches_and_layers_in_place() -> None:
    made, x = branching(), images(2, 3, 6, 6)
    compiled = made.compile()
    before = x.copy()
    assert_same(compiled(data=x), made.forward(data=x))
    np.testing.assert_array_equal(x, before)
    assert [step.node.name for step in compiled.steps] == ["c", "f", "a", "s", "g", "b"]


def test_parts_of_a_blob() -> None:
    text = """
    input: "data" input_shape { dim: 2 dim: 6 dim: 3 }
    layer { name: "cut" type: "Slice" bottom: "data" top: "x" top: "y" top: "z" slice_param { slice_point: 1 slice_point: 3 } }
    layer { name: "r" type: "ReLU" bottom: "y" top: "y" }
    layer { name: "join" type: "Concat" bottom: "z" bottom: "y" bottom: "y" top: "joined" }
    layer { name: "quiet" type: "Silence" bottom: "x" }
    """
    made, x = load_caffe(text), images(2, 6, 3)
    assert_same(made.compile()(data=x), made.forward(data=x))


def test_another_size_each_call() -> None:
    made = net(data(data=(1, 3, 8, 8)), conv("c", "data"), relu("r", "c"))
    compiled = made.compile()
    for shape in ((1, 3, 8, 8), (2, 3, 5, 4), (1, 3, 20, 9), (1, 3, 8, 8)):
        x = images(*shape)
        assert_same(compiled(data=x), made.forward(data=x))


@pytest.mark.parametrize("outputs", [["c"], ["dropped"], ["f", "b"], ["a"], ["data"], ["data", "a", "c"], []])
def test_other_outputs(outputs: list[str]) -> None:
    """Blobs inside, one that a layer in place has overwritten, an input; and only the steps they need."""
    made, x = branching(), images(2, 3, 6, 6)
    compiled = made.compile(outputs)
    made.forward(data=x)
    assert_same(compiled(data=x), {name: made.blobs[name].data for name in outputs})
    needed = {"c": 2, "dropped": 2, "f": 3, "a": 5, "b": 4, "data": 0}
    assert len(compiled.steps) <= sum(needed[name] for name in outputs)


def test_outputs_are_the_callers_own() -> None:
    compiled, x = branching().compile(["data", "c"]), images(2, 3, 6, 6)
    first = compiled(data=x)
    kept = {name: value.copy() for name, value in first.items()}
    compiled(data=x * 2)
    assert_same(first, kept)
    first["data"][...] = 7
    assert_same(compiled(data=x), kept)


def test_weights_are_frozen() -> None:
    """Nothing that is written to the network afterwards, not even through a view from before, changes the program."""
    made, x = branching(), images(2, 3, 6, 6)
    view = made.params["c"][0].data
    compiled = made.compile()
    before = compiled(data=x)
    view[...] = 0
    for params in made.params.values():
        for parameter in params:
            parameter.data[...] = 5
    assert_same(compiled(data=x), before)
    assert made.forward(data=x)["a"].max() > before["a"].max()
    for step in compiled.steps:
        for parameter in step.node.layer.params:
            with pytest.raises(ValueError, match="read-only"):
                parameter.data[...] = 0


def test_the_network_is_as_before() -> None:
    """Compiling leaves gradients, sharing of memory and what layers keep untouched."""
    made, x = branching(), images(2, 3, 6, 6)
    out = made.forward(data=x)
    made.compile()(data=x * 3)
    assert_same({name: made.blobs[name].data for name in made.outputs}, out)
    assert made.blobs["f"].memory() == made.blobs["dropped"].memory()
    ones = {name: np.ones_like(value) for name, value in out.items()}
    gradients = made.backward(**ones)
    twin = branching()
    twin.forward(data=x)
    assert_same(gradients, twin.backward(**ones))


# Memory


def count_blobs(monkeypatch: pytest.MonkeyPatch, made: Net, outputs: Sequence[str] | None = None, **inputs: Array) -> int:
    """How many blobs one call makes."""
    blobs: list[Blob] = []

    class Counted(Blob):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            blobs.append(self)

    compiled = made.compile(outputs)
    monkeypatch.setattr(program, "Blob", Counted)
    expected = compiled(**inputs)
    monkeypatch.undo()
    assert_same(compiled(**inputs), expected)
    return len(blobs)


def test_a_chain_of_any_length_needs_two_blobs(monkeypatch: pytest.MonkeyPatch) -> None:
    for length in (2, 9):
        names = ["data", *(f"a{i}" for i in range(length))]
        layers = [ip(top, bottom) for bottom, top in pairwise(names)]
        made = net(data(data=(2, 3)), *layers)
        assert count_blobs(monkeypatch, made, data=images(2, 3)) == 2


def test_a_value_lives_until_its_last_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """data waits for the last layer, so a third blob is needed; an output is kept to the end."""
    chained = 'input: "data" input_shape { dim: 2 dim: 3 } ' + "".join(
        f'layer {{ name: "{y}" type: "ReLU" bottom: "{x}" top: "{y}" }} ' for x, y in pairwise(["data", *"abcd"])
    )
    made = load_caffe(chained + 'layer { name: "sum" type: "Eltwise" bottom: "d" bottom: "data" top: "sum" }')
    assert count_blobs(monkeypatch, made, data=images(2, 3)) == 3
    assert count_blobs(monkeypatch, made, ["a", "sum"], data=images(2, 3)) == 4


def test_a_top_that_nobody_reads_is_free_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
    input: "data" input_shape { dim: 1 dim: 4 dim: 2 }
    layer { name: "cut" type: "Slice" bottom: "data" top: "x" top: "y" }
    layer { name: "r" type: "ReLU" bottom: "x" top: "r" }
    layer { name: "s" type: "ReLU" bottom: "r" top: "s" }
    """
    assert count_blobs(monkeypatch, load_caffe(text), ["s"], data=images(1, 4, 2)) == 3


def test_threads() -> None:
    """Calls at the same time, of different sizes, do not disturb each other."""
    compiled = load_caffe(LENET, seed=3).compile()
    inputs = [images(1 + i % 3, 1, 28, 28) for i in range(12)]
    alone = [compiled(data=x) for x in inputs]
    with ThreadPoolExecutor(4) as pool:
        for found, expected in zip(pool.map(lambda x: compiled(data=x), inputs), alone, strict=True):
            assert_same(found, expected)


def test_a_data_layer_goes_on_drawing() -> None:
    text = """
    layer {
      name: "data" type: "MemoryData" top: "data" top: "label"
      memory_data_param { batch_size: 2 channels: 1 height: 1 width: 1 }
    }
    layer { name: "r" type: "ReLU" bottom: "data" top: "r" }
    """
    made = load_caffe(text)
    made.set_input_arrays(np.arange(4.0).reshape(4, 1, 1, 1), np.zeros(4))
    assert isinstance(made.sources["data"], ArraySource)
    compiled = made.compile(["r"])
    assert [compiled()["r"].reshape(-1).tolist() for _ in range(3)] == [[0, 1], [2, 3], [0, 1]]


# What is refused


def test_a_network_that_trains() -> None:
    made = net(data(data=(2, 4), label=(2,)), ip("a", "data"), loss("l", "a"), phase=Phase.TRAIN)
    with pytest.raises(UnsupportedError, match="phase == TEST: TRAIN"):
        made.compile()


def test_names_that_do_not_exist() -> None:
    made = branching()
    with pytest.raises(ArgumentError, match="no such blob"):
        made.compile(["c", "z"])
    compiled = made.compile()
    for inputs in ({}, {"image": images(1)}, {"data": images(2, 3, 6, 6), "label": images(2)}):
        with pytest.raises(ArgumentError, match="data; missing or unknown"):
            compiled(**inputs)


def test_inputs_that_do_not_fit() -> None:
    compiled = branching().compile()
    with pytest.raises(ArgumentError, match=r'layer "a" \(InnerProduct\)') as caught:
        compiled(data=images(2, 3, 9, 9))
    assert caught.value.given['bottom "f"'] == (2, 2 * 7 * 7)
    with pytest.raises(ArrayError, match="data is not an array of real numbers"):
        compiled(data=np.zeros((2, 3, 6, 6), complex))
    with pytest.raises(ArrayError, match="data is masked"):
        compiled(data=np.ma.masked_greater(images(1, 3, 6, 6), 0))
    assert compiled(data=np.ones((1, 3, 6, 6), int))["a"].dtype == np.float64


def test_one_output_by_its_name() -> None:
    assert branching().compile("b").outputs == ["b"]
