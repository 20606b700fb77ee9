"""The numbers of a training run, checked once: what Caffe's SolverParameter says, without its file format."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from ..errors import ArgumentError
from .policies import Policy
from .update import Constants, check_regularization

SOURCE = "Caffe, src/caffe/proto/caffe.proto, SolverParameter"
_LEAST = {"iter_size": 1, "average_loss": 1, "max_iter": 0, "display": 0, "test_interval": 0, "snapshot": 0}


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a Solver needs besides its nets. Intervals count iterations; 0 means never.

    `debug_info` lets the net log every blob in the iterations that `display` shows. `clip_gradients` below 0 clips nothing.
    `test_iter` has one entry per test net. `seed` starts fillers and masks; None leaves them to chance. `snapshot_prefix` is
    the path that snapshot names begin with; `snapshot_format` is BINARYPROTO or HDF5;
    `snapshot_diff` has the weights' last updates, which stand in their diffs, written beside them.
    """

    policy: Policy
    type: str = "SGD"
    constants: Constants = field(default_factory=Constants)
    weight_decay: float = 0.0
    regularization: str = "L2"
    clip_gradients: float = -1.0
    iter_size: int = 1
    max_iter: int = 0
    display: int = 0
    average_loss: int = 1
    test_iter: tuple[int, ...] = ()
    test_interval: int = 0
    test_initialization: bool = True
    test_compute_loss: bool = False
    snapshot: int = 0
    snapshot_prefix: str = "net"
    snapshot_format: str = "BINARYPROTO"
    snapshot_diff: bool = False
    snapshot_after_train: bool = True
    debug_info: bool = False
    seed: int | None = None

    def __post_init__(self) -> None:
        check_regularization(self.regularization)
        for name, least in _LEAST.items():
            value: Any = getattr(self, name)
            if value < least:
                raise ArgumentError(
                    f"{name} is too small",
                    given={name: value},
                    required=f"{name} >= {least}: {value}",
                    because=SOURCE,
                    hint=f"{name}: {max(least, 1)}",
                )
        for name, example in (("weight_decay", "0.0005"), ("clip_gradients", "10")):
            value = getattr(self, name)
            if not math.isfinite(value):
                raise ArgumentError(
                    f"{name} is no number",
                    given={name: value},
                    required=f"a finite number: {value}",
                    because=SOURCE,
                    hint=f"{name}: {example}",
                )
        if any(count < 1 for count in self.test_iter):
            raise ArgumentError(
                "a test runs at least one batch",
                given={"test_iter": self.test_iter},
                required=f"test_iter >= 1: {min(self.test_iter)}",
                because=SOURCE,
                hint="test_iter: 100",
            )
        if not 0 <= self.constants.momentum < 1:
            raise ArgumentError(
                "with this momentum the steps grow without end",
                given={"momentum": self.constants.momentum},
                required=f"0 <= momentum < 1: {self.constants.momentum}",
                hint="momentum: 0.9",
            )
