"""How gradients of several processes become one. The processes' own means (MPI, ...) are injected; alone is the default."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from .update import Array


class Communicator(Protocol):
    """A group of processes that train the same net on different data, all of them in step."""

    @property
    def size(self) -> int:
        """How many processes there are."""

    @property
    def rank(self) -> int:
        """Which of them this one is, from 0; only 0 writes snapshots."""

    def all_reduce(self, arrays: Sequence[Array]) -> None:
        """Replace each array by its sum over all processes, in place, the same bits everywhere."""

    def broadcast(self, arrays: Sequence[Array]) -> None:
        """Replace each array by the one of rank 0, in place."""


class Alone:
    """One process: nothing to add, nothing to send."""

    size = 1
    rank = 0

    def all_reduce(self, arrays: Sequence[Array]) -> None:
        """The sum over one process is what is there."""

    def broadcast(self, arrays: Sequence[Array]) -> None:
        """Rank 0 is this one."""
