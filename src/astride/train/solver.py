"""The training loop: forward, backward, update, and when to test, tell and save. The order of events is Caffe's."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..errors import ArgumentError
from ..layers.memory_data import MemoryData
from ..net import Net
from . import snapshot
from .communicator import Alone, Communicator
from .diverged import check_gradients, check_loss
from .events import Event, IterationDone, Listener, NetTested, Outputs, SnapshotWritten
from .policies import advance, rate
from .settings import Settings
from .update import Array, Update, clip, regularize, scale


class Solver:
    """Trains `net` as `settings` say, `update` being the solver type; `test_nets` look at the same parameters.

    Each iteration: (test if due) · clear gradients · iter_size times forward and backward · clip by the global L2 norm ·
    divide by iter_size · weight decay · the type's rule · subtract · (snapshot if due).

    A restored solver goes on bit for bit as the unbroken run: parameters, histories, iteration and step count come from the
    files; the draws of random layers and the places of data sources follow from the iteration.
    """

    def __init__(
        self,
        net: Net,
        settings: Settings,
        update: Update,
        *,
        test_nets: Sequence[Net] = (),
        communicator: Communicator | None = None,
    ) -> None:
        if len(test_nets) != len(settings.test_iter):
            raise ArgumentError(
                "each test net needs its number of batches",
                given={"test_iter": settings.test_iter, "test nets": len(test_nets)},
                required=f"as many test_iter as test nets: {len(settings.test_iter)} against {len(test_nets)}",
                because="Caffe, src/caffe/solver.cpp, InitTestNets",
                hint="test_iter: 100, once for each test net",
            )
        update.check(settings.constants)
        self.net = net
        self.settings = settings
        self.update = update
        self.test_nets = list(test_nets)
        self.communicator: Communicator = communicator or Alone()
        self.iter = 0
        self.current_step = 0
        self.listeners: list[Listener] = []
        self.on_start: list[Callable[[], object]] = []
        """Called when an iteration begins, its gradients cleared."""
        self.on_gradients: list[Callable[[], object]] = []
        """Called when an iteration's gradients are gathered, before they become the update."""
        self.history: list[Array] = [
            np.zeros(parameter.shape, parameter.dtype) for _ in range(update.slots) for parameter in net.learnable
        ]
        self._stop = False
        self._losses: deque[float] = deque(maxlen=settings.average_loss)
        for test_net in self.test_nets:
            test_net.share_params(net)
        self.communicator.broadcast([parameter.data for parameter in net.learnable])

    @property
    def rate(self) -> float:
        """The learning rate of the iteration that comes next."""
        return rate(self.settings.policy, self.iter, advance(self.settings.policy, self.iter, self.current_step))

    @property
    def stopping(self) -> bool:
        """Whether a stop was requested since the last call of `step`."""
        return self._stop

    def add_listener(self, listener: Listener) -> None:
        """Call `listener(event)` for each IterationDone, NetTested and SnapshotWritten."""
        self.listeners.append(listener)

    def request_stop(self) -> None:
        """Stop after the iteration that runs now; `solve` then still writes its last snapshot."""
        self._stop = True

    def step(self, iterations: int = 1) -> None:
        """Run so many iterations, or fewer if someone requests a stop. Raises ArgumentError: no whole number, or one below 0."""
        if isinstance(iterations, bool) or not isinstance(iterations, int | np.integer) or iterations < 0:
            raise ArgumentError(
                "iterations are counted",
                given={"iterations": iterations},
                required=f"a whole number >= 0: {iterations!r}",
                operator="step",
                hint="step(100)",
            )
        self._stop = False
        self._losses.clear()
        for _ in range(iterations):
            if self._test_is_due():
                self.test()
            if self.stopping:
                return
            self._tell(self._iterate())
            every = self.settings.snapshot
            if every and self.iter % every == 0:
                self.snapshot()
            if self.stopping:
                return

    def solve(self) -> None:
        """Run to max_iter, then write a snapshot and test once more, as the settings ask."""
        self.step(max(0, self.settings.max_iter - self.iter))
        every = self.settings.snapshot
        if self.settings.snapshot_after_train and not (every and self.iter % every == 0):
            self.snapshot()
        if not self.stopping and self.settings.test_interval and self.iter % self.settings.test_interval == 0:
            self.test()

    def test(self) -> list[Outputs]:
        """The mean of each output of each test net over its test_iter batches."""
        results: list[Outputs] = []
        for number, (net, batches) in enumerate(zip(self.test_nets, self.settings.test_iter)):
            totals: dict[str, npt.NDArray[np.float64]] = {}
            loss = 0.0
            for _ in range(batches):
                for name, value in net.forward().items():
                    totals[name] = totals[name] + value if name in totals else value.astype(np.float64)
                loss += net.loss
            means = {name: total / batches for name, total in totals.items()}
            self._tell(NetTested(self.iter, number, means, loss / batches if self.settings.test_compute_loss else None))
            results.append(means)
        return results

    def snapshot(self, directory: str | PathLike[str] | None = None) -> SnapshotWritten:
        """Write `<prefix>_iter_<n>.caffemodel` and `.solverstate`, into `directory` or where the prefix points."""
        prefix = Path(self.settings.snapshot_prefix)
        if directory is not None:
            prefix = Path(directory) / prefix.name
        written = snapshot.write(self, prefix)
        self._tell(written)
        return written

    def restore(self, path: str | PathLike[str], *, weights: str | PathLike[str] | None = None) -> None:
        """Continue from a .solverstate and the .caffemodel beside it, or that it names, or `weights`."""
        snapshot.restore(self, Path(path), None if weights is None else Path(weights))
        self._seek()

    def _test_is_due(self) -> bool:
        every = self.settings.test_interval
        return bool(every) and self.iter % every == 0 and (self.iter > 0 or self.settings.test_initialization)

    def _iterate(self) -> IterationDone:
        start = time.perf_counter()
        settings, net = self.settings, self.net
        show = bool(settings.display) and self.iter % settings.display == 0
        net.debug_info = settings.debug_info and show
        net.clear_param_diffs()
        _call(self.on_start)
        loss = 0.0
        outputs: dict[str, Array] = {}
        # Numbers that leave their range are reported by the checks, with their place; NumPy's warnings would only repeat it.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for _ in range(settings.iter_size):
                outputs = net.forward()
                check_loss(net, self.iter)
                net.backward()
                loss += net.loss
        loss /= settings.iter_size
        self._losses.append(loss)
        _call(self.on_gradients)
        used = self.apply_update()
        self.iter += 1
        return IterationDone(
            iteration=self.iter - 1,
            loss=loss,
            smoothed_loss=sum(self._losses) / len(self._losses),
            rate=used,
            seconds=time.perf_counter() - start,
            show=show,
            outputs=outputs,
        )

    def apply_update(self) -> float:
        """Turn the gathered gradients into the update, and subtract it: what `step` does after its passes.

        The iteration does not move on. Returns the learning rate that was used.
        """
        parameters, settings = self.net.learnable, self.settings
        self.current_step = advance(settings.policy, self.iter, self.current_step)
        used = factor = rate(settings.policy, self.iter, self.current_step)
        if self.communicator.size > 1:
            self.communicator.all_reduce([parameter.diff for parameter in parameters])
            scale(parameters, 1 / self.communicator.size)
        check_gradients(self.net, self.iter)
        clip(parameters, settings.clip_gradients)
        scale(parameters, 1 / settings.iter_size)
        if self.update.correction is not None:
            factor *= self.update.correction(self.iter, settings.constants)
        for index, parameter in enumerate(parameters):
            diff = parameter.diff
            regularize(parameter, settings.weight_decay, settings.regularization)
            history = self.history[index :: len(parameters)]
            self.update.compute(diff, history, factor * parameter.lr_mult, settings.constants)
            parameter.data[...] -= diff
        return used

    def _seek(self) -> None:
        """Random layers and data sources to where the unbroken run has them at this iteration."""
        passes = self.iter * self.settings.iter_size
        self.net.draws = passes
        _place(self.net, passes)
        every = self.settings.test_interval
        tests = -(-self.iter // every) - (self.iter > 0 and not self.settings.test_initialization) if every else 0
        for net, batches in zip(self.test_nets, self.settings.test_iter):
            _place(net, tests * batches)

    def _tell(self, event: Event) -> None:
        for listener in self.listeners:
            listener(event)


def _place(net: Net, batches: int) -> None:
    for layer in net.layers:
        if isinstance(layer, MemoryData):
            layer.reset(batches * layer.batch_size)


def _call(listeners: Sequence[Callable[[], object]]) -> None:
    for listener in listeners:
        listener()
