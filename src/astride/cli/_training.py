"""What `astride train` does: a solver fed from arrays, run under a progress bar, stopped cleanly by Ctrl-C."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from ..caffe import load_solver
from ..data import ShuffledSource
from ..errors import ArgumentError
from ..layers import ArraySource, Source
from ..train import Event, IterationDone, NetTested, SnapshotWritten, Solver
from . import _feeding as feeding
from ._output import to_stderr


@dataclass(frozen=True, slots=True)
class Samples:
    """Where training and test samples come from."""

    data: Path | None
    labels: Path | None
    test_data: Path | None
    test_labels: Path | None
    hold_out: float | None
    scale: float
    shuffle: bool

    def sources(self, seed: int) -> tuple[Source | None, Source | None]:
        """(for the train net, for the test nets)."""
        if self.data is None:
            return None, self._test()
        images, labels = feeding.load_samples(self.data, self.labels, self.scale)
        test = self._test()
        if self.hold_out is not None:
            if test is not None:
                raise ArgumentError(
                    "test samples come from one place",
                    given={"hold_out": self.hold_out, "test_data": str(self.test_data)},
                    hint="--hold-out or --test-data",
                )
            (images, labels), held_out = feeding.split(images, labels, self.hold_out, seed)
            test = ArraySource(*held_out)
        return (ShuffledSource(images, labels, seed=seed) if self.shuffle else ArraySource(images, labels)), test

    def _test(self) -> Source | None:
        if self.test_data is None:
            return None
        return ArraySource(*feeding.load_samples(self.test_data, self.test_labels, self.scale))


@dataclass(slots=True)
class History:
    """What happened."""

    loss: float = float("nan")
    seconds: float = 0.0
    iterations: int = 0
    batch: int = 1
    stopped: bool = False
    tests: list[NetTested] = field(default_factory=list)
    snapshots: list[SnapshotWritten] = field(default_factory=list)

    @property
    def speed(self) -> float:
        """Samples a second, tests not counted."""
        return self.iterations * self.batch / self.seconds if self.seconds else 0.0


def build(
    text: str,
    samples: Samples,
    *,
    weights: Path | None,
    iterations: int | None,
    seed: int | None,
    prefix: Path | None,
    dialect: str | None = None,
    python_layers: Sequence[ModuleType] = (),
) -> Solver:
    """The solver with its data layers fed. Raises ArgumentError: a data layer without data."""
    source, test = samples.sources(seed or 0)
    solver = feeding.fed_solver(
        lambda mine, theirs: load_solver(
            text,
            weights=weights,
            sources=mine,
            test_sources=theirs,
            seed=seed,
            snapshot_prefix=prefix,
            dialect=dialect,
            python_layers=python_layers,
        ),
        source,
        test,
    )
    for net, given, hint in (
        (solver.net, source, "--data digits.npz"),
        *((n, test, "--hold-out 0.1, or --test-data") for n in solver.test_nets),
    ):
        empty = [name for name, present in net.sources.items() if present is None]
        if empty and given is None:
            problem = f"the {'train' if net is solver.net else 'test'} net has a data layer without data"
            raise ArgumentError(problem, given={"data layers": empty}, required="samples for it", hint=hint)
        if empty and given is not None:
            feeding.attach(net, given)
    if iterations is not None:
        solver.settings = replace(solver.settings, max_iter=iterations)
    return solver


def train(solver: Solver) -> History:
    """Run to the end, or until Ctrl-C; then a snapshot is written, whatever the solver says."""
    history = History(batch=solver.net.batch_size * solver.settings.iter_size)

    def listen(event: Event) -> None:
        if isinstance(event, IterationDone):
            history.loss = event.smoothed_loss
            history.seconds += event.seconds
            history.iterations += 1
        elif isinstance(event, NetTested):
            history.tests.append(event)
        elif isinstance(event, SnapshotWritten):
            history.snapshots.append(event)

    solver.add_listener(listen)
    with _Bar(solver, history) as bar, _stops_on_interrupt(solver, bar.say):
        solver.add_listener(bar.listen)
        solver.solve()
        history.stopped = solver.stopping
        if history.stopped and not any(written.iteration == solver.iter for written in history.snapshots):
            solver.snapshot()
    return history


@contextmanager
def _stops_on_interrupt(solver: Solver, say: Callable[[str], None]) -> Iterator[None]:
    """The first Ctrl-C lets the running iteration end, a second one ends at once."""

    def stop(number: int, frame: Any) -> None:
        if solver.stopping:
            raise KeyboardInterrupt
        say("stopping after this iteration; Ctrl-C again to stop at once")
        solver.request_stop()

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class _Bar:
    """Loss, accuracy, samples per second and time left on stderr; without a terminal the solver's display lines."""

    def __init__(self, solver: Solver, history: History) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = to_stderr()
        self.lines = not console.is_terminal
        self.history = history
        self.progress = Progress(
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("loss {task.fields[loss]}{task.fields[tested]}  {task.fields[speed]} samples/s"),
            TimeRemainingColumn(compact=True),
            TextColumn("left"),
            console=console,
            disable=self.lines,
        )
        self.task = self.progress.add_task(
            "", total=solver.settings.max_iter, completed=solver.iter, loss="-", tested="", speed="-"
        )

    def listen(self, event: Event) -> None:
        """Show what the solver tells."""
        if isinstance(event, IterationDone):
            speed = f"{self.history.speed:.0f}"
            self.progress.update(self.task, completed=event.iteration + 1, loss=f"{event.smoothed_loss:.4g}", speed=speed)
            if self.lines and event.show:
                self.say(f"iteration {event.iteration}, loss {event.smoothed_loss:.6g}, rate {event.rate:.6g}, {speed} samples/s")
        elif isinstance(event, NetTested):
            means = {name: float(value.mean()) for name, value in event.outputs.items() if value.size == 1}
            if "accuracy" in means:
                self.progress.update(self.task, tested=f"  accuracy {means['accuracy']:.4f}")
            if self.lines:
                self.say(
                    f"iteration {event.iteration}, test: " + ", ".join(f"{name} {value:.6g}" for name, value in means.items())
                )
        else:
            self.say(f"wrote {event.model}")

    def say(self, text: str) -> None:
        """A remark above the bar."""
        self.progress.console.print(text, style="dim", markup=False)

    def __enter__(self) -> _Bar:
        self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()
