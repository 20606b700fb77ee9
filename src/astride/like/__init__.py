"""Each framework's own functions on NumPy arrays: its names, argument order, defaults, layouts and refusals.

from astride.like import pytorch as F
y = F.max_pool2d(x, 3, stride=2, padding=1, ceil_mode=True)
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

FRAMEWORKS: dict[str, str] = {
    "caffe": "BVLC Caffe's layers with their own fields",
    "chainer": "chainer.functions",
    "coreml": "Core ML's MIL operators",
    "jax": "jax.lax's window reductions and convolutions",
    "keras": "keras.ops",
    "mlx": "mlx.nn's pooling and mlx.core's convolutions",
    "mps": "Metal Performance Shaders on (N, H, W, C) arrays",
    "mxnet": "mx.nd's Pooling, Convolution, Deconvolution",
    "numpy_loops": "the loops of NumPy courses",
    "onnx": "ONNX's operators and attributes, by opset",
    "pytorch": "torch.nn.functional",
    "tensorflow": "tf.nn",
    "tflite": "TensorFlow Lite's operators",
}
"""name -> what its functions mirror."""

__all__ = [
    "FRAMEWORKS",
    "caffe",
    "chainer",
    "coreml",
    "jax",
    "keras",
    "mlx",
    "mps",
    "mxnet",
    "numpy_loops",
    "onnx",
    "pytorch",
    "tensorflow",
    "tflite",
]


def __getattr__(name: str) -> ModuleType:
    if name in FRAMEWORKS:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
