"""astride time: how long each layer of a network takes, forward and backward."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import _arguments as arguments
from ._output import Json, amount, note, print_json, shape_text, table, to_stderr, to_stdout

if TYPE_CHECKING:
    from ..bench.network import NetworkTime
    from ..explain.layer import LayerView
    from ..net import Net

EXAMPLES = (
    "astride time deploy.prototxt",
    "astride time deploy.prototxt weights.caffemodel --iterations 50 --batch 8",
    "astride time train_val.prototxt --phase TRAIN --sort",
    "astride time deploy.prototxt --forward --backend reference:im2col --json",
)

Prototxt = Annotated[str, typer.Argument(metavar="PROTOTXT", help="The network's text.")]
Weights = Annotated[str | None, typer.Argument(metavar="[WEIGHTS]", help="Its weights. Default: random ones.")]
Iterations = Annotated[int, typer.Option("--iterations", "-i", min=1, metavar="N", help="Passes; the median counts.")]
Batch = Annotated[int | None, typer.Option("--batch", min=1, metavar="N", help="Images a pass. Default: as the text has it.")]
Phase = Annotated[str, typer.Option("--phase", metavar="NAME", help="TRAIN or TEST: which layers are there.")]
Forward = Annotated[bool, typer.Option("--forward", help="No backward pass.")]
Sort = Annotated[bool, typer.Option("--sort", help="The slowest layers first.")]
Data = Annotated[Path | None, typer.Option("--data", metavar="FILE", help="For data layers: .npy, or .npz with labels.")]
Labels = Annotated[Path | None, typer.Option("--labels", metavar="FILE", help="Labels (N,) as .npy.")]
Backend = Annotated[str | None, typer.Option("--backend", metavar="NAME", help="Who computes.")]


def time(
    prototxt: Prototxt,
    weights: Weights = None,
    iterations: Iterations = 10,
    batch: Batch = None,
    phase: Phase = "TEST",
    forward: Forward = False,
    sort: Sort = False,
    data: Data = None,
    labels: Labels = None,
    backend: Backend = None,
    dialect: arguments.Dialect = None,
    python_layer: arguments.PythonLayer = None,
    json: Json = False,
) -> None:
    """Time a network layer by layer: the median of its passes, forward and backward, and of the whole.

    Inputs are random unless --data gives samples, weights too unless there are some. One pass before those that count makes
    the memory. Every gradient is computed, down to the inputs, as when a network is trained.
    """
    from ..bench.network import time_network
    from ..settings import use

    options = dict(phase=phase.upper(), dialect=dialect, python_layers=arguments.python_layers(python_layer))
    net = _network(prototxt, weights, options, batch, data, labels)
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = to_stderr()
    bar = Progress(
        TextColumn("timing"), BarColumn(), MofNCompleteColumn(), console=console, transient=True, disable=not console.is_terminal
    )
    with bar, use(backend=backend):
        task = bar.add_task("timing", total=iterations + 1)
        timed = time_network(net, iterations, backward=not forward, progress=lambda: bar.advance(task))
    if timed.stopped is not None:
        note(f"no backward pass: {timed.stopped}")
    if json:
        print_json(_data(net, timed, iterations))
    else:
        _show(net, timed, iterations, sort)


def _network(
    prototxt: str, weights: str | None, options: dict[str, Any], batch: int | None, data: Path | None, labels: Path | None
) -> Net:
    from ..bench.network import fill
    from ..caffe import load_caffe
    from . import _feeding as feeding

    source = None if data is None else feeding.labelled(*feeding.load_samples(data, labels, 1.0))
    net = feeding.fed_net(lambda sources: load_caffe(prototxt, weights, sources=sources, **options), source)
    if source is not None:
        feeding.attach(net, source)
    if batch is not None:
        if not net.inputs:
            raise typer.BadParameter("a network with data layers has its batch size in its text", param_hint="--batch")
        net.reshape(**{name: (batch, *net.blobs[name].shape[1:]) for name in net.inputs})
    fill(net, weights=weights is None)
    return net


def _rows(net: Net, timed: NetworkTime) -> list[tuple[LayerView, float, float | None]]:
    from ..explain.layer import layer_views

    return [
        (view, layer.median("forward") or 0.0, layer.median("backward"))
        for view, layer in zip(layer_views(net), timed.layers, strict=True)
    ]


def _data(net: Net, timed: NetworkTime, iterations: int) -> dict[str, Any]:
    from statistics import median

    return {
        "name": net.name,
        "phase": net.phase.value,
        "iterations": iterations,
        "batch_size": net.batch_size,
        "layers": [
            {
                "name": view.name,
                "type": view.type,
                "output": view.tops[0][1] if view.tops else (),
                "multiply_adds": view.products,
                "forward_seconds": ahead,
                "backward_seconds": back,
            }
            for view, ahead, back in _rows(net, timed)
        ],
        "forward_seconds": median(timed.forward),
        "backward_seconds": median(timed.backward) if timed.backward else None,
        "no_backward": timed.stopped,
    }


def _show(net: Net, timed: NetworkTime, iterations: int, sort: bool) -> None:
    from statistics import median

    console = to_stdout()
    rows = _rows(net, timed)
    total = sum(ahead for _, ahead, _ in rows) or 1.0
    if sort:
        rows.sort(key=lambda row: -(row[1] + (row[2] or 0)))
    heads = ("layer", "type", "output", "forward", "", "backward", "mul-adds")
    shown = table(*heads, right=("forward", "", "backward", "mul-adds"))
    for view, ahead, back in rows:
        if view.type in ("Split", "Input"):
            continue
        shown.add_row(
            view.name,
            view.type,
            shape_text(view.tops[0][1]) if view.tops else "",
            duration(ahead),
            f"{ahead / total:.0%}",
            "" if back is None else duration(back),
            amount(view.products) if view.products else "",
        )
    console.print(shown)
    ahead = median(timed.forward)
    words = [f"forward {duration(ahead)}"]
    if timed.backward:
        back = median(timed.backward)
        words += [f"backward {duration(back)}", f"both {duration(ahead + back)}"]
    console.print(f"{', '.join(words)}: the median of {iterations} passes of {net.batch_size}")
    products = sum(view.products for view, _, _ in rows)
    if products:
        console.print(f"{amount(products)} multiply-adds, {amount(products / ahead)} a second forward")


def duration(seconds: float) -> str:
    """12.3 ms"""
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}" if seconds * factor < 1000 else f"{seconds * factor:.0f} {unit}"
    return f"{seconds * 1e6:.0f} us"
