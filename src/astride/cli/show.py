"""astride show: the layers of a network or the contents of a weight file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import _arguments as arguments
from ._output import Json, amount, note, print_json, shape_text, size, table, to_stdout

if TYPE_CHECKING:
    from ..net import Net
    from ..proto import NetFile

EXAMPLES = (
    "astride show deploy.prototxt",
    "astride show train_val.prototxt --phase TRAIN --png network.png",
    "astride show deploy.prototxt --html network.html",
    "astride show weights.caffemodel",
    "astride show deploy.prototxt --json",
)


TYPE = 17
"""Columns that a layer's type gets at least."""

File = Annotated[Path, typer.Argument(metavar="PROTOTXT|CAFFEMODEL", help="A network's text, or a file of weights.")]
Phase = Annotated[str, typer.Option("--phase", metavar="NAME", help="TRAIN or TEST: which layers are there.")]
Png = Annotated[Path | None, typer.Option("--png", metavar="FILE", help="Draw the network to this file.")]
Svg = Annotated[Path | None, typer.Option("--svg", metavar="FILE", help="Draw the network to this file.")]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="The drawing and the table as one page.")]


def show(
    file: File,
    phase: Phase = "TEST",
    png: Png = None,
    svg: Svg = None,
    html: Html = None,
    dialect: arguments.Dialect = None,
    python_layer: arguments.PythonLayer = None,
    json: Json = False,
) -> None:
    """List a network's layers with shapes, parameters, multiply-adds and memory, or the arrays in a .caffemodel.

    With --png, --svg or --html the network is also drawn: a box a layer, the blobs between them with their shapes.
    """
    if _is_binary(file):
        if any(path is not None for path in (png, svg, html)):
            raise typer.BadParameter(
                "a .caffemodel alone cannot be drawn: give its prototxt", param_hint="--png / --svg / --html"
            )
        _show_weights(file, json)
        return
    from ..caffe import load_caffe

    net = load_caffe(file, phase=phase.upper(), dialect=dialect, python_layers=arguments.python_layers(python_layer))
    for path in (png, svg):
        if path is not None:
            from ..draw import draw_network

            draw_network(net).save(path)
            note(f"wrote {path}")
    if html is not None:
        from ..draw.page import network_page
        from ..proto import atomic_write

        atomic_write(html, [network_page(net).encode()])
        note(f"wrote {html}")
    if json:
        print_json(_net_data(net))
    else:
        _show_net(net)


def _is_binary(file: Path) -> bool:
    """Whether to read it as weights. What it really is, is for the readers to find out and say."""
    if file.suffix == ".prototxt" or not file.is_file():
        return file.suffix == ".caffemodel"
    if file.suffix == ".caffemodel":
        return True
    with file.open("rb") as opened:
        head = opened.read(4096)
    return any(byte < 9 or 13 < byte < 32 for byte in head)


# A network


def _totals(net: Net) -> dict[str, int]:
    """Counts of the whole network; bytes of what a forward pass keeps."""
    from ..explain.layer import layer_views, parameter_counts
    from ..net.memory import Ledger

    count, learned = parameter_counts(net)
    blobs, parameters = Ledger(), Ledger()
    blobs.add(net.blobs.values())
    parameters.add(net.learnable)
    return {
        "layers": len(net.nodes),
        "parameters": count,
        "learned": learned,
        "parameter_bytes": parameters.total,
        "blob_bytes": blobs.total,
        "multiplications": sum(view.products for view in layer_views(net)),
    }


def _net_data(net: Net) -> dict[str, Any]:
    from ..explain.layer import layer_views

    return {
        "name": net.name,
        "phase": net.phase.value,
        "inputs": {name: net.blobs[name].shape for name in net.inputs},
        "outputs": {name: net.blobs[name].shape for name in net.outputs},
        "layers": [view.to_dict() for view in layer_views(net)],
        "totals": _totals(net),
    }


def _show_net(net: Net) -> None:
    from ..explain.layer import layer_views, parameter_text

    console = to_stdout()
    console.print(f"[bold]{net.name or 'network'}[/bold], phase {net.phase.value}")
    shown = table("layer", "type", "output", "weights", "mul-adds", "memory", right=("weights", "mul-adds", "memory"))
    rows = []
    for view in layer_views(net):
        if view.type == "Split":
            continue
        outputs = "\n".join(shape_text(shape) for _, shape in view.tops)
        memory = "in place" if view.in_place else size(sum(net.blobs[name].count * 4 for name, _ in view.tops))
        counts = [amount(count) if count else "" for count in (view.numbers, view.products)]
        rows.append((view.name, f"{view.type} {view.summary}".strip(), outputs, *counts, memory))
    for column in shown.columns[2:]:
        column.no_wrap = True
    # Names get what the other columns leave, and are folded beyond.
    widths = [
        max(len(line) for text in (shown.columns[i].header, *(row[i] for row in rows)) for line in str(text).split("\n"))
        for i in range(6)
    ]
    left = console.width - sum(widths[2:]) - 2 * len(widths) - TYPE
    shown.columns[0].min_width = max(min(widths[0], left), 5)
    for row in rows:
        shown.add_row(*row)
    console.print(shown)
    totals = _totals(net)
    console.print(
        f"inputs   {', '.join(f'{name} {shape_text(net.blobs[name].shape)}' for name in net.inputs) or 'its data layers'}"
    )
    console.print(f"outputs  {', '.join(f'{name} {shape_text(net.blobs[name].shape)}' for name in net.outputs)}")
    console.print(
        f"{parameter_text(net)} ({size(totals['parameter_bytes'])}), blobs {size(totals['blob_bytes'])}, "
        f"{amount(totals['multiplications'])} multiply-adds a pass"
    )


# Weights


def _weights_data(file: NetFile) -> list[dict[str, Any]]:
    import numpy as np

    rows = []
    for layer, blobs in zip(file.layers, file.blobs):
        arrays = []
        for blob in blobs:
            some = blob.data.size > 0
            finite = bool(np.isfinite(blob.data).all())
            arrays.append(
                {
                    "shape": blob.shape,
                    "dtype": blob.data.dtype.name,
                    "min": float(blob.data.min()) if some else None,
                    "max": float(blob.data.max()) if some else None,
                    "mean": float(blob.data.mean(dtype=np.float64)) if some else None,
                    "finite": finite,
                }
            )
        rows.append({"name": _layer_name(layer), "type": _layer_type(layer), "blobs": arrays})
    return rows


def _layer_name(layer: Any) -> str:
    inner = layer.DESCRIPTOR.name == "V1LayerParameter" and layer.HasField("layer")
    return str(layer.layer.name if inner else layer.name)


def _layer_type(layer: Any) -> str:
    from ..caffe.state import enum_name

    if layer.DESCRIPTOR.name != "V1LayerParameter":
        return str(layer.type)
    return str(layer.layer.type) if layer.HasField("layer") else enum_name(layer, "type")


def _show_weights(path: Path, json: bool) -> None:
    from math import prod

    from ..proto import read_caffemodel

    file = read_caffemodel(path)
    rows = _weights_data(file)
    counts = [prod(blob["shape"]) for row in rows for blob in row["blobs"]]
    if json:
        print_json(
            {
                "name": file.message.name,
                "layers": rows,
                "totals": {"layers": len(rows), "blobs": len(counts), "numbers": sum(counts)},
            }
        )
        return
    console = to_stdout()
    console.print(f"[bold]{file.message.name or path.name}[/bold]")
    shown = table(
        "layer", "type", "shape", "numbers", "least", "greatest", "mean", right=("numbers", "least", "greatest", "mean")
    )
    silent = 0
    for row in rows:
        silent += not row["blobs"]
        for i, blob in enumerate(row["blobs"]):
            stats = [f"{blob[key]:.3g}" if blob[key] is not None else "" for key in ("min", "max", "mean")]
            label = ("", "") if i else (row["name"], row["type"])
            shown.add_row(*label, shape_text(tuple(blob["shape"])), f"{prod(blob['shape']):,}", *stats)
            if not blob["finite"]:
                note(f"layer {row['name']}: blob {i} holds NaN or infinity")
    console.print(shown)
    console.print(f"{sum(counts):,} numbers in {len(counts)} arrays" + (f"; {silent} layers without any" if silent else ""))
