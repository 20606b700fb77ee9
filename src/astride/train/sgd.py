"""Stochastic gradient descent with momentum: history = rate * gradient + momentum * history; subtract the history."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .update import Array, Constants, Update


def compute(diff: Array, history: Sequence[Array], rate: float, constants: Constants) -> None:
    """Overwrite `diff` with the new history. The rate scales the gradient before it enters the history, as in Caffe:
    when the rate falls, steps already gathered keep the size they had.
    """
    dtype = diff.dtype.type
    (momentum,) = history
    momentum *= dtype(constants.momentum)
    momentum += dtype(rate) * diff
    np.copyto(diff, momentum)


UPDATE = Update("SGD", slots=1, compute=compute)
