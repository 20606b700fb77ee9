"""What compared rules make of a given input: numbers, marks, and pictures."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from rich.console import Console

from astride.draw import draw_comparison
from astride.errors import ArgumentError
from astride.explain import Comparison, compare, render, to_dict
from astride.explain.numbers import number
from astride.rules import RULES, has

TIED = np.array([1.0, 2, np.nan, 4])


def printed(comparison: Comparison) -> list[str]:
    file = io.StringIO()
    console = Console(file=file, width=80, highlight=False)
    for part in render(comparison):
        console.print(part)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def nans() -> Comparison:
    return compare("max_pool", (4,), ["caffe", "pytorch", "tensorflow", "jax"], kernel=2, input=TIED)


def test_who_wins_and_where_the_gradient_goes() -> None:
    found = {side.rules: side.values for side in nans().sides}
    outputs = {name: values.y.tolist() for name, values in found.items()}  # type: ignore[union-attr]
    assert outputs["caffe"] == outputs["tensorflow"] == [2, 4]
    assert str(outputs["pytorch"]) == str(outputs["jax"]) == "[2.0, nan]"
    gradients = {name: values.dx.tolist() for name, values in found.items()}  # type: ignore[union-attr]
    assert gradients == {"caffe": [0, 1, 0, 1], "pytorch": [0, 1, 1, 0], "tensorflow": [0, 1, 1, 0], "jax": [0, 1, 0, 1]}


def test_places_unlike_the_first_are_marked() -> None:
    caffe, pytorch, *_ = nans().sides
    assert caffe.values is not None and pytorch.values is not None
    assert pytorch.values.differing(caffe.values, "y").tolist() == [False, True]  # type: ignore[union-attr]
    assert pytorch.values.differing(caffe.values, "dx").tolist() == [False, False, True, True]  # type: ignore[union-attr]
    lines = printed(nans())
    assert "  input           1    2  NaN    4" in lines
    assert "  caffe       output     2  4   gradient   0  1  0  1" in lines
    assert "≠ pytorch     output       2 ≠NaN   gradient   0  1 ≠1 ≠0" in lines
    assert [line for line in lines if len(line) > 80] == []


def test_outputs_that_the_first_has_not_got_differ() -> None:
    found = compare("max_pool", (6,), ["pytorch", "caffe"], kernel=3, stride=2, input=np.arange(6.0))
    pytorch, caffe = found.sides
    assert caffe.values is not None and pytorch.values is not None
    assert caffe.values.differing(pytorch.values, "y").tolist() == [False, False, True]  # type: ignore[union-attr]


def test_divisors_show_in_the_gradient() -> None:
    found = compare(
        "avg_pool",
        (3, 3),
        ["caffe", "tensorflow"],
        kernel=3,
        stride=1,
        own={"caffe": {"padding": 1}, "tensorflow": {"padding": "same"}},
        input=np.ones((3, 3)),
    )
    caffe, tensorflow = (side.values for side in found.sides)
    assert caffe is not None and tensorflow is not None and caffe.y is not None and tensorflow.y is not None
    np.testing.assert_allclose(caffe.y, np.array([[4, 6, 4], [6, 9, 6], [4, 6, 4]]) / 9, rtol=1e-6)
    assert (tensorflow.y == 1).all()
    assert sum(line.startswith("≠ tensorflow  output") for line in printed(found)) == 1


def test_convolutions_have_a_kernel_of_ones_in_either_layout() -> None:
    for layout in ("channels_first", "channels_last"):
        found = compare("conv", (4,), ["pytorch", "tensorflow"], kernel=3, layout=layout, input=np.arange(4.0))
        assert [side.values.y.tolist() for side in found.sides] == [[3, 6], [3, 6]]  # type: ignore[union-attr]


def test_large_inputs_are_in_the_data_alone() -> None:
    found = compare("max_pool", (40, 40), ["caffe", "pytorch"], kernel=2, input=np.zeros((40, 40)))
    assert any("this input of 1600 values are in --json" in line for line in printed(found))
    data = to_dict(found)
    assert np.shape(data["rules"][0]["values"]["y"]) == (20, 20) and np.shape(data["input"]) == (40, 40)
    json.dumps(data)


@pytest.mark.parametrize("value", [np.zeros((2, 2, 2, 2)), np.zeros(0), np.array(["a"]), np.float64(3)])
def test_what_is_no_plane(value: object) -> None:
    with pytest.raises(ArgumentError, match="one plane of numbers"):
        compare("max_pool", (4,), ["caffe"], kernel=2, input=value)  # type: ignore[arg-type]


def test_an_input_of_another_size() -> None:
    with pytest.raises(ArgumentError, match="the input has other sizes"):
        compare("max_pool", (5,), ["caffe"], kernel=2, input=TIED)


@pytest.mark.parametrize("op", ["max_pool", "min_pool", "avg_pool", "lp_pool", "stochastic_pool", "conv", "conv_transpose"])
def test_every_rule_of_every_operator(op: str) -> None:
    names = [name for name in RULES if has(name, op)]
    found = compare(op, (9, 9), names, kernel=3, stride=2, input=np.arange(81.0).reshape(9, 9))
    for side in found.answered:
        assert side.values is not None and side.values.error is None and side.values.y is not None
        assert side.values.y.shape == tuple(axis.size if op == "conv_transpose" else axis.out for axis in side.axes)
        assert side.values.dx is not None and side.values.dx.shape == (9, 9)
    assert printed(found)


def test_operators_of_another_input_are_compared_without_numbers() -> None:
    found = compare("max_unpool", (2, 2), ["pytorch", "onnx"], kernel=2, input=np.ones((2, 2)))
    assert all(side.values is not None and side.values.y is None for side in found.sides)
    assert any("more than this input" in line for line in printed(found))


def test_the_picture_shows_the_numbers() -> None:
    svg = draw_comparison(nans()).svg()
    assert svg.count(">NaN<") == 4 and "What becomes of the input" in svg and "gradient of its sum" in svg
    plain = draw_comparison(compare("max_pool", (4,), ["caffe", "pytorch"], kernel=2)).svg()
    assert "What becomes of the input" not in plain


def test_what_is_unverified_is_said_once() -> None:
    lines = printed(compare("avg_pool", 8, ["caffe", "coreml", "mps"], kernel=2))
    assert "unverified: read, not seen to be so" in lines
    text = " ".join(" ".join(lines).split())
    assert "coreml" in text and "nothing of MPS could be run (unverified)" in text
    assert "unverified" not in "".join(printed(compare("avg_pool", 8, ["caffe", "pytorch"], kernel=2)))


def test_numbers_are_short() -> None:
    lowest = float(np.finfo(np.float32).min)
    assert [number(v) for v in (1 / 3, -0.0, 0.0, 12345.6, lowest, np.nan, -np.inf)] == [
        "0.3333", "-0", "0", "1.235e+04", "-FLT_MAX", "NaN", "-inf",
    ]  # fmt: skip
