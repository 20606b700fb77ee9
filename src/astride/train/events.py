"""What a solver tells those who listen: an iteration done, a test done, a snapshot written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Outputs = Mapping[str, npt.NDArray[np.floating[Any]]]


@dataclass(frozen=True, slots=True)
class IterationDone:
    """One update. `iteration` is the number that this update had, counted from 0.

    `loss` is this iteration's, `smoothed_loss` the mean of the last `average_loss`, `seconds` this iteration's time without
    tests and snapshots, `show` whether the solver's `display` asks for a line here.
    """

    iteration: int
    loss: float
    smoothed_loss: float
    rate: float
    seconds: float
    show: bool
    outputs: Outputs


@dataclass(frozen=True, slots=True)
class NetTested:
    """The mean of each output of test net `net` over `test_iter` batches; `loss` only with `test_compute_loss`."""

    iteration: int
    net: int
    outputs: Outputs
    loss: float | None


@dataclass(frozen=True, slots=True)
class SnapshotWritten:
    """Two files: the weights, and what the solver needs besides to go on."""

    iteration: int
    model: Path
    state: Path


Event = IterationDone | NetTested | SnapshotWritten
Listener = Callable[[Event], None]
