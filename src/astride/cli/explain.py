"""astride explain: which pixels each framework's windows read, and what it does with them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import _arguments as arguments
from ._output import Json, note, print_json, to_stdout

if TYPE_CHECKING:
    from ..explain import Comparison

EXAMPLES = (
    "astride explain max_pool --kernel 3 --stride 2 --size 8 --rules caffe,pytorch,mps",
    "astride explain avg_pool -k 3 -s 2 --size 7x9 -r caffe,pytorch -o pytorch.ceil_mode=true",
    "astride explain conv_transpose -k 4 -s 2 --size 5 --rank 1 --png windows.png",
    "astride explain max_pool -k 2 --input 1,2,nan,4 --rules caffe,pytorch,tensorflow,jax",
    "astride explain deploy.prototxt --layer pool1 --rules caffe,pytorch",
    'astride explain --from pytorch "MaxPool2d(3, 2, ceil_mode=True)" --to tensorflow --size 8x8',
)


Target = Annotated[
    str,
    typer.Argument(
        metavar="OP|PROTOTXT|CALL",
        help="An operator (max_pool, conv, ...), a network whose --layer is explained, or with --from a framework's call.",
    ),
]
Kernel = Annotated[str | None, typer.Option("--kernel", "-k", metavar="N", help="3, or one per axis: 3x2.")]
Stride = Annotated[
    str | None, typer.Option("--stride", "-s", metavar="N", help="Default: the kernel for pooling, 1 for convolution.")
]
Padding = Annotated[
    str | None, typer.Option("--padding", "-p", metavar="N", help="1, 1x0, before:after as 0:1,0:1, or a framework's word.")
]
Dilation = Annotated[str | None, typer.Option("--dilation", "-d", metavar="N", help="Distance between taps.")]
Size = Annotated[str | None, typer.Option("--size", metavar="N", help="The input's size: 8 (for every axis), or 8x6.")]
Rank = Annotated[
    int | None, typer.Option("--rank", metavar="N", min=1, max=3, help="Axes that one --size stands for.  Default: 2.")
]
Rules = Annotated[
    str | None, typer.Option("--rules", "-r", metavar="NAMES", help="Frameworks, separated by commas. Default: all.")
]
Option = Annotated[
    list[str] | None,
    typer.Option(
        "--option", "-o", metavar="NAME=VALUE", help="A framework's own argument: ceil_mode=true, or caffe.round_mode=FLOOR."
    ),
]
Channels = Annotated[int | None, typer.Option("--channels", metavar="N", min=1, help="Input channels.")]
OutChannels = Annotated[int | None, typer.Option("--out-channels", metavar="N", min=1, help="Output channels of a convolution.")]
Groups = Annotated[int | None, typer.Option("--groups", metavar="N", help="Groups of a convolution.")]
Dtype = Annotated[
    str | None, typer.Option("--dtype", metavar="TYPE", help="The arrays' type. Default: float32, of quantised numbers uint8.")
]
Layout = Annotated[str, typer.Option("--layout", metavar="NAME", help="channels_first or channels_last.")]
Backend = Annotated[str | None, typer.Option("--backend", metavar="NAME", help="Ask for a backend or rung, as reference:loops4.")]
Input = Annotated[
    str | None,
    typer.Option(
        "--input", metavar="NUMBERS|FILE", help="Show what becomes of this plane: 1,2,nan,4, rows as 1,2;3,4, or a .npy file."
    ),
]
Source = Annotated[str | None, typer.Option("--from", metavar="NAME", help="The framework that CALL is written in.")]
Goal = Annotated[str | None, typer.Option("--to", metavar="NAME", help="With --from: say how this framework writes it.")]
Layer = Annotated[str | None, typer.Option("--layer", metavar="NAME", help="With a PROTOTXT: the layer to explain.")]
Phase = Annotated[str, typer.Option("--phase", metavar="NAME", help="With a PROTOTXT: TRAIN or TEST.")]
Png = Annotated[Path | None, typer.Option("--png", metavar="FILE", help="Draw the windows to this file.")]
Svg = Annotated[Path | None, typer.Option("--svg", metavar="FILE", help="Draw the windows to this file.")]


def explain(
    target: Target,
    kernel: Kernel = None,
    stride: Stride = None,
    padding: Padding = None,
    dilation: Dilation = None,
    size: Size = None,
    rank: Rank = None,
    rules: Rules = None,
    option: Option = None,
    channels: Channels = None,
    out_channels: OutChannels = None,
    groups: Groups = None,
    dtype: Dtype = None,
    layout: Layout = "channels_first",
    backend: Backend = None,
    input: Input = None,
    source: Source = None,
    goal: Goal = None,
    layer: Layer = None,
    phase: Phase = "TEST",
    png: Png = None,
    svg: Svg = None,
    json: Json = False,
) -> None:
    """Compare frameworks: the pixels each window reads, sizes, ties, divisors, and who computes it.

    The output size stands with its formula and numbers; what differs from the first framework is marked. A framework that
    refuses is shown with its reason. With --from and --to: how to write one framework's call in another one, proved by
    computing both. Exit status 1 if all refuse, or if it cannot be written.
    """
    if source is not None or goal is not None:
        _translate(target, source, goal, arguments.per_axis(size, "--size"), rank, kernel, png, svg, json)
        return
    chosen = arguments.names(rules)
    if layer is not None or arguments.is_network(target):
        _explain_layer(target, layer, phase, chosen, png, svg, json)
        return
    given = arguments.plane(input)
    _require(target, kernel, size if given is None or target == "fold" else str(given.shape))
    shared, own = arguments.options(option or [])
    _show(
        _compared(
            target,
            _size(size, given),
            chosen,
            rank=rank if given is None or target == "fold" else given.ndim,
            channels=channels,
            out_channels=out_channels,
            dtype=dtype,
            layout=layout,
            backend=backend,
            own=own,
            input=given,
            kernel=arguments.per_axis(kernel, "--kernel"),
            stride=arguments.per_axis(stride, "--stride"),
            padding=arguments.padding(padding),
            dilation=arguments.per_axis(dilation, "--dilation"),
            groups=groups,
            **shared,
        ),
        png,
        svg,
        json,
    )


def _require(op: str, kernel: str | None, size: str | None) -> None:
    from ..explain.operators import needs_kernel, windowed_operators

    if op not in windowed_operators():
        return  # what it is lacks more than a size; the comparison names those there are
    if size is None or (kernel is None and needs_kernel(op)):
        missing = "--size" if size is None else "--kernel"
        raise typer.BadParameter(f"{op} needs a {missing[2:]}: astride explain {op} --kernel 3 --size 8", param_hint=missing)


def _size(size: str | None, given: Any) -> Any:
    """The size asked for, else the input's, if there is one."""
    if size is None:
        return None if given is None else given.shape
    return arguments.per_axis(size, "--size")


def _translate(
    call: str,
    source: str | None,
    goal: str | None,
    sizes: Any,
    rank: int | None,
    kernel: str | None,
    png: Path | None,
    svg: Path | None,
    json: bool,
) -> None:
    from ..explain import render_translation, translate, translation_to_dict

    if source is None or goal is None:
        raise typer.BadParameter(
            f"both are needed: --from {source or 'pytorch'} --to {goal or 'tensorflow'}", param_hint="--from and --to"
        )
    found = translate(source, call, goal, sizes, rank=rank, kernel=arguments.per_axis(kernel, "--kernel"))
    for path in (png, svg):
        if path is not None:
            from ..draw import draw_translation

            draw_translation(found).save(path)
            note(f"wrote {path}")
    if json:
        print_json(translation_to_dict(found))
    else:
        console = to_stdout()
        for part in render_translation(found):
            console.print(part)
    if not found.expressed:
        raise typer.Exit(1)


def _compared(op: str, size: Any, rules: list[str], **given: Any) -> Comparison:
    from ..explain import compare
    from ..explain.operators import answering

    return compare(op, size, rules or answering(op, given), **given)


def _show(comparison: Comparison, png: Path | None, svg: Path | None, json: bool) -> None:
    from ..explain import render, to_dict

    for path in (png, svg):
        if path is not None:
            from ..draw import draw_comparison

            draw_comparison(comparison).save(path)
            note(f"wrote {path}")
    if json:
        print_json(to_dict(comparison))
    else:
        console = to_stdout()
        for part in render(comparison):
            console.print(part)
    if not comparison.answered:
        raise typer.Exit(1)


def _explain_layer(
    target: str, name: str | None, phase: str, rules: list[str], png: Path | None, svg: Path | None, json: bool
) -> None:
    from ..caffe import load_caffe
    from ..explain import to_dict
    from ..explain.layer import compare_layer, view

    net = load_caffe(target, phase=phase.upper())
    if name is None:
        known = ", ".join(node.name for node in net.nodes)
        raise typer.BadParameter(f"which of its layers? {known}", param_hint="--layer")
    layer = net.layer(name)
    shown = view(net, next(node for node in net.nodes if node.layer is layer))
    comparison = compare_layer(net, name, rules or ["caffe"])
    if json:
        data = shown.to_dict()
        print_json(data | {"comparison": None if comparison is None else to_dict(comparison)})
    else:
        from ..explain.text import render_layer

        console = to_stdout()
        for part in render_layer(shown):
            console.print(part)
    if comparison is not None and not json:
        _show(comparison, png, svg, json)
    elif comparison is not None:
        for path in (png, svg):
            if path is not None:
                from ..draw import draw_comparison

                draw_comparison(comparison).save(path)
    elif png is not None or svg is not None:
        note(f"{name} has no windows to draw")
