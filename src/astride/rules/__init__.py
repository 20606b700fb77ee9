"""The table of frameworks. A rule is a pure function: a framework's arguments and shapes in, a plan out; it never sees data.

Each framework's module has one function per operator it has, named like the operator:

    max_pool(shape, dtype, *, kernel, stride, padding, ...) -> PoolPlan
    conv(shape, w_shape, dtype, *, stride, padding, ...) -> ConvPlan
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from ..errors import ArgumentError, UnsupportedError

RULES: dict[str, str] = {
    "explicit": "every choice named by the caller; the default",
    "caffe": "BVLC Caffe (master 9b89154)",
    "pytorch": "PyTorch 2.13",
    "tensorflow": "TensorFlow 2.21, tf.nn on the CPU",
    "keras": "Keras 3.15 on TensorFlow, keras.ops",
    "jax": "JAX 0.10, jax.lax on the CPU",
    "tflite": "TensorFlow Lite 2.21, reference kernels",
    "coreml": "Core ML, MIL operators of coremltools 9.0 (shapes run, values not)",
    "mlx": "MLX 0.32",
    "onnx": "ONNX's text, by opset (onnx 1.23)",
    "onnxruntime": "ONNX Runtime 1.16 to 1.32, CPU, by version",
    "openvino": "OpenVINO 2026.4, CPU",
    "onednn": "oneDNN 2.6.3 primitives",
    "ncnn": "ncnn 1.0.20261020",
    "mps": "Apple's Metal Performance Shaders (SDK headers)",
    "mxnet": "MXNet 1.9.1",
    "chainer": "Chainer 7.8.1",
    "opencv": "OpenCV 4.14 reading Caffe files",
    "darknet": "DarkNet (pjreddie, master)",
    "numpy_loops": "NumPy teaching code: loops, masks and argmax",
}
"""name -> what it stands for. The module has the same name."""


def module(name: str) -> ModuleType:
    """The module of one framework's rules. Raises ArgumentError with the known names."""
    if not isinstance(name, str) or name not in RULES:
        raise ArgumentError(
            "there are no rules of that name",
            given={"rules": name},
            required=f"one of {', '.join(RULES)}",
            hint='rules="explicit"',
        )
    return import_module(f"{__name__}.{name}")


def rule(name: str, op: str) -> Callable[..., Any]:
    """One framework's rule for one operator. Raises ArgumentError: unknown name; UnsupportedError: it has no such operator."""
    found = module(name)
    if not isinstance(op, str):
        raise ArgumentError("an operator is asked for by its name", given={"operator": op}, hint='"max_pool"')
    function = getattr(found, op, None)
    if op.startswith("_") or function is None or getattr(function, "__module__", "") != found.__name__:
        have = [known for known in RULES if has(known, op)]
        if not have or op.startswith("_"):
            operators = [known for known in vars(module("explicit")) if not known.startswith("_") and has("explicit", known)]
            raise ArgumentError(
                "no rules have an operator of that name", given={"operator": op}, required=f"one of {', '.join(operators)}"
            )
        raise UnsupportedError(
            f"{name} has no {op}",
            operator=op,
            rules=name,
            hint=f'rules="{have[0]}"',
            required=f"one of {', '.join(have)}",
        )
    return function  # type: ignore[no-any-return]


def has(name: str, op: str) -> bool:
    """True where that framework's rules have the operator."""
    found = module(name)
    return getattr(getattr(found, op, None), "__module__", "") == found.__name__
