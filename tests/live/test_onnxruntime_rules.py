"""Random nodes in the installed ONNX Runtime: the same results, indices and refusals as by its release's rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.compare import assert_near, assert_same
from tests.rules import cases_onnxruntime

import astride

onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install astride[peers]")
ort = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed: pip install astride[peers]")

pytestmark = pytest.mark.live

OPSETS = (11, 18, 19, 21)
SAMPLE, SWEEP, BLOCK = 60, 2100, 60
POOLS = ("MaxPool", "AveragePool", "LpPool")
OPERATORS = (*POOLS, "Conv", "ConvTranspose", "MaxUnpool")
NUMPY_SAYS = "ignore:(invalid value|overflow|divide by zero) encountered:RuntimeWarning"


@dataclass(frozen=True)
class Node:
    """One node and its inputs; `outputs` are those asked for."""

    op: str
    inputs: tuple[Any, ...]
    attributes: dict[str, Any]
    opset: int
    outputs: int = 1

    def __str__(self) -> str:
        return f"{self.op} (opset {self.opset}) of {[a.shape for a in self.inputs]}, {self.attributes}"


def theirs(node: Node) -> list[Any] | Exception:
    """The outputs of a model of one node, or what was raised."""
    names, results = [f"i{n}" for n in range(len(node.inputs))], [f"o{n}" for n in range(node.outputs)]
    made = onnx.helper.make_node(node.op, names, results, **node.attributes)
    kinds = [onnx.helper.np_dtype_to_tensor_dtype(a.dtype) for a in node.inputs]
    graph = onnx.helper.make_graph(
        [made],
        "one",
        [onnx.helper.make_tensor_value_info(n, k, a.shape) for n, k, a in zip(names, kinds, node.inputs, strict=True)],
        [onnx.helper.make_empty_tensor_value_info(n) for n in results],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", node.opset)], ir_version=9)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return list(session.run(None, dict(zip(names, node.inputs, strict=True))))
    except Exception as error:  # whatever class the runtime has for a node it refuses
        return error


def mine(node: Node) -> list[Any] | Exception:
    """The same by rules="onnxruntime" of the installed release."""
    x, *others = node.inputs
    case: dict[str, Any] = {"op": node.op, "params": {**node.attributes, "opset": node.opset}, "version": ort.__version__}
    case |= {"input": x.tolist(), "input_shape": list(x.shape), "input_dtype": x.dtype.name}
    case["other_inputs"] = [a.tolist() for a in others]
    case["indices"] = [] if node.outputs > 1 else None
    call = cases_onnxruntime.call_of(case)
    try:
        y = call.fn(*call.arrays, **call.arguments, **({"return_indices": True} if node.outputs > 1 else {}))
    except astride.AstrideError as error:
        return error
    return list(y) if isinstance(y, tuple) else [y]


def several(rng: np.random.Generator, count: int, low: int, high: int) -> list[int]:
    return [int(n) for n in rng.integers(low, high + 1, count)]


def pool(op: str, rng: np.random.Generator) -> Node:
    opset = int(rng.choice(OPSETS))
    rank = int(rng.choice([1, 2, 2, 3]))
    attributes: dict[str, Any] = {"kernel_shape": several(rng, rank, 1, 3), "strides": several(rng, rank, 1, 3)}
    if rng.random() < 0.4 and (op == "MaxPool" or opset >= 19):
        attributes["dilations"] = several(rng, rank, 1, 2)
    if op != "LpPool" or opset >= 18:
        attributes["ceil_mode"] = int(rng.integers(0, 2))
    if rng.random() < 0.3:
        attributes["auto_pad"] = str(rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"]))
    elif rng.random() < 0.8:
        attributes["pads"] = [int(rng.integers(0, k + (rng.random() < 0.1))) for k in attributes["kernel_shape"] * 2]
    x = rng.integers(-5, 6, (2, 2, *several(rng, rank, 2, 7))).astype("float32")
    if op == "AveragePool":
        attributes["count_include_pad"] = int(rng.integers(0, 2))
    if op == "LpPool":
        attributes["p"] = int(rng.integers(1, 4))
    if op != "MaxPool" or rng.random() < 0.3:
        return Node(op, (x,), attributes, opset)
    if rng.random() < 0.5:  # with one output, what a NaN does is up to the lanes
        x = np.where(rng.random(x.shape) < 0.4, rng.choice(np.array([np.nan, np.inf, -np.inf], "float32"), x.shape), x)
    attributes["storage_order"] = int(rng.integers(0, 2))
    return Node(op, (x,), attributes, opset, 2)


def conv(op: str, rng: np.random.Generator) -> Node:
    rank = int(rng.choice([1, 2, 2, 3]))
    group = int(rng.integers(1, 3))
    kernel = several(rng, rank, 1, 3)
    attributes: dict[str, Any] = {"strides": several(rng, rank, 1, 3), "group": group}
    if rng.random() < 0.3:
        attributes["dilations"] = several(rng, rank, 1, 2)
    if rng.random() < 0.3:
        attributes["auto_pad"] = str(rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"]))
    elif rng.random() < 0.7:
        attributes["pads"] = several(rng, 2 * rank, -1 if rng.random() < 0.1 else 0, 2)
    sizes = several(rng, rank, 1, 6)
    if op == "ConvTranspose":
        if rng.random() < 0.3:
            attributes["output_padding"] = several(rng, rank, 0, 2)
        if rng.random() < 0.3:
            full = [(n - 1) * s + k for n, s, k in zip(sizes, attributes["strides"], kernel, strict=True)]
            attributes["output_shape"] = [max(1, f + int(rng.integers(-3, 3))) for f in full]
    x = rng.integers(-5, 6, (2, 2 * group, *sizes)).astype("float32")
    shape = (3 * group, 2, *kernel) if op == "Conv" else (2 * group, 3, *kernel)
    return Node(op, (x, rng.integers(-3, 4, shape).astype("float32")), attributes, int(rng.choice(OPSETS)))


def unpool(op: str, rng: np.random.Generator) -> Node:
    rank = int(rng.choice([1, 2, 2, 3]))
    kernel, strides, sizes = several(rng, rank, 1, 3), several(rng, rank, 1, 3), several(rng, rank, 1, 4)
    x = rng.integers(-5, 6, (2, 2, *sizes)).astype("float32")
    out = [(n - 1) * s + k for n, s, k in zip(sizes, strides, kernel, strict=True)]
    shape: list[Any] = []
    if rng.random() < 0.4:
        out = [n + int(rng.integers(-1 if rng.random() < 0.1 else 0, 3)) for n in out]
        shape = [np.array([2, 2, *out], "int64")]
    places = rng.integers(0, max(4 * int(np.prod(out)) + int(rng.random() < 0.1), 1), x.shape)
    return Node(op, (x, places, *shape), {"kernel_shape": kernel, "strides": strides}, int(rng.choice(OPSETS)))


MAKERS = {**dict.fromkeys(POOLS, pool), "Conv": conv, "ConvTranspose": conv, "MaxUnpool": unpool}


def node_of(op: str, seed: int) -> Node:
    return MAKERS[op](op, np.random.default_rng([seed, *op.encode()]))


def assert_alike(node: Node) -> bool:
    """Whether both took the node, with equal results."""
    want, got = theirs(node), mine(node)
    if isinstance(want, list) and min(want[0].shape) == 0:
        assert isinstance(got, Exception), f"{node}: an output of nothing"
        return False
    if "that a negative end pad crops" in str(got):
        return False
    if isinstance(want, Exception) or isinstance(got, Exception):
        assert isinstance(want, Exception) and isinstance(got, Exception), f"{node}\n  theirs {want}\n  ours {got}"
        return False
    assert_near(got[0], want[0], 1e-5, str(node))
    if node.outputs > 1:
        assert_same(got[1], want[1], f"{node}, Indices")
    return True


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.filterwarnings(NUMPY_SAYS)
def test_a_sample(op: str) -> None:
    assert sum(assert_alike(node_of(op, seed)) for seed in range(SAMPLE)) > SAMPLE // 3


@pytest.mark.conformance
@pytest.mark.parametrize("block", range(SWEEP // BLOCK))
@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.filterwarnings(NUMPY_SAYS)
def test_the_sweep(op: str, block: int) -> None:
    for seed in range(SAMPLE + block * BLOCK, SAMPLE + (block + 1) * BLOCK):
        assert_alike(node_of(op, seed))


def test_a_difference_is_found() -> None:
    node = Node("MaxPool", (np.arange(6, dtype="float32").reshape(1, 1, 6),), {"kernel_shape": [2], "strides": [1]}, 21)
    assert assert_alike(node)
    right = theirs(node)
    assert isinstance(right, list)
    with pytest.raises(AssertionError):
        assert_near(right[0] + 1, right[0], 1e-5)
