"""Solvers under Caffe's names: SGDSolver and the others, get_solver."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from ..caffe.dialects import schema
from ..caffe.solver import load_solver, settings_of
from ..caffe.upgrade import upgrade_solver
from ..proto import read_prototxt
from ..train import Event, IterationDone, NetTested, SnapshotWritten
from . import process
from ._calls import FilePath, existing
from .layer import Importable
from .pycaffe import Net


class Solver:
    """Trains a network as a solver prototxt says.

    net, test_nets   Net, as `caffe.Net`
    iter             updates so far
    param            the solver's message; what is changed in it (param.base_lr = 0.001) holds from the next step on
    lr               the learning rate of the next iteration

    Nets and weights that the prototxt names are looked for beside it, then in the working directory.
    """

    type: ClassVar[str] = ""
    """The rule of this class, whatever the prototxt says; of `Solver` itself, the prototxt's."""

    def __init__(self, solver_file: FilePath) -> None:
        file = Path(existing(solver_file))
        parsed = read_prototxt(file, "SolverParameter", schema=schema())
        self.param: Any = upgrade_solver(parsed.message, parsed).message
        self.param.type = self.type or self.param.type
        drawn = int(process.random().randint(2**32, dtype="uint32")) if self.param.random_seed < 0 else None
        self._solver = load_solver(file, type=self.param.type, seed=drawn, python_layers=Importable())
        self._as_read = self.param.SerializeToString()
        self._net = Net.of(self._solver.net)
        self._test_nets = [Net.of(net) for net in self._solver.test_nets]
        self._solver.add_listener(_tell)

    @property
    def net(self) -> Net:
        """The network that learns."""
        return self._net

    @property
    def test_nets(self) -> list[Net]:
        """The networks that are tested; they use the parameters of `net`."""
        return self._test_nets

    @property
    def iter(self) -> int:
        """Updates so far."""
        return self._solver.iter

    @property
    def lr(self) -> float:
        """The learning rate of the next iteration; setting it sets base_lr."""
        self._follow_param()
        return self._solver.rate

    @lr.setter
    def lr(self, rate: float) -> None:
        self.param.base_lr = rate

    def step(self, iterations: int) -> None:
        """Run so many iterations, with the tests and snapshots that fall into them."""
        self._follow_param()
        self._solver.step(iterations)

    def solve(self, resume_file: FilePath | None = None) -> None:
        """Run to max_iter, from a snapshot if one is given."""
        self._follow_param()
        if resume_file is not None:
            self.restore(resume_file)
        self._solver.solve()

    def restore(self, state_file: FilePath) -> None:
        """Go on from a .solverstate and the weights beside it."""
        self._solver.restore(existing(state_file))

    def snapshot(self) -> None:
        """Write weights and state under the prefix that the prototxt gives."""
        self._follow_param()
        self._solver.snapshot()

    def apply_update(self) -> None:
        """Turn the gradients gathered by your own forward and backward calls into an update. `iter` stays."""
        self._follow_param()
        self._solver.apply_update()

    def share_weights(self, net: Net) -> None:
        """Let another network use the parameters that learn here."""
        net.share_with(self.net)

    def add_callback(self, on_start: Callable[[], object], on_gradients_ready: Callable[[], object]) -> None:
        """Call the first when an iteration begins, the second when its gradients are there, before the update."""
        self._solver.on_start.append(on_start)
        self._solver.on_gradients.append(on_gradients_ready)

    def _follow_param(self) -> None:
        """Let what a script has changed in `param` be in force. The type and the seed were used up at the beginning."""
        now = self.param.SerializeToString()
        if now != self._as_read:
            before = self._solver.settings
            prefix = self.param.snapshot_prefix or before.snapshot_prefix
            changed = settings_of(self.param, len(self._test_nets), before.seed, os.fspath(prefix))
            self._solver.settings = replace(changed, type=before.type)
            self._as_read = now

    def __repr__(self) -> str:
        return f"<caffe.{type(self).__name__} at iteration {self.iter}>"


class SGDSolver(Solver):
    """Stochastic gradient descent with momentum."""

    type = "SGD"


class NesterovSolver(Solver):
    """Nesterov's accelerated gradient."""

    type = "Nesterov"


class AdaGradSolver(Solver):
    """AdaGrad."""

    type = "AdaGrad"


class RMSPropSolver(Solver):
    """RMSProp."""

    type = "RMSProp"


class AdaDeltaSolver(Solver):
    """AdaDelta."""

    type = "AdaDelta"


class AdamSolver(Solver):
    """Adam."""

    type = "Adam"


SOLVERS = {kind.type: kind for kind in (SGDSolver, NesterovSolver, AdaGradSolver, RMSPropSolver, AdaDeltaSolver, AdamSolver)}


def get_solver(solver_file: FilePath) -> Solver:
    """The solver of the type that the prototxt names."""
    parsed = read_prototxt(Path(existing(solver_file)), "SolverParameter", schema=schema())
    kind = str(upgrade_solver(parsed.message, parsed).message.type)
    return SOLVERS.get(kind, Solver)(solver_file)


def _tell(event: Event) -> None:
    """The lines Caffe writes into its log, for those who have called init_log."""
    if isinstance(event, IterationDone) and event.show:
        process.log(f"Iteration {event.iteration}, loss = {event.smoothed_loss:.6g}, lr = {event.rate:.6g}")
    elif isinstance(event, NetTested):
        for name, values in event.outputs.items():
            process.log(f"Iteration {event.iteration}, test net {event.net}: {name} = {float(values.mean()):.6g}")
    elif isinstance(event, SnapshotWritten):
        process.log(f"Snapshotting to {event.model}")


__all__ = [
    "AdaDeltaSolver",
    "AdaGradSolver",
    "AdamSolver",
    "NesterovSolver",
    "RMSPropSolver",
    "SGDSolver",
    "Solver",
    "get_solver",
]
