"""astride test: the outputs of a network with a data layer, averaged over batches."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import _arguments as arguments
from ._output import Json, note, print_json, table, to_stdout

EXAMPLES = (
    "astride test train_val.prototxt weights.caffemodel --data digits.npz --iterations 20",
    "astride test lenet_train_test.prototxt lenet.caffemodel --data images.npy --labels labels.npy --scale 0.00390625",
    "astride test train_val.prototxt weights.caffemodel --python-layer my_layers",
)


BATCHES = 50
"""As many as `caffe test` runs where nothing is said."""

Net = Annotated[str, typer.Argument(metavar="NET", help="The network's text, with its data layer.")]
Weights = Annotated[str, typer.Argument(metavar="WEIGHTS", help="Its weights (.caffemodel).")]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data", metavar="FILE", help="Images (N,C,H,W) as .npy, or an .npz with data and labels. Default: as the text says."
    ),
]
Labels = Annotated[Path | None, typer.Option("--labels", metavar="FILE", help="Labels (N,) as .npy.")]
Scale = Annotated[float, typer.Option("--scale", metavar="N", help="Multiply the images.")]
Iterations = Annotated[
    int | None, typer.Option("--iterations", "-i", min=1, metavar="N", help="Batches. Default: all of --data once, else 50.")
]
Phase = Annotated[str, typer.Option("--phase", metavar="NAME", help="TRAIN or TEST.")]
Backend = Annotated[str | None, typer.Option("--backend", metavar="NAME", help="Who computes.")]


def test(
    net: Net,
    weights: Weights,
    data: Data = None,
    labels: Labels = None,
    scale: Scale = 1.0,
    iterations: Iterations = None,
    phase: Phase = "TEST",
    backend: Backend = None,
    dialect: arguments.Dialect = None,
    python_layer: arguments.PythonLayer = None,
    json: Json = False,
) -> None:
    """Run a network over labelled samples and print the mean of each of its outputs: loss, accuracy, ...

    The samples of --data go into the network's data layer, of whatever kind that is, in their own order. Without it the layer
    draws from the database or files that the text names.
    """
    from ..caffe import load_caffe
    from ..settings import use
    from . import _feeding as feeding

    source = None if data is None else feeding.labelled(*feeding.load_samples(data, labels, scale))
    python = arguments.python_layers(python_layer)
    built = feeding.fed_net(
        lambda sources: load_caffe(net, weights, phase=phase.upper(), dialect=dialect, sources=sources, python_layers=python),
        source,
    )
    if source is not None:
        feeding.attach(built, source)
    batch = built.batch_size
    batches = iterations or (BATCHES if source is None else max(len(source) // batch, 1))
    if iterations is None and source is not None and len(source) % batch:
        left = len(source) - batches * batch
        note(f"{len(source)} samples are no whole number of batches of {batch}: the last {left} are left out")
    with use(backend=backend):
        means, loss, seconds = _means(built, batches)
    if json:
        print_json({"iterations": batches, "batch_size": batch, "outputs": means, "loss": loss, "seconds": seconds})
        return
    console = to_stdout()
    shown = table("output", "mean", right=("mean",))
    for name, value in means.items():
        if value.size == 1:
            shown.add_row(name, f"{float(value):.6g}")
        else:
            shown.add_row(f"{name} {value.shape}", f"{value.min():.4g} .. {value.max():.4g}")
    console.print(shown)
    console.print(f"{batches} batches of {batch} in {seconds:.1f} s ({batches * batch / seconds:.0f} samples/s)")


def _means(net: Any, batches: int) -> tuple[dict[str, Any], float, float]:
    """The mean of each output and of the loss, and the seconds it took."""
    import time

    from rich.progress import track

    from ._output import to_stderr

    totals: dict[str, Any] = {}
    loss = 0.0
    begin = time.perf_counter()
    console = to_stderr()
    for _ in track(range(batches), "testing", console=console, transient=True, disable=not console.is_terminal):
        for name, value in net.forward().items():
            totals[name] = totals.get(name, 0.0) + value.astype("float64")
        loss += net.loss
    return {name: total / batches for name, total in totals.items()}, loss / batches, time.perf_counter() - begin
