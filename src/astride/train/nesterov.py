"""Nesterov's accelerated gradient: the step that momentum would take next is part of this one."""

from __future__ import annotations

from collections.abc import Sequence

from .update import Array, Constants, Update


def compute(diff: Array, history: Sequence[Array], rate: float, constants: Constants) -> None:
    """history = rate * gradient + momentum * history; the update is (1 + momentum) * new history - momentum * old history.

    Source      Caffe, src/caffe/solvers/nesterov_solver.cpp
    """
    dtype = diff.dtype.type
    (steps,) = history
    momentum = dtype(constants.momentum)
    before = steps.copy()
    steps *= momentum
    steps += dtype(rate) * diff
    diff[...] = (dtype(1) + momentum) * steps - momentum * before


UPDATE = Update("Nesterov", slots=1, compute=compute)
