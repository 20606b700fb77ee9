"""astride: the operators that slide a window over an image, computed exactly as each framework does; and Caffe networks, alive.

y = astride.max_pool(x, kernel=3, stride=2, rules="caffe")
y, pull = astride.vjp(astride.max_pool, x, kernel=3)
net = astride.load_caffe("deploy.prototxt", "weights.caffemodel")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .autodiff import check_gradient, vjp
from .errors import (
    ArgumentError,
    ArrayError,
    AstrideError,
    BackendUnavailable,
    CaffeError,
    ModelFileError,
    NotFiniteError,
    PrototxtError,
    UnknownLayerError,
    UnsupportedError,
)
from .ops import OPERATORS
from .ops._run import plan
from .settings import configure, use

if TYPE_CHECKING:
    from . import cv2dnn, gpu, like, onnx, pycaffe
    from .backends.cpu.conv_tune import tune
    from .backends.fixed import frozen
    from .caffe.load import load_caffe
    from .caffe.solver import load_solver
    from .ops.adaptive_pool import adaptive_pool
    from .ops.argmax import argmax
    from .ops.avg_pool import avg_pool
    from .ops.batch_norm import batch_norm
    from .ops.broadcast import broadcast
    from .ops.conv import conv
    from .ops.conv_integer import conv_integer
    from .ops.conv_transpose import conv_transpose
    from .ops.deform_conv import deform_conv
    from .ops.elementwise import elementwise
    from .ops.fold import fold
    from .ops.fractional_pool import fractional_pool
    from .ops.global_pool import global_pool
    from .ops.layout import layout
    from .ops.lp_pool import lp_pool
    from .ops.lrn import lrn
    from .ops.matmul import matmul
    from .ops.max_pool import max_pool
    from .ops.max_unpool import max_unpool
    from .ops.min_pool import min_pool
    from .ops.mvn import mvn
    from .ops.reduce import reduce
    from .ops.softmax import softmax
    from .ops.softmax_loss import softmax_loss
    from .ops.stochastic_pool import stochastic_pool
    from .ops.unfold import unfold
    from .ops.window_reduce import window_op, window_reduce

__version__ = "0.1.0"

LAZY: dict[str, str] = {
    "cv2dnn": ".cv2dnn",
    "frozen": ".backends.fixed",
    "gpu": ".gpu",
    "like": ".like",
    "load_caffe": ".caffe.load",
    "load_solver": ".caffe.solver",
    "onnx": ".onnx",
    "pycaffe": ".pycaffe",
    "tune": ".backends.cpu.conv_tune",
    "window_op": ".ops.window_reduce",
} | {operator: f".ops.{operator}" for operator in OPERATORS}
"""Public names whose modules are imported at first use, so that importing astride costs little."""

__all__ = [
    "ArgumentError",
    "ArrayError",
    "AstrideError",
    "BackendUnavailable",
    "CaffeError",
    "ModelFileError",
    "NotFiniteError",
    "PrototxtError",
    "UnknownLayerError",
    "UnsupportedError",
    "adaptive_pool",
    "argmax",
    "avg_pool",
    "batch_norm",
    "broadcast",
    "check_gradient",
    "configure",
    "conv",
    "conv_integer",
    "conv_transpose",
    "cv2dnn",
    "deform_conv",
    "elementwise",
    "fold",
    "fractional_pool",
    "frozen",
    "global_pool",
    "gpu",
    "layout",
    "like",
    "load_caffe",
    "load_solver",
    "lp_pool",
    "lrn",
    "matmul",
    "max_pool",
    "max_unpool",
    "min_pool",
    "mvn",
    "onnx",
    "plan",
    "pycaffe",
    "reduce",
    "softmax",
    "softmax_loss",
    "stochastic_pool",
    "tune",
    "unfold",
    "use",
    "vjp",
    "window_op",
    "window_reduce",
]


def __getattr__(name: str) -> Any:
    if name not in LAZY:
        raise AttributeError(f"module 'astride' has no attribute {name!r}")
    module = import_module(LAZY[name], __name__)
    value = module if name in ("cv2dnn", "gpu", "like", "onnx", "pycaffe") else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *LAZY})
