"""AdaDelta: steps as large as the recent steps were, against the recent gradients. `momentum` is the share kept of both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .update import Array, Constants, Update, need_delta


def compute(diff: Array, history: Sequence[Array], rate: float, constants: Constants) -> None:
    """Means of squares, of gradients (g) and of steps (s):

    g = momentum * g + (1 - momentum) * gradient²;  step = gradient * sqrt((s + delta) / (g + delta));
    s = momentum * s + (1 - momentum) * step²;      the update is rate * step, though s knows nothing of the rate.

    Source      Caffe, src/caffe/solvers/adadelta_solver.cpp
    """
    dtype = diff.dtype.type
    gradients, steps = history
    momentum, delta = dtype(constants.momentum), dtype(constants.delta)
    gradients *= momentum
    gradients += (dtype(1) - momentum) * (diff * diff)
    diff *= np.sqrt((steps + delta) / (gradients + delta))
    steps *= momentum
    steps += (dtype(1) - momentum) * (diff * diff)
    diff *= dtype(rate)


def check(constants: Constants) -> None:
    """Without delta the first step is 0 / 0."""
    need_delta("AdaDelta", constants)


UPDATE = Update("AdaDelta", slots=2, compute=compute, check=check)
