"""Folding: layers that scale and shift channels become part of the weights before them, and nothing else does."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import astride
from astride.caffe import load_caffe
from astride.net import Net

Array = npt.NDArray[Any]
RANDOM = np.random.RandomState(51)

FILLERS = 'weight_filler { type: "gaussian" std: 0.5 } bias_filler { type: "gaussian" }'
LINEAR = {
    "Convolution": f"convolution_param {{ num_output: 4 kernel_size: 3 pad: 1 {FILLERS} }}",
    "Convolution without bias": f"convolution_param {{ num_output: 4 kernel_size: 3 bias_term: false {FILLERS} }}",
    "Convolution in groups": f"convolution_param {{ num_output: 4 kernel_size: 3 group: 2 {FILLERS} }}",
    "Deconvolution": f"convolution_param {{ num_output: 6 kernel_size: 2 stride: 2 {FILLERS} }}",
    "Deconvolution in groups": f"convolution_param {{ num_output: 6 kernel_size: 3 group: 2 bias_term: false {FILLERS} }}",
    "InnerProduct": f"inner_product_param {{ num_output: 4 {FILLERS} }}",
    "InnerProduct transposed": f"inner_product_param {{ num_output: 4 transpose: true bias_term: false {FILLERS} }}",
}
"""Four input channels."""


def layer(name: str, kind: str, bottom: str, top: str | None = None, fields: str = "") -> str:
    return f'layer {{ name: "{name}" type: "{kind}" bottom: "{bottom}" top: "{top or bottom}" {fields} }}\n'


def linear(name: str, fields: str | None = None) -> str:
    return layer("linear", name.split()[0], "data", "y", LINEAR[name] if fields is None else fields)


BATCH_NORM = layer("bn", "BatchNorm", "y")
SCALE = layer("scale", "Scale", "y", fields="scale_param { bias_term: true }")
RELU = layer("relu", "ReLU", "y")


def network(*layers: str, more: str = "") -> Net:
    """With statistics and scales that are no ones and zeros."""
    made = load_caffe('input: "data" input_shape { dim: 2 dim: 4 dim: 5 dim: 5 } ' + more + "".join(layers), seed=1)
    for name, params in made.params.items():
        if name != "linear":
            for parameter in params:
                parameter.data[...] = RANDOM.uniform(0.5, 2, parameter.shape)
    return made


def assert_equal(made: Net, outputs: list[str] | None = None) -> list[tuple[str, str]]:
    """The program gives what the network gives, within 1e-5 of the largest value. What was folded."""
    program = made.compile(outputs)
    inputs = {name: RANDOM.normal(size=made.blobs[name].shape).astype(np.float32) for name in made.inputs}
    made.forward(**inputs)
    for name, found in program(**inputs).items():
        expected = made.blobs[name].data
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max(), err_msg=name)
    return program.folded


@pytest.mark.parametrize("name", LINEAR)
def test_batch_norm_and_scale_fold(name: str) -> None:
    made = network(linear(name), BATCH_NORM, SCALE, RELU)
    convolves = not name.startswith("InnerProduct")
    assert assert_equal(made) == [(gone, "linear") for gone in ["bn", "scale", *["relu"] * convolves]]
    assert [step.node.name for step in made.compile().steps] == (["linear"] if convolves else ["linear", "relu"])


@pytest.mark.parametrize("name", ["Convolution", "Deconvolution in groups", "InnerProduct"])
@pytest.mark.parametrize(
    ("text", "folds"),
    [
        (layer("next", "Scale", "y", "z"), True),
        (layer("next", "Bias", "y"), True),
        (layer("next", "BatchNorm", "y", "z"), True),
        (layer("next", "Power", "y", "z", "power_param { scale: -2 shift: 3 }"), True),
        (layer("next", "Power", "y", "z", "power_param { power: 2 }"), False),
        (layer("next", "BatchNorm", "y", "z", "batch_norm_param { use_global_stats: false }"), False),
        (layer("next", "Scale", "y", "z", "scale_param { num_axes: 0 }"), False),
        (layer("next", "Scale", "y", "z", "scale_param { axis: 0 }"), False),
    ],
)
def test_which_layers_fold(name: str, text: str, folds: bool) -> None:
    assert assert_equal(network(linear(name), text)) == ([("next", "linear")] if folds else [])


def test_an_untrained_batch_norm() -> None:
    """A weight of 0 stands for mean = variance = 0."""
    made = network(linear("Convolution"), BATCH_NORM)
    for parameter in made.params["bn"]:
        parameter.data.fill(0)
    assert assert_equal(made) == [("bn", "linear")]


def test_two_readers_keep_the_value_between_them() -> None:
    made = network(linear("Convolution"), layer("bn", "BatchNorm", "y", "n"), layer("other", "ReLU", "y", "o"))
    assert assert_equal(made) == []


def test_an_output_is_not_folded_away() -> None:
    made = network(linear("Convolution"), layer("bn", "BatchNorm", "y", "n"), layer("scale", "Scale", "n", "s"))
    assert assert_equal(made, ["y", "s"]) == []
    assert assert_equal(made, ["n", "s"]) == [("bn", "linear")]
    assert assert_equal(made, ["s"]) == [("bn", "linear"), ("scale", "linear")]


def test_a_rectifier_between_stops_it() -> None:
    assert assert_equal(network(linear("Convolution"), RELU, BATCH_NORM)) == [("relu", "linear")]


@pytest.mark.parametrize("backend", ["reference", "auto"])
@pytest.mark.parametrize("name", ["Convolution", "Deconvolution in groups"])
def test_a_rectifier_is_stored_by_the_convolution(name: str, backend: str) -> None:
    made, x = network(linear(name), RELU), RANDOM.normal(size=(2, 4, 5, 5)).astype(np.float32)
    program = made.compile()
    assert program.folded == [("relu", "linear")] and len(program.steps) == 1
    with astride.use(backend=backend):
        made.forward(data=x)
        found = program(data=x)["y"]
    assert (found == 0).any() and np.array_equal(found, made.blobs["y"].data)


ACTIVATIONS = {
    "leaky": layer("last", "ReLU", "y", fields="relu_param { negative_slope: 0.1 }"),
    "six": layer("last", "ReLU6", "y", "z"),
    "clip": layer("last", "Clip", "y", fields="clip_param { min: -0.5 max: 0.25 }"),
}


@pytest.mark.parametrize("backend", ["reference", "auto"])
@pytest.mark.parametrize("name", ["Convolution", "Deconvolution in groups"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations_are_stored_by_the_convolution(activation: str, name: str, backend: str) -> None:
    made, x = network(linear(name), ACTIVATIONS[activation]), RANDOM.normal(size=(2, 4, 5, 5)).astype(np.float32)
    x[0, 1, 2, 3] = np.nan
    program, y = made.compile(), made.outputs[0]
    assert program.folded == [("last", "linear")] and len(program.steps) == 1
    with astride.use(backend=backend):
        made.forward(data=x)
        found = program(data=x)[y]
    assert found.tobytes() == made.blobs[y].data.tobytes() and (activation == "clip") != np.isnan(found).any()


def test_a_second_activation_stays() -> None:
    made = network(linear("Convolution"), RELU, layer("clip", "Clip", "y", fields="clip_param { min: -1 max: 1 }"))
    assert assert_equal(made) == [("relu", "linear")]


def test_an_inner_product_keeps_its_activation() -> None:
    assert assert_equal(network(linear("InnerProduct"), ACTIVATIONS["leaky"])) == []


def test_a_second_bottom_does_not_fold() -> None:
    made = network(
        linear("Convolution"),
        'layer { name: "s" type: "Scale" bottom: "y" bottom: "by" top: "z" scale_param { axis: 0 } }',
        more='input: "by" input_shape { dim: 2 dim: 4 } ',
    )
    assert assert_equal(made) == []


def test_a_convolution_of_two_bottoms_does_not_fold() -> None:
    text = (
        f'layer {{ name: "linear" type: "Convolution" bottom: "data" bottom: "again" top: "y" top: "z" {LINEAR["Convolution"]} }}'
    )
    made = network(text, BATCH_NORM, more='input: "again" input_shape { dim: 2 dim: 4 dim: 5 dim: 5 } ')
    assert assert_equal(made) == []


def test_another_axis_does_not_fold() -> None:
    fields = f"inner_product_param {{ num_output: 4 axis: 2 {FILLERS} }}"
    assert assert_equal(network(linear("InnerProduct", fields), BATCH_NORM)) == []


def test_nothing_before_it() -> None:
    assert assert_equal(network(layer("bn", "BatchNorm", "data", "y"))) == []


def test_dropout_and_split_do_not_stand_between() -> None:
    """Both pass on what they get, so the batch norm is right behind the convolution."""
    made = network(linear("Convolution"), layer("drop", "Dropout", "y"), BATCH_NORM)
    assert assert_equal(made) == [("bn", "linear")]


def test_shared_weights_fold_each_for_itself() -> None:
    fields = f'{LINEAR["Convolution"]} param {{ name: "w" }} param {{ name: "b" }}'
    made = network(
        layer("one", "Convolution", "data", "y", fields),
        layer("two", "Convolution", "data", "z", fields),
        BATCH_NORM,
        layer("rest", "ReLU", "z", "r"),
    )
    assert assert_equal(made) == [("bn", "one"), ("rest", "two")]


def test_a_residual_block() -> None:
    made = network(
        linear("Convolution"),
        BATCH_NORM,
        SCALE,
        'layer { name: "sum" type: "Eltwise" bottom: "data" bottom: "y" top: "sum" }\n',
        layer("last", "ReLU", "sum"),
    )
    assert assert_equal(made) == [(gone, "linear") for gone in ["bn", "scale", "sum", "last"]]
    assert len(made.compile().steps) == 1


def summed(a: str, b: str, fields: str = "") -> str:
    return f'layer {{ name: "sum" type: "Eltwise" bottom: "{a}" bottom: "{b}" top: "sum" {fields} }}\n'


SHORTCUT = layer("short", "Convolution", "data", "s", LINEAR["Convolution"])


@pytest.mark.parametrize("backend", ["reference", "auto"])
@pytest.mark.parametrize("order", ["first", "last"])
@pytest.mark.parametrize("activation", ["", *ACTIVATIONS])
def test_a_sum_is_stored_by_the_later_convolution(activation: str, order: str, backend: str) -> None:
    """The same to the last bit."""
    text = linear("Convolution"), SHORTCUT, summed(*(("y", "s") if order == "first" else ("s", "y")))
    then = [ACTIVATIONS[activation].replace('"y"', '"sum"')] if activation else []
    made, x = network(*text, *then), RANDOM.normal(size=(2, 4, 5, 5)).astype(np.float32)
    program, y = made.compile(), made.outputs[0]
    assert program.folded == [("sum", "short"), *[("last", "short")] * len(then)]
    with astride.use(backend=backend):
        made.forward(data=x)
        found = program(data=x)[y]
    assert found.tobytes() == made.blobs[y].data.tobytes()


@pytest.mark.parametrize(
    "layers",
    [
        (summed("data", "y", "eltwise_param { coeff: 1 coeff: -1 }"),),
        (summed("data", "y", "eltwise_param { operation: MAX }"),),
        (summed("y", "y"),),
        (summed("data", "y"), layer("other", "ReLU", "y", "o")),
        ('layer { name: "sum" type: "Eltwise" bottom: "data" bottom: "y" bottom: "data" top: "sum" }\n',),
        (layer("later", "ReLU", "data", "late"), summed("late", "y")),
    ],
)
def test_which_sums_stay(layers: tuple[str, ...]) -> None:
    assert assert_equal(network(linear("Convolution"), *layers)) == []


def test_a_sum_with_coefficients_of_one() -> None:
    made = network(
        linear("Convolution"), summed("data", "y", "eltwise_param { coeff: 1 coeff: 1 }"), BATCH_NORM.replace('"y"', '"sum"')
    )
    assert assert_equal(made) == [("sum", "linear")]


def test_folded_weights_are_frozen_and_the_networks_untouched() -> None:
    made = network(linear("Convolution"), BATCH_NORM, SCALE)
    before = [p.data.copy() for params in made.params.values() for p in params]
    program = made.compile()
    for parameter in program.steps[0].node.layer.params:
        with pytest.raises(ValueError, match="read-only"):
            parameter.data[...] = 0
    for parameter, kept in zip((p for params in made.params.values() for p in params), before, strict=True):
        np.testing.assert_array_equal(parameter.data, kept)
