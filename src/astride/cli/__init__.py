"""The command line: `astride COMMAND ...`, one file a command, registered by a line in the table.

Commands import what computes only when they run, so that `astride --help` stays quick.
"""

from __future__ import annotations

import inspect
import io
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Annotated

import typer

from ._errors import Commands

START, NETWORKS, RULES, MACHINE = "Start here", "Caffe networks", "Windows and their rules", "This machine"

COMMANDS: dict[str, str] = {
    "demo": START,
    "run": NETWORKS,
    "train": NETWORKS,
    "test": NETWORKS,
    "show": NETWORKS,
    "time": NETWORKS,
    "convert": NETWORKS,
    "upgrade": NETWORKS,
    "python": NETWORKS,
    "explain": RULES,
    "check": RULES,
    "bench": RULES,
    "where": RULES,
    "tune": MACHINE,
    "cache": MACHINE,
}
"""name -> its group in the help. The module, and the function in it, have the same name."""

EPILOG = """Every command takes --json: plain data on stdout, everything else on stderr.

Exit status: 0 done, 1 an error or a failed check, 2 a wrong command line, 130 interrupted."""

app = typer.Typer(
    name="astride",
    cls=Commands,
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        typer.echo(f"astride {__version__}")
        raise typer.Exit


@app.callback()
def astride(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Sliding-window operators by each framework's own rules, and Caffe networks that run again."""


def _help(function: Callable[..., None]) -> str:
    """The docstring with one line a paragraph, so that the terminal breaks the lines."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in (inspect.getdoc(function) or "").split("\n\n"))


for _name, _group in COMMANDS.items():
    _module = import_module(f"{__name__}.{_name}")
    _function = getattr(_module, _name)
    _epilog = "[bold]Examples[/bold]\n\n" + "\n\n".join(_module.EXAMPLES)
    _context = getattr(_module, "CONTEXT", None)
    app.command(_name, rich_help_panel=_group, help=_help(_function), epilog=_epilog, context_settings=_context)(_function)


def main() -> None:
    """The console script."""
    if sys.stdout is None:  # closed by whoever started it
        sys.stdout = io.StringIO()
    for stream in (sys.stdout, sys.stderr):
        # A terminal without the sign for "not equal" shows another sign rather than a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    app(prog_name="astride")


__all__ = ["COMMANDS", "app", "main"]
