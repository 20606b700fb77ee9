"""astride train: a Caffe solver at work, with a bar, snapshots and a clean stop."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import _arguments as arguments
from ._errors import INTERRUPTED
from ._output import Json, note, print_json, table, to_stdout

if TYPE_CHECKING:
    from ..train import Solver
    from ._training import History

EXAMPLES = (
    "astride train solver.prototxt --data digits.npz --hold-out 0.2",
    "astride train solver.prototxt --data x.npy --labels y.npy --test-data tx.npy --test-labels ty.npy",
    "astride train solver.prototxt --data digits.npz --snapshot lenet_iter_200.solverstate",
    "astride train solver.prototxt --data digits.npz --weights bvlc.caffemodel --seed 1 --json",
)


SolverText = Annotated[str, typer.Argument(metavar="SOLVER", help="The solver's text (solver.prototxt).")]
Data = Annotated[
    Path | None, typer.Option("--data", metavar="FILE", help="Images (N,C,H,W) as .npy, or an .npz with data and labels.")
]
Labels = Annotated[Path | None, typer.Option("--labels", metavar="FILE", help="Labels (N,) as .npy.")]
TestData = Annotated[Path | None, typer.Option("--test-data", metavar="FILE", help="The same for the test nets.")]
TestLabels = Annotated[Path | None, typer.Option("--test-labels", metavar="FILE", help="The same for the test nets.")]
HoldOut = Annotated[
    float | None, typer.Option("--hold-out", metavar="SHARE", help="Keep this share of --data for the test nets, as 0.2.")
]
Scale = Annotated[float, typer.Option("--scale", metavar="N", help="Multiply all images.")]
Shuffle = Annotated[bool, typer.Option("--shuffle/--in-order", help="A new order of the training samples each epoch.")]
Snapshot = Annotated[Path | None, typer.Option("--snapshot", metavar="FILE", help="Resume from this .solverstate.")]
Weights = Annotated[Path | None, typer.Option("--weights", metavar="FILE", help="Begin with these weights (.caffemodel).")]
Iterations = Annotated[
    int | None, typer.Option("--iterations", "-i", min=1, metavar="N", help="Instead of the solver's max_iter.")
]
Seed = Annotated[int | None, typer.Option("--seed", min=0, metavar="N", help="For fillers, dropout and the order of samples.")]
Prefix = Annotated[Path | None, typer.Option("--snapshot-prefix", metavar="PATH", help="Instead of the solver's.")]
Backend = Annotated[str | None, typer.Option("--backend", metavar="NAME", help="Who computes.")]


def train(
    solver: SolverText,
    data: Data = None,
    labels: Labels = None,
    test_data: TestData = None,
    test_labels: TestLabels = None,
    hold_out: HoldOut = None,
    scale: Scale = 1.0,
    shuffle: Shuffle = True,
    snapshot: Snapshot = None,
    weights: Weights = None,
    iterations: Iterations = None,
    seed: Seed = None,
    prefix: Prefix = None,
    backend: Backend = None,
    dialect: arguments.Dialect = None,
    python_layer: arguments.PythonLayer = None,
    json: Json = False,
) -> None:
    """Train a network as a Caffe solver says, with a bar that shows loss, accuracy, speed and the time left.

    Data layers of whatever kind are fed from arrays. Ctrl-C writes a snapshot and stops; --snapshot goes on from there, bit
    for bit (with the same --seed and data).
    """
    from ..settings import use
    from . import _training as training

    built = training.build(
        solver,
        training.Samples(data, labels, test_data, test_labels, hold_out, scale, shuffle),
        weights=weights,
        iterations=iterations,
        seed=seed,
        prefix=prefix,
        dialect=dialect,
        python_layers=arguments.python_layers(python_layer),
    )
    if snapshot is not None:
        built.restore(snapshot)
        note(f"resumed at iteration {built.iter} from {snapshot}")
    with use(backend=backend):
        history = training.train(built)
    if json:
        print_json(_as_data(built, history))
    else:
        _show(built, history, solver)
    if history.stopped:
        raise typer.Exit(INTERRUPTED)


def _as_data(solver: Solver, history: History) -> dict[str, Any]:
    return {
        "iterations": solver.iter,
        "stopped": history.stopped,
        "loss": history.loss,
        "seconds": history.seconds,
        "samples_per_second": history.speed,
        "tests": [{"iteration": t.iteration, "net": t.net, "outputs": dict(t.outputs), "loss": t.loss} for t in history.tests],
        "snapshots": [{"iteration": s.iteration, "model": s.model, "state": s.state} for s in history.snapshots],
    }


def _show(solver: Solver, history: History, text: str) -> None:
    console = to_stdout()
    if history.tests:
        names = list(dict.fromkeys(name for test in history.tests for name in test.outputs))
        shown = table("iteration", "test net", *names, right=("iteration", "test net", *names))
        for test in history.tests[-8:]:
            cells = [test.outputs.get(name) for name in names]
            shown.add_row(str(test.iteration), str(test.net), *("" if c is None else f"{float(c.mean()):.5g}" for c in cells))
        console.print(shown)
    console.print(
        f"iteration {solver.iter}, loss {history.loss:.5g}, {history.seconds:.1f} s of training ({history.speed:.0f} samples/s)"
    )
    for written in history.snapshots[-1:]:
        console.print(f"weights  {written.model}\nstate    {written.state}", markup=False)
        if history.stopped:
            console.print(f"stopped; go on with  astride train {text} --snapshot {written.state} ...", markup=False)
