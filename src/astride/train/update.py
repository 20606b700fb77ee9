"""What a solver type is: how many arrays it remembers per parameter, and one function that turns a gradient into an update.

The order around that function is the same for all types, Caffe's: gradients (summed over iter_size passes), clip by the
global L2 norm, divide by iter_size, weight decay, the type's rule, subtract. Arithmetic is in the parameter's own dtype.
A further type is a file with its `UPDATE` and a line in `train/__init__.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import ArgumentError, UnsupportedError

Array = npt.NDArray[Any]


class Trainable(Protocol):
    """What an update needs of a parameter; `diff` holds the gradient before and the update after."""

    @property
    def data(self) -> Array:
        """The values, writeable."""

    @property
    def diff(self) -> Array:
        """The gradient, writeable, of the shape of `data`."""

    @property
    def lr_mult(self) -> float:
        """Factor on the learning rate."""

    @property
    def decay_mult(self) -> float:
        """Factor on the weight decay."""


@dataclass(frozen=True, slots=True)
class Constants:
    """The numbers of a solver that its type's rule reads, with Caffe's defaults."""

    momentum: float = 0.0
    momentum2: float = 0.999
    rms_decay: float = 0.99
    delta: float = 1e-8


def _anything(constants: Constants) -> None:
    """A type whose numbers need no check of its own."""


@dataclass(frozen=True, slots=True)
class Update:
    """A solver type. `compute(diff, history, rate, constants)` overwrites `diff` with what is then subtracted.

    `correction(iteration, constants)`, where there is one, is a factor on the rate that every parameter shares; `check` raises
    ArgumentError where the constants do not suit the type.
    """

    name: str
    slots: int
    compute: Callable[[Array, Sequence[Array], float, Constants], None]
    correction: Callable[[int, Constants], float] | None = None
    check: Callable[[Constants], None] = _anything


def clip(parameters: Sequence[Trainable], limit: float) -> float:
    """Scale all gradients together so that their global L2 norm is at most `limit`; below 0 nothing is clipped.

    Returns the norm before. The squares are summed in float64, so that the norm neither overflows nor loses small entries.
    """
    norm = math.sqrt(sum(float(np.square(p.diff, dtype=np.float64).sum()) for p in parameters))
    if 0 <= limit < norm:
        scale(parameters, limit / norm)
    return norm


def scale(parameters: Sequence[Trainable], factor: float) -> None:
    """Multiply all gradients by `factor`."""
    if factor != 1:
        for parameter in parameters:
            parameter.diff[...] *= parameter.diff.dtype.type(factor)


def regularize(parameter: Trainable, weight_decay: float, kind: str) -> None:
    """Add the derivative of the penalty to the gradient: L2 is decay/2 * |w|^2, L1 is decay * |w|, flat at 0."""
    decay = parameter.data.dtype.type(weight_decay * parameter.decay_mult)
    if decay != 0:
        parameter.diff[...] += decay * (parameter.data if kind == "L2" else np.sign(parameter.data))


def check_regularization(kind: str) -> str:
    """`kind` if it is one of L2 and L1."""
    if kind not in ("L2", "L1"):
        raise UnsupportedError(
            "unknown regularization",
            given={"regularization_type": kind},
            required="L2 or L1",
            because="Caffe, src/caffe/solvers/sgd_solver.cpp, Regularize",
            hint='regularization_type: "L2"',
        )
    return kind


def refuse_momentum(kind: str, constants: Constants, source: str) -> None:
    """Raise where a type that has no momentum is given one."""
    if constants.momentum != 0:
        raise ArgumentError(
            f"{kind} has no momentum",
            given={"type": kind, "momentum": constants.momentum},
            required=f"momentum == 0: {constants.momentum}",
            because=source,
            hint='no momentum, or type: "SGD"',
        )


def need_delta(kind: str, constants: Constants) -> None:
    """Raise where weights without a gradient would become 0 / 0."""
    if not (constants.delta > 0 and math.isfinite(constants.delta)):
        raise ArgumentError(
            f"{kind} divides by delta where there was no gradient yet",
            given={"type": kind, "delta": constants.delta},
            required=f"0 < delta < inf: {constants.delta}",
            hint="delta: 1e-8",
        )
