"""astride tune: measure which algorithm computes convolutions fastest on this machine, and remember it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ArgumentError
from . import _arguments as arguments
from ._output import Json, print_json, table, to_stderr, to_stdout
from .explain import Dilation, Groups, Kernel, Padding, Stride

if TYPE_CHECKING:
    from ..backends.cpu.conv_tune import Measured
    from ..net import Net

EXAMPLES = (
    "astride tune deploy.prototxt",
    "astride tune deploy.prototxt --layer conv1 --batch 8 --threads 2",
    "astride tune conv -k 3 -p 1 --size 56x56 --channels 64 --out-channels 64 --batch 8 --layout NHWC",
    "astride tune --show",
    "astride tune --forget",
)

OPERATORS = ("conv", "conv_transpose")

Target = Annotated[str | None, typer.Argument(metavar="[PROTOTXT|OP]", help="A network's text; or conv or conv_transpose.")]
LayerName = Annotated[str | None, typer.Option("--layer", metavar="NAME", help="With a PROTOTXT: this layer only.")]
Batch = Annotated[
    int | None, typer.Option("--batch", min=1, metavar="N", help="Images a pass. Default: as the text has it; 1 of an OP.")
]
Threads = Annotated[int | None, typer.Option("--threads", min=1, metavar="N", help="Default: as many as there are.")]
Seconds = Annotated[float, typer.Option("--seconds", min=0.0, metavar="S", help="Of each direction of a layer.")]
Size = Annotated[str | None, typer.Option("--size", metavar="N", help="With an OP: the input's size, 56x56.")]
Channels = Annotated[int | None, typer.Option("--channels", metavar="N", min=1, help="With an OP: input channels.")]
OutChannels = Annotated[int | None, typer.Option("--out-channels", metavar="N", min=1, help="With an OP: output channels.")]
Dtype = Annotated[str, typer.Option("--dtype", metavar="TYPE", help="With an OP: float32 or float64.")]
Layout = Annotated[str, typer.Option("--layout", metavar="NAME", help="With an OP: channels_first or channels_last.")]
Show = Annotated[bool, typer.Option("--show", help="Show what was measured on this machine.")]
Forget = Annotated[bool, typer.Option("--forget", help="Forget everything that was measured.")]


def tune(
    target: Target = None,
    layer: LayerName = None,
    batch: Batch = None,
    threads: Threads = None,
    seconds: Seconds = 0.3,
    kernel: Kernel = None,
    stride: Stride = None,
    padding: Padding = None,
    dilation: Dilation = None,
    size: Size = None,
    channels: Channels = None,
    out_channels: OutChannels = None,
    groups: Groups = None,
    dtype: Dtype = "float32",
    layout: Layout = "channels_first",
    show: Show = False,
    forget: Forget = False,
    json: Json = False,
) -> None:
    """Measure the algorithms of convolutions, of a network's or of one, forward and both gradients, and remember the fastest.

    Without it they are chosen by predicted times. What is remembered holds for convolutions of the same sizes in any network, on
    this machine and with this version of astride, until `--forget`; `astride.use(tuned=False)` does without it. Algorithms round
    in different places, so tuned results may differ from others in their last digits.
    """
    from ..backends.cpu import conv_choice, conv_tune, conv_tuned

    if forget:
        count = conv_tuned.clear()
        conv_choice.forget()
        _say({"forgotten": count}, f"{count} measurement{'' if count == 1 else 's'} forgotten", json)
        return
    if show:
        _remembered(json)
        return
    if target is None:
        raise typer.BadParameter("a network, conv or conv_transpose, --show or --forget", param_hint="PROTOTXT")
    from ..settings import use

    if target in OPERATORS and not arguments.is_network(target):
        options = {"stride": arguments.per_axis(stride, "--stride"), "padding": arguments.padding(padding)}
        options |= {"dilation": arguments.per_axis(dilation, "--dilation"), "groups": groups, "dtype": dtype, "layout": layout}
        sizes = {"--kernel": arguments.per_axis(kernel, "--kernel"), "--size": arguments.per_axis(size, "--size")}
        wanted = [(target, _plan(target, sizes, (channels, out_channels), options), batch or 1)]
    else:
        wanted = _convolutions(_network(target, batch), layer)
    found: dict[str, list[Measured]] = {}
    with use(threads=threads, tuned=False), to_stderr().status("") as status:
        for name, plan, images in wanted:
            status.update(f"timing {name}")
            found[name] = conv_tune.measure(plan, images, seconds)
    conv_tune.remember([one for measured in found.values() for one in measured])
    if json:
        rows = [{"layer": name, **_data(one)} for name, measured in found.items() for one in measured]
        print_json({"file": str(conv_tuned.path()), "measured": rows})
        return
    _show(found, str(conv_tuned.path()))


def _plan(op: str, sizes: dict[str, Any], channels: tuple[int | None, int | None], options: dict[str, Any]) -> Any:
    """The plan of the convolution that options describe."""
    from ..ops._run import plan

    given = sizes | dict(zip(("--channels", "--out-channels"), channels, strict=True))
    missing = next((name for name, value in given.items() if value is None), None)
    if missing is not None:
        raise typer.BadParameter(f"{op} needs a {missing[2:]}: {EXAMPLES[2]}", param_hint=missing)
    inputs, outputs = given["--channels"], given["--out-channels"]
    kernel, size = (value if isinstance(value, tuple) else (value,) for value in (given["--kernel"], given["--size"]))
    rank = max(len(kernel), len(size)) if max(len(kernel), len(size)) > 1 else 2
    kernel, size = (value * rank if len(value) == 1 else value for value in (kernel, size))
    groups = options["groups"] or 1
    last = options["layout"] in ("channels_last", "NLC", "NHWC", "NDHWC")
    shape = (1, *size, inputs) if last else (1, inputs, *size)
    w_shape = (outputs, inputs // groups, *kernel) if op == "conv" else (inputs, outputs // groups, *kernel)
    return plan(op, shape, w_shape=w_shape, **{name: value for name, value in options.items() if value is not None})


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
    shown, changed = table("layer", "", "fastest", "ms", "predicted", "ms", right=("ms",)), 0
    for name, measured in found.items():
        for i, one in enumerate(measured):
            times = [f"{one.ms[way]:.3g}" for way in (one.fastest, one.chosen)]
            changed += one.fastest != one.chosen
            shown.add_row("" if i else name, one.what, one.fastest, times[0], one.chosen, times[1])
    console = to_stdout()
    console.print(shown)
    console.print(f"{changed} of {sum(map(len, found.values()))} are computed in another way from now on")
    console.print(path, markup=False, soft_wrap=True, style="dim")


def _remembered(json: bool) -> None:
    """What was measured on this machine with this version."""
    from ..backends.cpu import conv_choice, conv_tuned

    entries = conv_tuned.entries()
    if json:
        print_json({"file": str(conv_tuned.path()), "measured": [{"about": key, **entry} for key, entry in entries.items()]})
        return
    console = to_stdout()
    if entries:
        shown = table("convolution", "way", "ms", right=("ms",))
        for key, entry in entries.items():
            shown.add_row(conv_choice.described(key), entry["way"], f"{entry['ms'].get(entry['way'], math.nan):.3g}")
        console.print(shown)
    console.print(f"{len(entries)} measurement{'' if len(entries) == 1 else 's'} of this machine and version", markup=False)
    console.print(str(conv_tuned.path()), markup=False, soft_wrap=True, style="dim")


def _say(data: dict[str, Any], text: str, json: bool) -> None:
    if json:
        print_json(data)
    else:
        to_stdout().print(text, markup=False)
