"""Random deformable and integer convolutions against the installed ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.compare import assert_near, assert_same

import astride

onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install astride[peers]")
ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install astride[peers]")

pytestmark = pytest.mark.live

SAMPLE, SWEEP = 25, 2000
OPSET = 19


def computed(operator: str, inputs: list[Any], output: int, **attributes: Any) -> Any:
    """One node by ONNX Runtime on the CPU; None where an input is absent."""
    h = onnx.helper
    names = ["" if a is None else f"i{i}" for i, a in enumerate(inputs)]
    given = {name: a for name, a in zip(names, inputs, strict=True) if a is not None}
    values = [h.make_tensor_value_info(n, h.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in given.items()]
    node = h.make_node(operator, names, ["y"], **attributes)
    graph = h.make_graph([node], "one", values, [h.make_tensor_value_info("y", output, None)])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", OPSET)], ir_version=9)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, given)[0]


def geometry(rng: np.random.Generator, rank: int) -> tuple[dict[str, Any], dict[str, Any], tuple[int, ...], tuple[int, ...]]:
    """(our keywords, ONNX's attributes, x's shape, w's shape)"""
    groups = int(rng.choice([1, 2]))
    numbers = lambda low, high, count=rank: [int(n) for n in rng.integers(low, high, count)]  # noqa: E731
    strides, dilations, before, after = numbers(1, 3), numbers(1, 3), numbers(0, 3), numbers(0, 3)
    ours = dict(stride=tuple(strides), dilation=tuple(dilations), padding=tuple(zip(before, after, strict=True)), groups=groups)
    theirs = dict(strides=strides, dilations=dilations, pads=before + after, group=groups)
    return ours, theirs, (*numbers(1, 3, 1), 4, *numbers(5, 9)), (2 * groups, 4 // groups, *numbers(1, 4))


def deformable(seed: int) -> None:
    rng = np.random.default_rng([seed, 1])
    ours, theirs, shape, w_shape = geometry(rng, 2)  # ONNX Runtime has two axes only
    parts = int(rng.choice([1, 2, 4]))
    plan = astride.plan("deform_conv", shape, w_shape=w_shape, offset_groups=parts, **ours)
    x, w, b = (rng.normal(size=s).astype(np.float32) for s in (shape, w_shape, w_shape[:1]))
    offset = (1.5 * rng.normal(size=plan.shape_of(shape[0], parts * plan.taps * 2))).astype(np.float32)
    mask = rng.normal(size=plan.shape_of(shape[0], parts * plan.taps)).astype(np.float32)
    bias, weighed = (b if rng.random() < 0.5 else None), (mask if rng.random() < 0.6 else None)
    expected = computed("DeformConv", [x, w, offset, bias, weighed], 1, offset_group=parts, **theirs)
    y = astride.deform_conv(x, offset, w, bias, weighed, offset_groups=parts, **ours)
    assert_near(y, expected, 3e-6, f"deformable convolution {seed}")


def integer(seed: int) -> None:
    rng = np.random.default_rng([seed, 2])
    ours, theirs, shape, w_shape = geometry(rng, int(rng.choice([1, 2, 3])))
    x, w = rng.integers(0, 256, shape).astype(np.uint8), rng.integers(0, 256, w_shape).astype(np.uint8)
    x_zero, w_zero = np.uint8(rng.integers(0, 256)), np.uint8(rng.integers(0, 256))
    expected = computed("ConvInteger", [x, w, np.asarray(x_zero), np.asarray(w_zero)], 6, **theirs)
    assert_same(astride.conv_integer(x, w, x_zero_point=x_zero, w_zero_point=w_zero, **ours), expected, f"integer {seed}")


def quantised(seed: int) -> None:
    rng = np.random.default_rng([seed, 3])
    ours, theirs, shape, w_shape = geometry(rng, int(rng.choice([1, 2, 3])))
    kind = np.dtype(rng.choice(["uint8", "int8"]))
    x = rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, shape).astype(kind)
    # On CPUs without VNNI, ONNX Runtime adds two products with int8 in 16 bits, which full weights overflow.
    w = rng.integers(-64, 64, w_shape).astype(np.int8)
    channels = w_shape[:1] if rng.random() < 0.5 else ()
    scales = [np.asarray(v, np.float32) for v in (rng.uniform(0.01, 0.1), rng.uniform(0.01, 0.1, channels), rng.uniform(1, 9))]
    x_zero, y_zero = (
        np.asarray(rng.integers(-20, 20) % 100 if kind == "uint8" else rng.integers(-20, 20)).astype(kind) for _ in "xy"
    )
    w_zero = np.zeros(channels, np.int8)
    b = rng.integers(-3000, 3000, w_shape[:1]).astype(np.int32) if rng.random() < 0.5 else None
    inputs = [x, scales[0], x_zero, w, scales[1], w_zero, scales[2], y_zero, b]
    expected = computed("QLinearConv", inputs, 2 if kind == "uint8" else 3, **theirs)
    names = ("x_scale", "w_scale", "y_scale")
    y = astride.conv_integer(
        x, w, b, x_zero_point=x_zero, w_zero_point=w_zero, y_zero_point=y_zero, **dict(zip(names, scales, strict=True)), **ours
    )
    assert_same(y, expected, f"quantised {seed}")


@pytest.mark.parametrize("check", [deformable, integer, quantised])
def test_sample(check: Any) -> None:
    for seed in range(SAMPLE):
        check(seed)


@pytest.mark.conformance
@pytest.mark.parametrize("check", [deformable, integer, quantised])
def test_sweep(check: Any) -> None:
    for seed in range(SAMPLE, SWEEP):
        check(seed)
