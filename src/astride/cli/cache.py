"""astride cache: the compiled kernels on disk."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import typer

from ._output import Json, print_json, size, table, to_stdout

EXAMPLES = ("astride cache", "astride cache clear", "astride cache --json")

ACTIONS = ("show", "clear")


def cache(
    action: Annotated[str, typer.Argument(metavar="[show|clear]", help="show: what is there. clear: delete it.")] = "show",
    json: Json = False,
) -> None:
    """Show the compiled kernels that this machine keeps, or delete them; they are compiled again when needed.

    They lie in the user's cache folder, or in the one ASTRIDE_CACHE_DIR names. A kernel belongs to one CPU, one LLVM and one
    version of astride; those unused for longest go when the folder reaches its limit.
    """
    from ..backends.cpu import cache as kernels
    from ..errors import ArgumentError

    if action not in ACTIONS:
        raise ArgumentError(
            "there is nothing of that name to do with the cache",
            given={"action": action},
            required=f"one of {', '.join(ACTIONS)}",
            hint="astride cache show",
        )
    where = {"folder": str(kernels.folder()), "limit_bytes": kernels.LIMIT}
    if action == "clear":
        count, freed = kernels.clear()
        _cleared({**where, "deleted": count, "freed_bytes": freed}, json)
    else:
        _shown(where, kernels.entries(), json)


def _cleared(found: dict[str, Any], json: bool) -> None:
    if json:
        print_json(found)
        return
    count = found["deleted"]
    to_stdout().print(f"{count} kernel{'' if count == 1 else 's'} deleted, {size(found['freed_bytes'])} freed", markup=False)


def _shown(where: dict[str, Any], entries: list[tuple[str, int, float]], json: bool) -> None:
    held = sum(bytes_ for _, bytes_, _ in entries)
    if json:
        listed = [{"kernel": name, "bytes": bytes_, "used": _moment(used)} for name, bytes_, used in entries]
        print_json({**where, "bytes": held, "kernels": listed})
        return
    console = to_stdout()
    if entries:
        rows = table("kernel", "kept", "size", "last used", right=("kept", "size"))
        for name, group in sorted(_by_name(entries).items()):
            rows.add_row(name, str(len(group)), size(sum(bytes_ for bytes_, _ in group)), _moment(max(t for _, t in group)))
        console.print(rows)
        console.print()
    count = len(entries)
    console.print(f"{count} kernel{'' if count == 1 else 's'}, {size(held)} of {size(where['limit_bytes'])}", markup=False)
    console.print(where["folder"], markup=False, soft_wrap=True)


def _by_name(entries: list[tuple[str, int, float]]) -> dict[str, list[tuple[int, float]]]:
    """(bytes, time of last use) of the kernels of each name."""
    groups: dict[str, list[tuple[int, float]]] = {}
    for name, bytes_, used in entries:
        groups.setdefault(name, []).append((bytes_, used))
    return groups


def _moment(seconds: float) -> str:
    """Local time to the minute, as 2026-11-30 17:05."""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")
