"""astride tune: measure which algorithm computes each convolution of a network fastest on this machine, and remember it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ArgumentError
from ._output import Json, print_json, table, to_stderr, to_stdout

if TYPE_CHECKING:
    from ..backends.cpu.conv_tune import Measured
    from ..net import Net

EXAMPLES = (
    "astride tune deploy.prototxt",
    "astride tune deploy.prototxt --layer conv1 --batch 8 --threads 2",
    "astride tune --forget",
)

Prototxt = Annotated[str | None, typer.Argument(metavar="[PROTOTXT]", help="The network's text.")]
LayerName = Annotated[str | None, typer.Option("--layer", metavar="NAME", help="This layer only.")]
Batch = Annotated[int | None, typer.Option("--batch", min=1, metavar="N", help="Images a pass. Default: as the text has it.")]
Threads = Annotated[int | None, typer.Option("--threads", min=1, metavar="N", help="Default: as many as there are.")]
Seconds = Annotated[float, typer.Option("--seconds", min=0.0, metavar="S", help="Of each direction of a layer.")]
Forget = Annotated[bool, typer.Option("--forget", help="Forget everything that was measured.")]


def tune(
    prototxt: Prototxt = None,
    layer: LayerName = None,
    batch: Batch = None,
    threads: Threads = None,
    seconds: Seconds = 0.3,
    forget: Forget = False,
    json: Json = False,
) -> None:
    """Measure the algorithms of every convolution in a network, forward and both gradients, and remember the fastest.

    Without it they are chosen by sizes. What is remembered holds for convolutions of the same sizes in any network, on this
    machine and with this version of astride, until `--forget`; `astride.use(tuned=False)` does without it. Algorithms round
    in different places, so tuned results may differ from others in their last digits.
    """
    from ..backends.cpu import conv_choice, conv_tune, conv_tuned

    if forget:
        count = conv_tuned.clear()
        conv_choice.forget()
        _say({"forgotten": count}, f"{count} measurement{'' if count == 1 else 's'} forgotten", json)
        return
    if prototxt is None:
        raise typer.BadParameter("a network, or --forget", param_hint="PROTOTXT")
    from ..settings import use

    net = _network(prototxt, batch)
    found: dict[str, list[Measured]] = {}
    with use(threads=threads, tuned=False), to_stderr().status("") as status:
        for name, plan, images in _convolutions(net, layer):
            status.update(f"timing {name}")
            found[name] = conv_tune.measure(plan, images, seconds)
    conv_tune.remember([one for measured in found.values() for one in measured])
    if json:
        rows = [{"layer": name, **_data(one)} for name, measured in found.items() for one in measured]
        print_json({"file": str(conv_tuned.path()), "measured": rows})
        return
    _show(found, str(conv_tuned.path()))


def _network(prototxt: str, batch: int | None) -> Net:
    from ..caffe import load_caffe

    net = load_caffe(prototxt)
    if batch is not None:
        if not net.inputs:
            raise typer.BadParameter("a network with data layers has its batch size in its text", param_hint="--batch")
        net.reshape(**{name: (batch, *net.blobs[name].shape[1:]) for name in net.inputs})
    return net


def _convolutions(net: Net, wanted: str | None) -> list[tuple[str, Any, int]]:
    """(layer's name, plan, images) of every convolution, or of one."""
    from ..layers.convolution import Convolution

    found = []
    for node in net.nodes:
        if isinstance(node.layer, Convolution) and wanted in (None, node.name):
            blob = net.blobs[node.bottoms[0]]
            plan = node.layer.plan(blob)
            each = math.prod((plan.in_channels, *plan.input_sizes))
            found.append((node.name, plan, blob.data.size // max(each, 1)))
    if not found:
        raise ArgumentError(
            "the network has no such convolution" if wanted else "the network has no convolution",
            given={"layer": wanted},
            required="one of " + ", ".join(n.name for n in net.nodes if isinstance(n.layer, Convolution)) if wanted else None,
        )
    return found


def _data(one: Measured) -> dict[str, Any]:
    return {"what": one.what, "chosen": one.chosen, "fastest": one.fastest, "ms": one.ms}


def _show(found: dict[str, list[Measured]], path: str) -> None:
    shown, changed = table("layer", "", "fastest", "ms", "by sizes", "ms", right=("ms",)), 0
    for name, measured in found.items():
        for i, one in enumerate(measured):
            times = [f"{one.ms[way]:.3g}" for way in (one.fastest, one.chosen)]
            changed += one.fastest != one.chosen
            shown.add_row("" if i else name, one.what, one.fastest, times[0], one.chosen, times[1])
    console = to_stdout()
    console.print(shown)
    console.print(f"{changed} of {sum(map(len, found.values()))} are computed in another way from now on")
    console.print(path, markup=False, soft_wrap=True, style="dim")


def _say(data: dict[str, Any], text: str, json: bool) -> None:
    if json:
        print_json(data)
    else:
        to_stdout().print(text, markup=False)
