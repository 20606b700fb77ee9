"""What `astride bench convolution` and `astride bench pooling` do: rows as they are found, then the table, picture and data."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from ..errors import AstrideError
from ._output import note, print_json, table, to_stderr, to_stdout

LIMIT = {"convolution": "peak", "pooling": "copy"}
"""The column that says how near a row is to what the machine can do."""


def race(name: str, words: Sequence[str], threads: Sequence[int], png: Path | None, svg: Path | None, json: bool) -> None:
    """Run a benchmark with these options and show what it found. Exit status 1: some answer of astride's differs."""
    from ..bench.race import LAYOUTS, rows

    found: list[dict[str, Any]] = []
    with to_stderr().status("") as status:
        status.update(f"timing {name} on {threads[0]} thread{'s' if threads[0] > 1 else ''}")
        try:
            for row in rows(name, words, threads):
                found.append(row)
                status.update(f"timing {row['case']} {row['what']} on {row['threads']} threads")
        except subprocess.CalledProcessError as error:
            raise AstrideError("the measuring process ended early", given={"exit status": error.returncode}) from error
    if not found:
        raise AstrideError("nothing was measured", hint="fewer threads, or another --cases")
    order = list(dict.fromkeys(row["case"] for row in found))
    found.sort(key=lambda row: (row["threads"], order.index(row["case"])))
    versions = ", ".join(f"{library} {version}" for library, version in found[0]["versions"].items())
    said = f"{found[0]['machine']}; {versions}; float32"
    for path in (png, svg):
        if path is not None:
            from ..draw.race import draw_race

            draw_race(found, title=f"{name.capitalize()} beside other libraries", note=said).save(path)
            note(f"wrote {path}")
    if json:
        print_json({"benchmark": name, "layouts": list(LAYOUTS), "rows": found})
    else:
        _print(name, found, said)
    if any("astride" in row["differing"] for row in found):
        raise typer.Exit(1)


def _print(name: str, found: Sequence[dict[str, Any]], said: str) -> None:
    from ..bench.race import means

    console = to_stdout()
    for threads in sorted({row["threads"] for row in found}):
        console.print(_table([row for row in found if row["threads"] == threads], threads, LIMIT[name]))
    for (layout, what, threads), (mean, least, count) in means(found).items():
        console.print(
            f"{layout.upper()} {what}, threads {threads}: {mean:.2f} times as fast in the mean of {count}, at least {least:.2f}"
        )
    for row in found:
        for library in row["differing"]:
            console.print(f"DIFFERENT: {library} in {row['case']} {row['what']} {row['layout'].upper()}", style="bold red")
    console.print(said, style="dim")


def _table(rows: Sequence[dict[str, Any]], threads: int, limit: str) -> object:
    right, title = ("ms", limit, "ratio"), f"{threads} thread{'s' if threads > 1 else ''}"
    shown = table("case", "", "layout", "ms", limit, "best other", "ratio", right=right, title=title)
    before: tuple[Any, ...] = ()
    for row in rows:
        label = (row["case"], row["what"])
        head = [word if label[: i + 1] != before[: i + 1] else "" for i, word in enumerate(label)]
        ratio, near = f"{row['ratio']:.2f}" if row["ratio"] else "-", f"{row[limit]:.0%}"
        shown.add_row(*head, row["layout"].upper(), f"{row['ms']:.3g}", near, row["best"] or "-", ratio)
        before = label
    return shown
