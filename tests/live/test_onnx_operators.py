"""Random nodes of the remaining window operators in the installed ONNX Runtime: the same results as by astride.onnx.run_node."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.compare import assert_near, assert_same
from tests.live.test_onnxruntime_rules import BLOCK, Node, several, theirs

import astride

pytestmark = pytest.mark.live

SAMPLE, SWEEP = 40, 1200
BYTES = ("uint8", "int8")


def regions(rng: np.random.Generator) -> Node:
    """RoiAlign; ONNX Runtime refuses regions of negative size where it has to count their points."""
    count = int(rng.integers(1, 4))
    x = rng.normal(size=(2, 2, *several(rng, 2, 2, 7))).astype("float32")
    corners = rng.uniform(-2, 9, (count, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(0, 6, (count, 2))], axis=1).astype("float32")
    attributes: dict[str, Any] = {
        "output_height": int(rng.integers(1, 4)),
        "output_width": int(rng.integers(1, 4)),
        "sampling_ratio": int(rng.integers(0, 3)),
        "spatial_scale": float(rng.choice([0.5, 1.0])),
        "mode": str(rng.choice(["avg", "max"])),
    }
    opset = int(rng.choice([10, 16, 21]))
    if opset >= 16 and rng.random() < 0.5:
        attributes["coordinate_transformation_mode"] = str(rng.choice(["half_pixel", "output_half_pixel"]))
    return Node("RoiAlign", (x, boxes, rng.integers(0, 2, count)), attributes, opset)


def whole_numbers(rng: np.random.Generator) -> Node:
    """ConvInteger or QLinearConv; ONNX Runtime has not every pairing of signed and unsigned numbers."""
    x_type, w_type = (str(t) for t in rng.choice(BYTES, 2))
    group, rank = int(rng.integers(1, 3)), int(rng.integers(1, 4))

    def numbers(kind: str, shape: Any) -> Any:
        limits = np.iinfo(kind)
        return rng.integers(limits.min, limits.max + 1, shape).astype(kind)

    x = numbers(x_type, (2, 2 * group, *several(rng, rank, 3, 6)))
    w = numbers(w_type, (2 * group, 2, *several(rng, rank, 1, 2)))
    if w_type == "int8":
        # On CPUs without VNNI, ONNX Runtime adds two products with int8 in 16 bits, which full weights overflow.
        w = (w // 2).astype(w_type)
    attributes = {"strides": several(rng, rank, 1, 2), "pads": several(rng, 2 * rank, 0, 1), "group": group}
    zeros = numbers(x_type, ()), numbers(w_type, ())
    if rng.random() < 0.5:
        return Node("ConvInteger", (x, w, *zeros), attributes, 10)
    scales = [np.array(rng.uniform(low, high), "float32") for low, high in ((0.001, 0.1), (0.001, 0.1), (0.01, 1))]
    inputs = (x, scales[0], zeros[0], w, scales[1], zeros[1], scales[2], numbers(x_type, ()))
    return Node("QLinearConv", inputs, attributes, 10)


def moved(rng: np.random.Generator) -> Node:
    """DeformConv over two axes."""
    group, parts = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    kernel, sizes = several(rng, 2, 1, 3), several(rng, 2, 3, 6)
    strides, pads, dilations = several(rng, 2, 1, 2), several(rng, 4, 0, 1), several(rng, 2, 1, 2)
    out = [
        (n + pads[a] + pads[a + 2] - (k - 1) * d - 1) // s + 1
        for a, (n, k, s, d) in enumerate(zip(sizes, kernel, strides, dilations, strict=True))
    ]
    if min(out) < 1:
        return moved(rng)
    taps = kernel[0] * kernel[1]
    x = rng.normal(size=(2, 2 * group * parts, *sizes)).astype("float32")
    w = rng.normal(size=(2 * group, 2 * parts, *kernel)).astype("float32")
    offset = rng.normal(size=(2, parts * taps * 2, *out)).astype("float32")
    inputs: tuple[Any, ...] = (x, w, offset)
    if rng.random() < 0.5:
        inputs += (rng.normal(size=2 * group).astype("float32"), rng.uniform(size=(2, parts * taps, *out)).astype("float32"))
    attributes = {"strides": strides, "pads": pads, "dilations": dilations, "group": group, "offset_group": parts}
    return Node("DeformConv", inputs, attributes, 19)


MAKERS = {"RoiAlign": regions, "ConvInteger": whole_numbers, "DeformConv": moved}


def assert_alike(node: Node) -> bool:
    """Whether ONNX Runtime took the node; then with equal results."""
    want = theirs(node)
    if isinstance(want, Exception):
        return False
    made = SimpleNamespace(op_type=node.op, attribute=node.attributes)
    (got,) = astride.onnx.run_node(made, list(node.inputs), node.opset)
    if got.dtype.kind == "f":
        assert_near(got, want[0], 1e-5, str(node), scale=1.0)
    else:
        assert_same(got, want[0], str(node))
    return True


@pytest.mark.parametrize("op", MAKERS)
def test_a_sample(op: str) -> None:
    taken = sum(assert_alike(MAKERS[op](np.random.default_rng([seed, *op.encode()]))) for seed in range(SAMPLE))
    assert taken > SAMPLE // 3


@pytest.mark.conformance
@pytest.mark.parametrize("block", range(SWEEP // BLOCK))
@pytest.mark.parametrize("op", MAKERS)
def test_the_sweep(op: str, block: int) -> None:
    for seed in range(SAMPLE + block * BLOCK, SAMPLE + (block + 1) * BLOCK):
        assert_alike(MAKERS[op](np.random.default_rng([seed, *op.encode()])))
