"""astride demo: LeNet learns to read digits, and draws what happened."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ._output import Json, note, print_json

EXAMPLES = ("astride demo", "astride demo --out digits --seed 7", "astride demo --iterations 50 --json")


Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where weights, network and picture go.")]
Seed = Annotated[int, typer.Option("--seed", min=0, metavar="N", help="The same seed gives the same network.")]
Iterations = Annotated[int | None, typer.Option("--iterations", "-i", min=1, metavar="N", help="Stop earlier.")]


def demo(
    out: Out = Path("astride-demo"),
    seed: Seed = 1,
    iterations: Iterations = None,
    json: Json = False,
) -> None:
    """Train LeNet on real handwritten digits, read digits it never saw, and draw one picture of what happened.

    Takes less than a minute and a half on two cores. Needs the extra: pip install 'astride\\[demo]'.
    """
    from ..examples.demo import run_demo

    if json:
        note("training LeNet; this takes about a minute")
    result = run_demo(out, seed=seed, iterations=iterations, progress=not json)
    if json:
        print_json(asdict(result))
