"""astride upgrade: files of Caffe's older formats in the current one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import _arguments as arguments
from ._output import Json, print_json, table, to_stdout

if TYPE_CHECKING:
    from ..caffe.convert import Kind, Written

EXAMPLES = (
    "astride upgrade old_deploy.prototxt deploy.prototxt",
    "astride upgrade old.caffemodel new.caffemodel",
    "astride upgrade solver.prototxt solver.prototxt --type solver-text",
)

KINDS = {"net-text": "network (text)", "net-binary": "network (binary)", "solver-text": "solver (text)"}


def upgrade(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A network's text or binary, or a solver's text, of any age.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write; IN itself is allowed.")],
    kind: Annotated[
        str | None, typer.Option("--type", help="net-text, net-binary or solver-text. Default: seen from the content.")
    ] = None,
    dialect: arguments.Dialect = None,
    allow_unknown_fields: Annotated[
        bool, typer.Option("--allow-unknown-fields", help="Leave out fields that Caffe does not have.")
    ] = False,
    json: Json = False,
) -> None:
    """Bring a network or solver of Caffe's older formats to the current one, as Caffe's own tools do.

    V0 and V1 layers, padding layers, solver_type, input fields, transformation parameters and BatchNorm multipliers are
    rewritten; comments of a text stay beside what they are about; weights keep their bits. A file that is current already is
    copied as it is. Exit status 1 if something had to be left out: the file is written, and what it lacks is listed.
    """
    from ..caffe.convert import upgrade_file

    written = upgrade_file(source, target, kind=_kind(kind), dialect=dialect, allow_unknown_fields=allow_unknown_fields)
    show(written, json, unchanged="current already, copied as it was")
    if written.lost:
        raise typer.Exit(1)


def show(written: Written, json: bool, *, unchanged: str) -> None:
    """What was written and every step to it."""
    if json:
        notes = [{"line": note.line, "text": note.text, "lost": note.lost} for note in written.notes]
        print_json(
            {"in": written.source, "out": written.target, "type": written.kind.value, "layers": written.layers, "notes": notes}
        )
        return
    console = to_stdout()
    count = f", {written.layers} layers" if written.layers else ""
    console.print(f"{written.target}: {KINDS[written.kind]}{count}", markup=False, soft_wrap=True)
    if not written.notes:
        console.print(unchanged, style="dim")
        return
    from rich.text import Text

    steps = table("line", "", right=("line",))
    steps.show_header = any(note.line for note in written.notes)
    for note in written.notes:
        text = Text.assemble(("lost  ", "bold yellow"), note.text) if note.lost else Text(note.text)
        steps.add_row(str(note.line or ""), text)
    console.print(steps)


def _kind(name: str | None) -> Kind | None:
    from ..caffe.convert import Kind

    if name is None:
        return None
    if name not in KINDS:
        raise typer.BadParameter(f"{name!r} is none of {', '.join(KINDS)}", param_hint="--type")
    return Kind(name)
