"""caffe._caffe: the names that Caffe's compiled module has, for scripts that reach into it."""

from __future__ import annotations

from ..layers import Blob
from .layer import BlobVec, Layer
from .process import (
    NCCL,
    Timer,
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
from .proto.caffe_pb2 import LayerParameter, SolverParameter
from .pycaffe import Net
from .solver import AdaDeltaSolver, AdaGradSolver, AdamSolver, NesterovSolver, RMSPropSolver, SGDSolver, Solver, get_solver

__version__ = "1.0.0"

__all__ = [
    "NCCL",
    "AdaDeltaSolver",
    "AdaGradSolver",
    "AdamSolver",
    "Blob",
    "BlobVec",
    "Layer",
    "LayerParameter",
    "NesterovSolver",
    "Net",
    "RMSPropSolver",
    "SGDSolver",
    "Solver",
    "SolverParameter",
    "Timer",
    "get_solver",
    "has_nccl",
    "init_log",
    "layer_type_list",
    "log",
    "set_device",
    "set_mode_cpu",
    "set_mode_gpu",
    "set_multiprocess",
    "set_random_seed",
    "set_solver_count",
    "set_solver_rank",
    "solver_count",
    "solver_rank",
]
