"""Caffe's Python interface without Caffe: change `import caffe` to `from astride import pycaffe as caffe`, or

    from astride import pycaffe
    pycaffe.install()                   # from here on `import caffe`, `from caffe.proto import caffe_pb2`, ... mean this

    astride python script.py            # a script as it is

pycaffe.py      Net                     solver.py     SGDSolver and the others
layer.py        Layer, for layers in Python            process.py    mode, seed, log, Timer
io.py           images, messages, Transformer          proto/        caffe_pb2, made at run time
net_spec.py     layers, params, NetSpec                coord_map.py  where to crop
draw.py         pictures                classifier.py, detector.py    networks for images

Networks run on the CPU by Caffe's rules and keep every blob. Errors are astride's, and where scripts catch RuntimeError,
ValueError, TypeError or AttributeError they are that as well.
"""

from __future__ import annotations

import sys
from importlib import import_module

from ..errors import ArgumentError
from . import _caffe as _caffe
from . import classifier, coord_map, detector, draw, io, net_spec, proto, pycaffe
from ._caffe import (
    NCCL,
    AdaDeltaSolver,
    AdaGradSolver,
    AdamSolver,
    Blob,
    BlobVec,
    Layer,
    NesterovSolver,
    Net,
    RMSPropSolver,
    SGDSolver,
    Solver,
    Timer,
    __version__,
    get_solver,
    has_nccl,
    init_log,
    layer_type_list,
    log,
    set_device,
    set_mode_cpu,
    set_mode_gpu,
    set_multiprocess,
    set_random_seed,
    set_solver_count,
    set_solver_rank,
    solver_count,
    solver_rank,
)
from .classifier import Classifier
from .detector import Detector
from .net_spec import NetSpec, layers, params, to_proto
from .proto.caffe_pb2 import TEST, TRAIN

MODULES = (
    "_caffe",
    "classifier",
    "coord_map",
    "detector",
    "draw",
    "io",
    "net_spec",
    "proto",
    "proto.caffe_pb2",
    "pycaffe",
)
"""What `import caffe.<name>` finds once this is installed."""


def install(*, replace: bool = True) -> None:
    """Let `import caffe` and its modules mean this package, in this process.

    Raises ArgumentError where another caffe is imported already: what was made with it would not fit. With replace=False a
    caffe that is imported, or that Python can find, is left alone.
    """
    present = sys.modules.get("caffe")
    own = sys.modules[__name__]
    if present is own:
        return
    if not replace and (present is not None or _findable()):
        return
    if present is not None:
        raise ArgumentError(
            "another caffe is imported already",
            given={"caffe": getattr(present, "__file__", None)},
            required="install() before the first import of caffe",
            hint="from astride import pycaffe; pycaffe.install() at the top of the script",
        )
    sys.modules["caffe"] = own
    for name in MODULES:
        sys.modules[f"caffe.{name}"] = import_module(f"{__name__}.{name}")


def uninstall() -> None:
    """Take back what `install` did."""
    if sys.modules.get("caffe") is sys.modules[__name__]:
        for name in ("caffe", *(f"caffe.{name}" for name in MODULES)):
            sys.modules.pop(name, None)


def _findable() -> bool:
    """Whether a caffe of its own is installed. A folder of that name without an __init__.py is none."""
    from importlib.util import find_spec

    found = find_spec("caffe")
    return found is not None and found.origin is not None


__all__ = [
    "NCCL",
    "TEST",
    "TRAIN",
    "AdaDeltaSolver",
    "AdaGradSolver",
    "AdamSolver",
    "Blob",
    "BlobVec",
    "Classifier",
    "Detector",
    "Layer",
    "NesterovSolver",
    "Net",
    "NetSpec",
    "RMSPropSolver",
    "SGDSolver",
    "Solver",
    "Timer",
    "__version__",
    "classifier",
    "coord_map",
    "detector",
    "draw",
    "get_solver",
    "has_nccl",
    "init_log",
    "install",
    "io",
    "layer_type_list",
    "layers",
    "log",
    "net_spec",
    "params",
    "proto",
    "pycaffe",
    "set_device",
    "set_mode_cpu",
    "set_mode_gpu",
    "set_multiprocess",
    "set_random_seed",
    "set_solver_count",
    "set_solver_rank",
    "solver_count",
    "solver_rank",
    "to_proto",
    "uninstall",
]
