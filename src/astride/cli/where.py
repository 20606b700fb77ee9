"""astride where: the files of an operator, as a map."""

from __future__ import annotations

from typing import Annotated

import typer

from ._output import Json, print_json, to_stdout

EXAMPLES = ("astride where max_pool", "astride where conv --json")


def where(
    op: Annotated[str, typer.Argument(metavar="OP", help="An operator, as max_pool.")],
    json: Json = False,
) -> None:
    """Show where an operator lives: its function, every framework's rule, every backend's kernels, tests and manual.

    An installed astride has no tests and no manual; a checkout of its repository has.
    """
    from ..explain.places import places_of

    found = places_of(op)
    if json:
        print_json(found.to_dict())
        return
    from rich.text import Text
    from rich.tree import Tree

    root = Tree(Text.assemble((found.op, "bold"), f"  {found.says}"), guide_style="dim")
    for title, entries in found.groups():
        branch = root.add(Text(title, style="bold"))
        width = max(len(entry.label) for entry in entries)
        for entry in entries:
            place = f"{entry.path}:{entry.line}" if entry.line else entry.path
            branch.add(Text.assemble(f"{entry.label:<{width}}  " if width else "", (place, "cyan")))
    to_stdout().print(root)
