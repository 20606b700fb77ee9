"""Single ONNX nodes: how they are read, which outputs they give, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import astride
from astride.like import onnx as like
from astride.onnx import run_node
from astride.onnx.operators import OPERATORS

SIX = np.arange(1, 7, dtype=np.float32).reshape(1, 1, 6)
KINDS = {float: (1, "f"), int: (2, "i"), bytes: (3, "s")}
LISTS = {float: (6, "floats"), int: (7, "ints"), bytes: (8, "strings")}


@dataclass
class Attribute:
    """The fields of an AttributeProto that `run_node` reads."""

    name: str
    type: int
    f: float = 0.0
    i: int = 0
    s: bytes = b""
    floats: list[float] = field(default_factory=list)
    ints: list[int] = field(default_factory=list)
    strings: list[bytes] = field(default_factory=list)


def node(op: str, *outputs: str, domain: str = "", **attributes: Any) -> Any:
    """A stand-in for a NodeProto."""
    made = []
    for name, value in attributes.items():
        kind, where = LISTS[type(value[0])] if isinstance(value, list) else KINDS[type(value)]
        made.append(Attribute(name, kind, **{where: value}))
    return SimpleNamespace(op_type=op, domain=domain, attribute=made, output=list(outputs or ("y",)))


def test_attributes_are_read_by_their_type() -> None:
    windows = node("MaxPool", kernel_shape=[3], strides=[2], auto_pad=b"SAME_LOWER")
    assert run_node(windows, [SIX])[0].tolist() == [[[2, 4, 6]]]
    norm = node("LpPool", kernel_shape=[2], p=1.5)
    want = like.LpPool(SIX, kernel_shape=[2], p=1.5, opset=1)
    assert (run_node(norm, [SIX], 1)[0] == want).all()


def test_attributes_may_be_a_mapping() -> None:
    made = SimpleNamespace(op_type="AveragePool", attribute={"kernel_shape": [3], "pads": [1, 1], "count_include_pad": 1})
    assert run_node(made, [SIX])[0].tolist() == [[[1, 2, 3, 4, 5, np.float32(11 / 3)]]]


def test_indices_only_where_asked() -> None:
    window = dict(kernel_shape=[2], strides=[2])
    assert [a.tolist() for a in run_node(node("MaxPool", "y", "i", **window), [SIX])] == [[[[2, 4, 6]]], [[[1, 3, 5]]]]
    only = run_node(node("MaxPool", "y", "", **window), [SIX])
    assert only[0].tolist() == [[[2, 4, 6]]] and only[1] is None
    assert len(run_node(node("MaxPool", "y", **window), [SIX])) == 1
    with pytest.raises(astride.ArgumentError, match="opset >= 8: 7"):
        run_node(node("MaxPool", "y", "i", **window), [SIX], 7)


def test_an_absent_bias() -> None:
    w, b = np.float32([[[1, 10]]]), np.float32([0.5])
    plain = run_node(node("Conv", kernel_shape=[2]), [SIX, w, None])[0]
    assert (run_node(node("Conv"), [SIX, w])[0] == plain).all()
    assert (run_node(node("Conv"), [SIX, w, b])[0] == plain + np.float32(0.5)).all()


def test_global_forms() -> None:
    x = np.arange(12, dtype=np.float32).reshape(1, 2, 2, 3)
    assert run_node(node("GlobalMaxPool"), [x])[0].reshape(-1).tolist() == [5, 11]
    assert run_node(node("GlobalAveragePool"), [x])[0].reshape(-1).tolist() == [2.5, 8.5]
    assert run_node(node("GlobalLpPool", p=1), [x])[0].reshape(-1).tolist() == [15, 51]


def test_columns_to_an_image() -> None:
    x = np.float32([[[1, 2], [10, 20]]])
    assert run_node(node("Col2Im"), [x, np.array([3]), np.array([2])])[0].tolist() == [[[1, 12, 20]]]
    with pytest.raises(astride.ArgumentError, match="opset >= 18: 17"):
        run_node(node("Col2Im"), [x, np.array([3]), np.array([2])], 17)


def test_whole_numbers() -> None:
    """onnx's own example of ConvInteger."""
    x = np.arange(2, 11, dtype=np.uint8).reshape(1, 1, 3, 3)
    w = np.ones((1, 1, 2, 2), np.uint8)
    y = run_node(node("ConvInteger"), [x, w, np.uint8(1)], 10)[0]
    assert y.dtype == np.int32 and y.tolist() == [[[[12, 16], [24, 28]]]]
    one, zero = np.float32(1), np.uint8(0)
    scaled = run_node(node("QLinearConv"), [x, one, np.uint8(1), w, one, zero, np.float32(4), np.uint8(3)], 10)[0]
    assert scaled.dtype == np.uint8 and scaled.tolist() == [[[[6, 7], [9, 10]]]]
    with pytest.raises(astride.ArgumentError, match="opset >= 10: 9"):
        run_node(node("ConvInteger"), [x, w], 9)


def test_moved_taps() -> None:
    """onnx's own example of DeformConv: one tap half a row further down, one half a column to the left."""
    x, w = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3), np.ones((1, 1, 2, 2), np.float32)
    offset = np.zeros((1, 8, 2, 2), np.float32)
    offset[0, 0, 0, 0], offset[0, 5, 0, 1] = 0.5, -0.1
    assert (
        run_node(node("DeformConv"), [x, w, offset], 19)[0].round(4).tolist() == np.float32([[[[9.5, 11.9], [20, 24]]]]).tolist()
    )
    with pytest.raises(astride.ArgumentError, match="opset >= 19: 18"):
        run_node(node("DeformConv"), [x, w, offset], 18)


@pytest.mark.parametrize("opset", [12, 13])
def test_axes_are_an_attribute_and_from_13_on_an_input(opset: int) -> None:
    def run(op: str, x: Any, axes: list[int]) -> Any:
        made = node(op, axes=axes) if opset < 13 else node(op)
        inputs = [x] if opset < 13 else [x, np.array(axes)]
        return run_node(made, inputs, opset)[0]

    assert run("Unsqueeze", SIX, [0, -1]).shape == (1, 1, 1, 6, 1)
    assert run("Squeeze", SIX, [-2]).shape == (1, 6)
    assert run_node(node("Squeeze"), [SIX], opset)[0].shape == (6,)
    with pytest.raises(astride.ArgumentError, match="only axes of size 1"):
        run("Squeeze", SIX, [2])
    with pytest.raises(astride.ArgumentError, match="named twice"):
        run("Unsqueeze", SIX, [0, 0])


def test_results_are_fresh() -> None:
    for made in (node("Squeeze"), node("MaxPool", kernel_shape=[1])):
        assert not np.shares_memory(run_node(made, [SIX])[0], SIX)


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (node("Relu6"), "Relu6 is not claimed"),
        (node("MaxPool", domain="com.microsoft", kernel_shape=[2]), "no operators of domain 'com.microsoft'"),
        (SimpleNamespace(op_type="MaxPool", attribute=[Attribute("kernel_shape", 5)]), "holds no plain value"),
    ],
)
def test_what_is_not_claimed(made: Any, says: str) -> None:
    with pytest.raises(NotImplementedError, match=says) as raised:
        run_node(made, [SIX])
    assert isinstance(raised.value, astride.UnsupportedError)


@pytest.mark.parametrize(
    ("made", "inputs", "says"),
    [
        (node("MaxPool", kernel_shape=[2], count_include_pad=1), [SIX], "MaxPool has no attribute 'count_include_pad'"),
        (node("MaxPool"), [SIX], "MaxPool needs the attribute 'kernel_shape'"),
        (node("MaxPool", kernel_shape=[2]), [], "inputs missing, or too many"),
        (node("MaxPool", kernel_shape=[2]), [None], "inputs missing, or too many"),
        (node("MaxPool", kernel_shape=[2]), [SIX, SIX], "inputs missing, or too many"),
        (node("MaxPool", kernel_shape=[2, 2]), [SIX], "kernel_shape has another rank than X"),
        (node("MaxPool", kernel_shape=[2], pads=[1]), [SIX], "pads need a begin and an end"),
        (node("MaxPool", kernel_shape=[2], pads=[1, 1], auto_pad=b"VALID"), [SIX], "cannot be used together"),
        (node("MaxPool", kernel_shape=[2], ceil_mode=2), [SIX], "ceil_mode is 0 or 1"),
        (node("MaxPool", kernel_shape=[2], auto_pad=b"SAME"), [SIX], "padding has no such value"),
        (node("Conv", kernel_shape=[3]), [SIX, np.ones((1, 1, 2), np.float32)], "kernel_shape is not W's"),
        (
            node("MaxUnpool", kernel_shape=[1]),
            [SIX, np.arange(6).reshape(1, 1, 6), np.array([1, 2, 6])],
            "another batch, channels",
        ),
    ],
)
def test_what_is_refused(made: Any, inputs: list[Any], says: str) -> None:
    with pytest.raises(astride.ArgumentError, match=says) as raised:
        run_node(made, inputs)
    assert raised.value.operator is not None


def test_every_operator_of_like_onnx_is_claimed() -> None:
    assert set(like.__all__) <= set(OPERATORS)


def test_a_real_node() -> None:
    """The same from the onnx package itself, where it is installed."""
    onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install astride[onnx]")
    made = onnx.helper.make_node("MaxPool", ["x"], ["y", "i"], kernel_shape=[2], strides=[2], auto_pad="SAME_UPPER")
    assert [a.tolist() for a in run_node(made, [SIX])] == [[[[2, 4, 6]]], [[[1, 3, 5]]]]


@pytest.mark.parametrize(
    ("op", "opset"), [("MaxPool", 29), ("Conv", 99), ("Col2Im", 99), ("GlobalMaxPool", 99), ("GlobalMaxPool", "x")]
)
def test_an_opset_newer_than_known(op: str, opset: Any) -> None:
    attribute = {"MaxPool": {"kernel_shape": [2]}}.get(op, {})
    arrays = {"Conv": [SIX, SIX[:, :, :2]], "Col2Im": [SIX, np.array([3]), np.array([2])]}.get(op, [SIX])
    with pytest.raises(astride.ArgumentError, match=r"1 <= opset <= 28: \d+|opset is not a whole number"):
        run_node(SimpleNamespace(op_type=op, attribute=attribute), arrays, opset=opset)
