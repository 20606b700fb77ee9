"""astride python: a script written for Caffe, run as it is."""

from __future__ import annotations

import contextlib
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from ._output import Json, print_json

EXAMPLES = (
    "astride python classify.py --model deploy.prototxt",
    "astride python -m tools.train_net --iters 100",
    "PYTHONPATH=lib astride python demo.py",
)
CONTEXT = {"allow_interspersed_args": False, "ignore_unknown_options": True}
"""Whatever stands behind the script is the script's own."""


def python(
    script: Annotated[
        str, typer.Argument(metavar="SCRIPT", help="A Python script; with -m the name of a module.", show_default=False)
    ],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="ARGS", help="What the script finds in sys.argv.", show_default=False)
    ] = None,
    module: Annotated[bool, typer.Option("-m", "--module", help="SCRIPT names a module to be run as a script.")] = False,
    json: Json = False,
) -> None:
    """Run a Python script in which `import caffe` means astride's pycaffe.

    The script is __main__, sys.argv is its own, its folder comes first on sys.path, and its exit status becomes this
    command's, as when Python runs it; an error shows its traceback. Python layers that its networks name are imported as
    Caffe does. With --json what the script prints goes to stderr.
    """
    from ..pycaffe import install

    if not module and not Path(script).exists():
        raise typer.BadParameter(f"there is no file {script}", param_hint="SCRIPT")
    install()
    begin = time.perf_counter()
    with _as_main(script, arguments or [], module), contextlib.redirect_stdout(sys.stderr) if json else contextlib.nullcontext():
        status = _run(script, module)
    if json:
        print_json({"script": script, "arguments": arguments or [], "exit": status, "seconds": time.perf_counter() - begin})
    if status:
        raise typer.Exit(status)


@contextlib.contextmanager
def _as_main(script: str, arguments: list[str], module: bool) -> Iterator[None]:
    """sys.argv and sys.path as a script finds them."""
    argv, path = sys.argv, list(sys.path)
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path.cwd()) if module else str(Path(script).resolve().parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, path


def _run(script: str, module: bool) -> int:
    """The script's exit status, by Python's rules."""
    import runpy

    try:
        if module:
            runpy.run_module(script, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(script, run_name="__main__")
    except SystemExit as error:
        return _status(error.code)
    except Exception as error:
        traceback.print_exception(error.with_traceback(_own(error.__traceback__)))
        return 1
    return 0


def _status(code: Any) -> int:
    if code is None or isinstance(code, int):
        return int(code or 0) & 0xFF
    print(code, file=sys.stderr)
    return 1


def _own(trace: Any) -> Any:
    """The traceback from the script on, without this command and runpy; all of it where the script did not begin."""
    skipped, first = trace, trace
    while first is not None and (
        first.tb_frame.f_code.co_filename.startswith("<frozen runpy") or first.tb_frame.f_code is _run.__code__
    ):
        first = first.tb_next
    return first or skipped
