"""What a failing command says: the error's own message on stderr and exit status 1, never a traceback."""

from __future__ import annotations

import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

INTERRUPTED = 130


class Commands(TyperGroup):
    """The group of all commands. Set ASTRIDE_TRACEBACK=1 to see where an error was raised."""

    def invoke(self, ctx: Any) -> Any:
        from ..errors import AstrideError

        try:
            return super().invoke(ctx)
        except (AstrideError, OSError, MemoryError) as error:
            if os.environ.get("ASTRIDE_TRACEBACK") or isinstance(error, BrokenPipeError):
                raise
            report(error)
            raise typer.Exit(1) from error
        except KeyboardInterrupt as error:
            print("interrupted", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from error


def report(error: BaseException) -> None:
    """Print an error for people. What was wrong comes first, the parts of the message below it."""
    from ._output import to_stderr

    first, *rest = (str(error) or type(error).__name__).splitlines()
    console = to_stderr()
    console.print("error:", style="bold red", end=" ", highlight=False)
    console.print(first, highlight=False, markup=False)
    for line in rest:
        console.print(line, highlight=False, markup=False)
