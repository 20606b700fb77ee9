"""Adam: means of gradients and of their squares, corrected for having begun at zero."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..errors import ArgumentError
from .update import Array, Constants, Update, need_delta


def compute(diff: Array, history: Sequence[Array], rate: float, constants: Constants) -> None:
    """m = momentum * m + (1 - momentum) * gradient;  v = momentum2 * v + (1 - momentum2) * gradient²;
    the update is rate * m / (sqrt(v) + delta), where the rate already has the correction.

    Source      Caffe, src/caffe/solvers/adam_solver.cpp
    """
    dtype = diff.dtype.type
    first, second = history
    beta1, beta2 = dtype(constants.momentum), dtype(constants.momentum2)
    first *= beta1
    first += (dtype(1) - beta1) * diff
    second *= beta2
    second += (dtype(1) - beta2) * (diff * diff)
    diff[...] = dtype(rate) * (first / (np.sqrt(second) + dtype(constants.delta)))


def correction(iteration: int, constants: Constants) -> float:
    """Factor on the rate of an iteration: sqrt(1 - momentum2^t) / (1 - momentum^t), t counted from 1."""
    t = iteration + 1
    return math.sqrt(1 - constants.momentum2**t) / (1 - constants.momentum**t)


def check(constants: Constants) -> None:
    """The second mean is a mean."""
    need_delta("Adam", constants)
    if not 0 <= constants.momentum2 < 1:
        raise ArgumentError(
            "the mean of squares would grow or change sign",
            given={"momentum2": constants.momentum2},
            required=f"0 <= momentum2 < 1: {constants.momentum2}",
            hint="momentum2: 0.999",
        )


UPDATE = Update("Adam", slots=2, compute=compute, correction=correction, check=check)
