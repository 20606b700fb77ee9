"""Training: the loop, learning-rate policies, solver types, snapshots.

solver.py        Solver: step, solve, test, snapshot, restore
settings.py      the numbers of a run
policies.py      learning rate as a function of the iteration
update.py        what all solver types share: clip, weight decay, and what a type is
sgd.py           a type: one function from gradient and history to update; the others stand beside it, each in a file
snapshot.py      .caffemodel and .solverstate, and back bit for bit
diverged.py      NaN and infinity are errors that name their first place
events.py        what listeners hear
communicator.py  several processes as one
"""

from __future__ import annotations

from ..errors import UnsupportedError
from . import adadelta, adagrad, adam, nesterov, rmsprop, sgd
from .communicator import Alone, Communicator
from .events import Event, IterationDone, Listener, NetTested, SnapshotWritten
from .policies import Policy
from .settings import Settings
from .solver import Solver
from .update import Constants, Update

UPDATES: dict[str, Update] = {
    "SGD": sgd.UPDATE,
    "Nesterov": nesterov.UPDATE,
    "AdaGrad": adagrad.UPDATE,
    "RMSProp": rmsprop.UPDATE,
    "AdaDelta": adadelta.UPDATE,
    "Adam": adam.UPDATE,
}
"""Solver types by Caffe's name."""

__all__ = [
    "UPDATES",
    "Alone",
    "Communicator",
    "Constants",
    "Event",
    "IterationDone",
    "Listener",
    "NetTested",
    "Policy",
    "Settings",
    "SnapshotWritten",
    "Solver",
    "Update",
    "find_update",
]


def find_update(name: str) -> Update:
    """The solver type of this name; UnsupportedError lists those that exist."""
    if name not in UPDATES:
        raise UnsupportedError(
            "no such solver type here",
            given={"type": name},
            required=f"one of {' '.join(UPDATES)}",
            hint='type: "SGD"',
        )
    return UPDATES[name]
