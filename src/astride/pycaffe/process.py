"""What Caffe keeps once a process: the mode, the device, the random numbers, the log, and a timer.

Everything runs on the CPU. GPU modes and devices are accepted, because scripts set them as a matter of course, and said to
have no effect once, in the log.
"""

from __future__ import annotations

import logging
import sys
import time

import numpy as np

from ..errors import UnsupportedError
from ..layers import LAYERS
from .errors import CallError

_log = logging.getLogger("astride.pycaffe")
_random = np.random.RandomState()
_told: set[str] = set()
_solvers = {"count": 1, "rank": 0}


def set_mode_cpu() -> None:
    """Compute on the CPU, as it is."""


def set_mode_gpu() -> None:
    """Accepted without effect: this Caffe computes on the CPU."""
    _once("set_mode_gpu: networks run on the CPU here, the numbers are the same")


def set_device(device: int) -> None:
    """Accepted without effect: there is one device, the CPU."""
    _once(f"set_device({device}): networks run on the CPU here")


def _once(message: str) -> None:
    if message not in _told:
        _told.add(message)
        _log.info(message)


def set_random_seed(seed: int) -> None:
    """Begin the random numbers anew: fillers and dropout of all networks built from here on."""
    if not 0 <= seed < 2**32:
        raise CallError(
            "a seed has 32 bits", given={"seed": seed}, required=f"0 <= seed < 2**32: {seed}", hint="set_random_seed(1)"
        )
    _random.seed(seed)


def random() -> np.random.RandomState:
    """The process's random numbers."""
    return _random


def layer_type_list() -> list[str]:
    """Every layer type, by name."""
    return sorted(LAYERS)


def init_log(level: int = 0, stderr: bool = True) -> None:
    """Show messages of at least this severity on stderr: 0 information, 1 warnings, 2 errors."""
    if stderr and not _log.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(levelname).1s%(asctime)s %(process)d] %(message)s", "%m%d %H:%M:%S"))
        _log.addHandler(handler)
    _log.setLevel({0: logging.INFO, 1: logging.WARNING}.get(level, logging.ERROR))


def log(message: str) -> None:
    """Write a line of information into the log."""
    _log.info(message)


def solver_count() -> int:
    """How many solvers work together."""
    return _solvers["count"]


def set_solver_count(count: int) -> None:
    """Say how many solvers work together; one process is all there is here."""
    _solvers["count"] = count


def solver_rank() -> int:
    """Which of the solvers this process is."""
    return _solvers["rank"]


def set_solver_rank(rank: int) -> None:
    """Say which of the solvers this process is."""
    _solvers["rank"] = rank


def set_multiprocess(flag: bool) -> None:
    """Accepted without effect."""


def has_nccl() -> bool:
    """Whether gradients of several GPUs can be summed: never here."""
    return False


class NCCL:
    """Caffe's link between GPUs, which does not exist here."""

    def __init__(self, *arguments: object) -> None:
        raise _no_nccl()

    @staticmethod
    def new_uid() -> bytes:
        """The name of a link, of which there are none."""
        raise _no_nccl()


def _no_nccl() -> UnsupportedError:
    return UnsupportedError(
        "there is no NCCL, as there is no GPU here",
        hint="train in one process; load_solver(..., communicator=...) joins several by MPI",
    )


class Timer:
    """Caffe's stopwatch: `start()`, `stop()`, and `ms` between the two, or since the start while it runs."""

    def __init__(self) -> None:
        self._begin = self._end = 0.0
        self._running = False

    def start(self) -> None:
        """Begin at zero."""
        self._begin, self._running = time.perf_counter(), True

    def stop(self) -> None:
        """Keep what has passed."""
        if self._running:
            self._end, self._running = time.perf_counter(), False

    @property
    def ms(self) -> float:
        """Milliseconds."""
        return 1e3 * ((time.perf_counter() if self._running else self._end) - self._begin)


__all__ = [
    "NCCL",
    "Timer",
    "has_nccl",
    "init_log",
    "layer_type_list",
    "log",
    "random",
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
