"""astride bench: how long things take."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import _arguments as arguments
from ._output import Json, note, print_json, table, to_stderr, to_stdout

if TYPE_CHECKING:
    from ..bench import Problem, Timed

EXAMPLES = (
    "astride bench ladder",
    "astride bench ladder --ops conv,max_pool --png ladder.png",
    "astride bench ladder --ops conv --images 8 --size 16 --rounds 9 --json",
    "astride bench convolution --quick",
    "astride bench pooling --cases GoogLeNet --threads 1 --svg pooling.svg",
    "astride bench convolution --threads 1 --record convolution.jsonl",
    "astride bench gpu --cases 3x3",
)
LADDER, RACES, GPU = "ladder", ("convolution", "pooling"), "gpu"
WHAT = (LADDER, *RACES, GPU)
FOR = {
    **dict.fromkeys(("ops", "images", "channels", "size", "kernel", "stride"), (LADDER,)),
    **dict.fromkeys(("threads", "quick", "record"), RACES),
    "rounds": (LADDER, GPU),
    "cases": (*RACES, GPU),
    **dict.fromkeys(("png", "svg"), (LADDER, *RACES)),
}
"""What an option belongs to, where it does not belong to all."""

What = Annotated[str, typer.Argument(metavar="WHAT", help="ladder, convolution, pooling or gpu.")]
Ops = Annotated[str | None, typer.Option("--ops", metavar="NAMES", help="These operators only, separated by commas.")]
Images = Annotated[int, typer.Option("--images", min=1, metavar="N", help="Images in the batch.")]
Channels = Annotated[int, typer.Option("--channels", min=1, metavar="N", help="Channels in, and filters of a convolution.")]
Size = Annotated[int, typer.Option("--size", min=1, metavar="N", help="Rows and columns of an image.")]
Kernel = Annotated[int, typer.Option("--kernel", "-k", min=1, metavar="N", help="Rows and columns of a window.")]
Stride = Annotated[int, typer.Option("--stride", "-s", min=1, metavar="N", help="From one window to the next.")]
Rounds = Annotated[int, typer.Option("--rounds", min=1, metavar="N", help="Turns that each rung gets.")]
Cases = Annotated[str | None, typer.Option("--cases", metavar="REGEX", help="Cases whose name has this in it.")]
Threads = Annotated[str | None, typer.Option("--threads", metavar="NUMBERS", help="Numbers of threads: 1,2 by default.")]
Quick = Annotated[bool, typer.Option("--quick", help="Every fifth case, one thread, little time.")]
Record = Annotated[Path | None, typer.Option("--record", metavar="FILE", help="Append a line of JSON a row to this file.")]
Png = Annotated[Path | None, typer.Option("--png", metavar="FILE", help="Draw the times to this file.")]
Svg = Annotated[Path | None, typer.Option("--svg", metavar="FILE", help="Draw the times to this file.")]

SECONDS = 2.0
"""After so long on one operator, layout and direction no further round begins."""


def bench(
    context: typer.Context,
    what: What,
    ops: Ops = None,
    images: Images = 4,
    channels: Channels = 8,
    size: Size = 12,
    kernel: Kernel = 3,
    stride: Stride = 1,
    rounds: Rounds = 5,
    cases: Cases = None,
    threads: Threads = None,
    quick: Quick = False,
    record: Record = None,
    png: Png = None,
    svg: Svg = None,
    json: Json = False,
) -> None:
    """Time astride: rung beside rung, or beside other libraries.

    ladder: the rungs of the reference, from loops over everything to one matrix product, and the CPU backend on top. Each
    rung is first held to give the numbers of the rung below, then all are timed in turns, on one thread; the median of
    a rung's times counts. Convolution, transposed convolution and pooling, forward and backward, NHWC as textbooks write
    it, and NCHW.

    convolution, pooling: a fixed sample of layers of known networks beside every library installed here that has them
    (PyTorch, ONNX Runtime, OpenVINO, JAX, OpenCV), answers compared first; in turns, medians. `peak` is the share of the
    multiplications and additions the machine does at most, `copy` of the speed at which it copies. Minutes without --quick.

    gpu: kernels on the best GPU through WebGPU, each by the device's own timestamps, beside the least it could take: the
    bytes and operations of the layer against what the same GPU copies and multiplies at most. On a software adapter they
    are counted only, and no time is taken.

    Exit status 1 if a rung gives other numbers than the one below, the two layouts of a convolution differ, or a GPU's
    numbers from the CPU's.
    """
    if what not in WHAT:
        raise typer.BadParameter(f"there is no benchmark {what!r}: one of {', '.join(WHAT)}", param_hint="WHAT")
    for name, kinds in FOR.items():
        source = context.get_parameter_source(name)
        if what not in kinds and source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(f"is for {' and '.join(kinds)}, not for {what}", param_hint=f"--{name}")
    if what == GPU:
        from ._gpu import bench_gpu

        bench_gpu(cases, rounds, json)
        return
    if what in RACES:
        from ._races import race

        race(what, _words(cases, quick, record), [1] if quick and threads is None else _counts(threads or "1,2"), png, svg, json)
        return
    from ..bench import WINDOWS, on_one_thread, problems

    sizes = dict(images=images, channels=channels, size=size, kernel=kernel, stride=stride)
    asked = list(problems(arguments.names(ops) or WINDOWS, **sizes))
    for problem in asked:
        problem.plan()
    timed: list[Timed] = []
    console = to_stderr()
    with console.status("") as status:
        found = on_one_thread(asked, rounds, SECONDS)
        for problem in asked:
            status.update(f"timing {problem.op} {problem.layout}")
            timed += next(found)
        found.close()
    _show(asked[0], timed, rounds, png, svg, json)
    if not all(row.agrees for row in timed):
        raise typer.Exit(1)


def _words(cases: str | None, quick: bool, record: Path | None) -> list[str]:
    """The options of a benchmark, as it reads them itself."""
    try:
        re.compile(cases or "")
    except re.error as error:
        raise typer.BadParameter(f"is not a regular expression: {error}", param_hint="--cases") from error
    if record is not None and not record.absolute().parent.is_dir():
        raise typer.BadParameter(f"there is no folder {record.parent}", param_hint="--record")
    given = {"--cases": cases, "--record": None if record is None else record.absolute()}
    return [*(f"{option}={value}" for option, value in given.items() if value is not None), *(["--quick"] if quick else [])]


def _counts(text: str) -> list[int]:
    """Numbers of threads, separated by commas."""
    words = text.split(",")
    if not all(word.strip().isdigit() and int(word) > 0 for word in words):
        raise typer.BadParameter(f"{text!r} is not numbers from 1 on, separated by commas", param_hint="--threads")
    return [int(word) for word in words]


def _show(problem: Problem, timed: Sequence[Timed], rounds: int, png: Path | None, svg: Path | None, json: bool) -> None:
    said = (
        f"{problem.images} images of {problem.size} x {problem.size} pixels, {problem.channels} channels, "
        f"kernel {problem.kernel}, stride {problem.stride}, float32, one thread"
    )
    for path in (png, svg):
        if path is not None:
            from ..draw.ladder import draw_ladder

            draw_ladder(timed, note=said).save(path)
            note(f"wrote {path}")
    if json:
        sizes = {name: getattr(problem, name) for name in ("images", "channels", "size", "kernel", "stride")}
        print_json({"problem": sizes, "threads": 1, "rounds": rounds, "timed": [row.to_dict() for row in timed]})
        return
    console = to_stdout()
    console.print(_table(timed))
    console.print(said, style="dim")
    wrong = [row for row in timed if not row.agrees]
    for row in wrong:
        console.print(f"WRONG: {row.op} {row.direction} {row.layout}, {row.rung} differs from the rung below", style="bold red")
    if not wrong:
        console.print("every rung gives the numbers of the one below")


def _table(timed: Sequence[Timed]) -> object:
    from ..bench import DIRECTIONS, RUNGS
    from ..draw.ladder import duration, times

    shown = table("operator", "", "layout", *RUNGS, "gain", right=(*RUNGS, "gain"))
    rows: dict[tuple[str, str, str], dict[str, Timed]] = {}
    ops = list(dict.fromkeys(row.op for row in timed))
    for row in sorted(timed, key=lambda row: (ops.index(row.op), DIRECTIONS.index(row.direction))):
        rows.setdefault((row.op, row.direction, row.layout), {})[row.rung] = row
    before: tuple[str, ...] = ()
    for label, rungs in rows.items():
        seconds = [rungs[rung].seconds for rung in RUNGS]
        head = [name if i == 2 or label[: i + 1] != before[: i + 1] else "" for i, name in enumerate(label)]
        shown.add_row(*head, *map(duration, seconds), times(seconds[0] / seconds[-1]))
        before = label
    return shown
