"""What compared rules make of a given input: numbers, marks, and pictures."""

from __future__ import annotations

import io
import json
from typing import Any

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


OTHERS = [
    ("max_unpool", {"kernel": 2}, [[1, 2]], [[1, 0, 2, 0], [0, 0, 0, 0]], [[1, 1]]),
    ("max_unpool", {"kernel": 2, "indices": (0, 3)}, [[1, 2]], [[1, 0, 0, 2], [0, 0, 0, 0]], [[1, 1]]),
    ("max_unpool", {"kernel": 3, "stride": 2, "indices": (2, 2)}, [5, 6], [0, 0, 6, 0, 0], [1, 1]),
    ("unfold", {"kernel": 2, "padding": 1}, [1, 2, 3], [[0, 1, 2, 3], [1, 2, 3, 0]], [2, 2, 2]),
    ("unfold", {"kernel": 2}, [[1, 2], [3, 4]], [[1], [2], [3], [4]], [[1, 1], [1, 1]]),
    ("window_reduce", {"kernel": 3, "stride": 2, "function": "median"}, [1, 5, 2, 0, 9], [2, 2], [0, 0, 2, 0, 0]),
    ("global_pool", {"reduce": "max"}, [[1, 5], [5, 2]], [[5]], [[0, 1], [0, 0]]),
    ("fractional_pool", {"kernel": 2, "output_size": 2, "samples": 0.5}, [4, 3, 2, 1], [4, 2], [1, 0, 1, 0]),
    ("stochastic_pool", {"kernel": 2, "training": True, "uniform": 0.3}, [1, 3, 3, 1], [3, 3], [0, 1, 1, 0]),
    ("adaptive_pool", {"output_size": 2}, [1, 2, 6], [1.5, 4], [0.5, 1, 0.5]),
    ("deform_conv", {"kernel": 1, "offset": 0.5}, [2, 4, 8], [3, 6, 4], [0.5, 1, 1]),
    ("conv_integer", {"kernel": 3, "padding": 1, "x_zero_point": 1}, [1, 2, 3], [1, 3, 3], None),
]


@pytest.mark.parametrize(("op", "given", "x", "y", "dx"), OTHERS, ids=lambda value: str(value)[:30])
@pytest.mark.parametrize("layout", ["channels_first", "channels_last"])
def test_values_of_every_other_operator(op: str, given: dict[str, Any], x: Any, y: Any, dx: Any, layout: str) -> None:
    """Computed by hand. Every framework that answers agrees."""
    rules = ["explicit", "caffe", "pytorch", "onnx"]
    found = compare(op, np.shape(x), rules, input=np.array(x, float), layout=layout, **given)
    assert found.answered
    for side in found.answered:
        assert side.values is not None and side.values.error is None, side.values
        assert np.asarray(side.values.y).tolist() == y
        assert (None if side.values.dx is None else side.values.dx.tolist()) == dx


@pytest.mark.parametrize("layout", ["channels_first", "channels_last"])
def test_fold_takes_columns(layout: str) -> None:
    columns = np.array([[1.0, 2.0], [10.0, 20.0]])
    (side,) = compare("fold", 3, ["pytorch"], rank=1, kernel=2, input=columns, layout=layout).sides
    assert side.values is not None and side.values.y is not None and side.values.dx is not None
    assert side.values.y.tolist() == [1, 12, 20] and side.values.dx.tolist() == [[1, 1], [1, 1]]
    other = compare("fold", 3, ["pytorch"], rank=1, kernel=2, input=np.ones((3, 2)))
    assert "(taps, windows) == (2, 2)" in " ".join(" ".join(printed(other)).split())


def test_numbers_that_an_operator_refuses() -> None:
    with pytest.raises(ArgumentError, match="global_pool has no kernel"):
        compare("global_pool", 4, kernel=2)
    with pytest.raises(ArgumentError, match="median"):
        compare("window_reduce", 4, kernel=2, function="medain")
    with pytest.raises(ArgumentError, match="one of max, min, average, lp"):
        compare("global_pool", 4, reduce="mean")
    (side,) = compare("max_unpool", 2, ["pytorch"], rank=1, kernel=2, input=np.ones(2), indices=(0,)).sides
    assert side.values is not None and "every value needs an index" in str(side.values.error)
    assert "output_size is not given" in str(compare("adaptive_pool", 8, ["pytorch"]).sides[0].error)


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
