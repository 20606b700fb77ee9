"""Where output goes: results to stdout, for people or as JSON; progress and errors to stderr."""

from __future__ import annotations

import json
import math
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDTH = 80

Json = Annotated[bool, typer.Option("--json", help="Print plain data as JSON, and nothing else, on stdout.")]


def to_stdout() -> Console:
    """The console of results. Without a terminal it is 80 columns wide."""
    from rich.console import Console

    return Console(file=sys.stdout, width=None if sys.stdout.isatty() else WIDTH, highlight=False)


def to_stderr() -> Console:
    """The console of progress and errors. Lines are not broken where no terminal asks for it."""
    from rich.console import Console

    return Console(file=sys.stderr, soft_wrap=True, highlight=False)


def note(text: str) -> None:
    """A remark beside the results."""
    to_stderr().print(text, style="dim", markup=False)


def print_json(data: Any) -> None:
    """Data on stdout as JSON that any reader takes: NaN and infinity, which JSON lacks, as strings."""
    sys.stdout.write(json.dumps(plain(data), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def plain(value: Any) -> Any:
    """Numbers, strings, lists and dictionaries; arrays as lists, paths as text."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def table(*columns: str, right: tuple[str, ...] = (), title: str | None = None) -> Table:
    """A quiet table: bold heads, no frames. Columns named in `right` hold numbers."""
    from rich.table import Table

    made = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", title=title, title_justify="left", title_style="bold")
    for name in columns:
        made.add_column(name, justify="right" if name in right else "left", overflow="fold")
    return made


def size(count: float) -> str:
    """Bytes for people."""
    for unit in ("B", "KB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.2f} GB"


def amount(count: float) -> str:
    """A large count for people: 1.72 G."""
    for unit in ("", " k", " M", " G"):
        if count < 1000:
            return f"{count:.0f}" if not unit else f"{count:.3g}{unit}"
        count /= 1000
    return f"{count:.3g} T"


def shape_text(shape: tuple[int, ...]) -> str:
    """50x20x24x24"""
    return "x".join(map(str, shape)) or "scalar"
