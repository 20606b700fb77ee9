"""RMSProp: each weight's gradient is divided by the root of its recent mean square."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ArgumentError
from .update import Array, Constants, Update, need_delta, refuse_momentum

SOURCE = "Caffe, include/caffe/sgd_solvers.hpp, RMSPropSolver"


def compute(diff: Array, history: Sequence[Array], rate: float, constants: Constants) -> None:
    """history = rms_decay * history + (1 - rms_decay) * gradient²; the update is rate * gradient / (sqrt(history) + delta).

    Source      Caffe, src/caffe/solvers/rmsprop_solver.cpp
    """
    dtype = diff.dtype.type
    (squares,) = history
    decay = dtype(constants.rms_decay)
    squares *= decay
    squares += (dtype(1) - decay) * (diff * diff)
    diff[...] = dtype(rate) * (diff / (np.sqrt(squares) + dtype(constants.delta)))


def check(constants: Constants) -> None:
    """There is no momentum; the decay is a share."""
    refuse_momentum("RMSProp", constants, SOURCE)
    need_delta("RMSProp", constants)
    if not 0 <= constants.rms_decay < 1:
        raise ArgumentError(
            "the mean of squares would grow or change sign",
            given={"rms_decay": constants.rms_decay},
            required=f"0 <= rms_decay < 1: {constants.rms_decay}",
            because=SOURCE,
            hint="rms_decay: 0.98",
        )


UPDATE = Update("RMSProp", slots=1, compute=compute, check=check)
