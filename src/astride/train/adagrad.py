"""AdaGrad: each weight's rate falls with the sum of its squared gradients."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .update import Array, Constants, Update, need_delta, refuse_momentum

SOURCE = "Caffe, include/caffe/sgd_solvers.hpp, AdaGradSolver"


def compute(diff: Array, history: Sequence[Array], rate: float, constants: Constants) -> None:
    """history += gradient²; the update is rate * gradient / (sqrt(history) + delta).

    Source      Caffe, src/caffe/solvers/adagrad_solver.cpp
    """
    dtype = diff.dtype.type
    (squares,) = history
    squares += diff * diff
    diff[...] = dtype(rate) * (diff / (np.sqrt(squares) + dtype(constants.delta)))


def check(constants: Constants) -> None:
    """There is no momentum, and delta keeps weights without a gradient from 0 / 0."""
    refuse_momentum("AdaGrad", constants, SOURCE)
    need_delta("AdaGrad", constants)


UPDATE = Update("AdaGrad", slots=1, compute=compute, check=check)
