"""astride bench: how long things take."""

from __future__ import annotations

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
)
WHAT = ("ladder",)

What = Annotated[str, typer.Argument(metavar="WHAT", help="ladder: the rungs of the reference beside each other.")]
Ops = Annotated[str | None, typer.Option("--ops", metavar="NAMES", help="These operators only, separated by commas.")]
Images = Annotated[int, typer.Option("--images", min=1, metavar="N", help="Images in the batch.")]
Channels = Annotated[int, typer.Option("--channels", min=1, metavar="N", help="Channels in, and filters of a convolution.")]
Size = Annotated[int, typer.Option("--size", min=1, metavar="N", help="Rows and columns of an image.")]
Kernel = Annotated[int, typer.Option("--kernel", "-k", min=1, metavar="N", help="Rows and columns of a window.")]
Stride = Annotated[int, typer.Option("--stride", "-s", min=1, metavar="N", help="From one window to the next.")]
Rounds = Annotated[int, typer.Option("--rounds", min=1, metavar="N", help="Turns that each rung gets.")]
Png = Annotated[Path | None, typer.Option("--png", metavar="FILE", help="Draw the times to this file.")]
Svg = Annotated[Path | None, typer.Option("--svg", metavar="FILE", help="Draw the times to this file.")]

SECONDS = 2.0
"""After so long on one operator, layout and direction no further round begins."""


def bench(
    what: What,
    ops: Ops = None,
    images: Images = 4,
    channels: Channels = 8,
    size: Size = 12,
    kernel: Kernel = 3,
    stride: Stride = 1,
    rounds: Rounds = 5,
    png: Png = None,
    svg: Svg = None,
    json: Json = False,
) -> None:
    """Time the rungs of the reference, from loops over everything to one matrix product.

    Each rung is first held to give the numbers of the rung below, then all are timed in turns, on one thread; the median of
    a rung's times counts. Convolution, transposed convolution and pooling, forward and backward, NHWC as textbooks write
    it, and NCHW.

    Exit status 1 if a rung gives other numbers than the one below.
    """
    if what not in WHAT:
        raise typer.BadParameter(f"there is no benchmark {what!r}: one of {', '.join(WHAT)}", param_hint="WHAT")
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
