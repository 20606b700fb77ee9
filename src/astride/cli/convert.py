"""astride convert: one network as text or as binary."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import _arguments as arguments
from ._output import Json
from .upgrade import show

EXAMPLES = (
    "astride convert deploy.prototxt net.caffemodel --weights weights.caffemodel",
    "astride convert weights.caffemodel found.prototxt",
    "astride convert small.caffemodel small.prototxt --blobs",
    "astride convert fork.caffemodel found.prototxt --dialect ssd+ceil_mode",
)

FORMATS = {"text": "net-text", "binary": "net-binary"}


def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A network: .prototxt or .caffemodel, of any age.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="Its ending says what to write: .prototxt or .caffemodel.")],
    weights: Annotated[
        Path | None, typer.Option("--weights", "-w", help="A .caffemodel whose weights go into the layers of the same names.")
    ] = None,
    blobs: Annotated[bool, typer.Option("--blobs", help="Write the weights into a text, too; it grows about fourfold.")] = False,
    to: Annotated[str | None, typer.Option("--to", help="text or binary, whatever OUT is called.")] = None,
    dialect: arguments.Dialect = None,
    allow_unknown_fields: Annotated[
        bool, typer.Option("--allow-unknown-fields", help="Leave out fields that Caffe does not have.")
    ] = False,
    json: Json = False,
) -> None:
    """Turn a network from text into binary, or the network in a file of weights into text.

    A prototxt becomes a .caffemodel that holds its layers and, with --weights, their weights. A .caffemodel alone shows the
    text of the network it was saved from; its weights stay behind unless --blobs. Old formats are upgraded on the way. Forks of
    Caffe gave one field number to different fields: where bytes leave it open, --dialect says whose they are. Whether
    weights fit is checked by `astride run` or `astride show`, not here. ONNX comes later.
    """
    from ..caffe.convert import Kind, convert_file

    if to is not None and to not in FORMATS:
        raise typer.BadParameter(f"{to!r} is neither text nor binary", param_hint="--to")
    written = convert_file(
        source,
        target,
        to=Kind(FORMATS[to]) if to else None,
        weights=weights,
        with_blobs=blobs,
        dialect=dialect,
        allow_unknown_fields=allow_unknown_fields,
    )
    show(written, json, unchanged="nothing was lost on the way")
