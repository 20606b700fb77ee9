"""From words on the command line to values. What cannot be read is a wrong command line: exit status 2."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

PythonLayer = Annotated[
    list[str] | None,
    typer.Option("--python-layer", metavar="MODULE", help="Run the Python layers of this module's classes; may be repeated."),
]

Dialect = Annotated[
    str | None,
    typer.Option("--dialect", metavar="NAME", help="bvlc, ssd, ...: whose fields the file has. Default: seen from the fields."),
]


def python_layers(modules: Sequence[str] | None) -> list[ModuleType]:
    """The modules of those names, which may lie in the working directory. Their `import caffe` finds pycaffe."""
    if not modules:
        return []
    from ..pycaffe import install

    install()
    if "" not in sys.path:
        sys.path.insert(0, "")
    found = []
    for name in modules:
        try:
            found.append(import_module(name))
        except ModuleNotFoundError as error:
            raise typer.BadParameter(f"there is no module {error.name}", param_hint="--python-layer") from None
        except SyntaxError as error:
            where = f"{error.filename}, line {error.lineno}: {error.msg}"
            raise typer.BadParameter(f"{name} is no Python 3: {where}", param_hint="--python-layer") from None
    return found


def per_axis(text: str | None, option: str) -> int | tuple[int, ...] | None:
    """`3`, or one number per axis: `3x2` or `3,2`."""
    if text is None:
        return None
    try:
        values = tuple(int(part) for part in re.split(r"[x,]", text.strip()))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is neither a whole number nor one per axis, as 3 or 3x2", param_hint=option) from None
    return values[0] if len(values) == 1 else values


def padding(text: str | None) -> Any:
    """As `per_axis`; before and after an axis as `0:1` or `0:1,0:1`; or a framework's own word (same, valid)."""
    if text is None:
        return None
    if re.fullmatch(r"[A-Za-z_]+", text):
        return text
    if ":" not in text:
        return per_axis(text, "--padding")
    try:
        pairs = tuple(tuple(int(n) for n in part.split(":")) for part in text.split(","))
    except ValueError:
        pairs = ()
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise typer.BadParameter(f"{text!r} does not say before:after for each axis, as 0:1,0:1", param_hint="--padding")
    return pairs


def plane(text: str | None) -> Any:
    """One plane of numbers: `1,2,nan,4`, rows as `1,2;3,4`, or a file that numpy.save wrote."""
    if text is None:
        return None
    import numpy as np

    if text.endswith(".npy"):
        try:
            return np.load(text, allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise typer.BadParameter(f"{text} is no .npy file of numbers: {error}", param_hint="--input") from None
    rows = [numbers(row, "--input") for row in text.strip().strip(";").split(";")]
    if len({len(row) for row in rows}) > 1:
        raise typer.BadParameter("its rows have different lengths", param_hint="--input")
    return np.array(rows if len(rows) > 1 else rows[0])


def is_network(target: str) -> bool:
    """Whether a target that may be an operator is a network's text. A file called like an operator is not."""
    from ..ops import OPERATORS

    return target.endswith(".prototxt") or (target not in OPERATORS and Path(target).is_file())


def names(text: str | None) -> list[str]:
    """`caffe,pytorch`"""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def numbers(text: str, option: str) -> list[float]:
    """`104,117,123`"""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no list of numbers, as 104,117,123", param_hint=option) from None


def options(texts: Iterable[str]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """`ceil_mode=true` for all, `pytorch.ceil_mode=true` for one: (for all, name -> its own)."""
    shared: dict[str, Any] = {}
    own: dict[str, dict[str, Any]] = {}
    for text in texts:
        match = re.fullmatch(r"(?:(\w+)\.)?(\w+)=(.*)", text)
        if match is None:
            raise typer.BadParameter(f"{text!r} is not name=value or rules.name=value", param_hint="--option")
        rules, name, value = match.groups()
        (own.setdefault(rules, {}) if rules else shared)[name] = value_of(value)
    return shared, own


def value_of(text: str) -> Any:
    """true, false, none, a number, several numbers, or the text itself."""
    word = text.strip().lower()
    if word in ("true", "false", "none"):
        return {"true": True, "false": False, "none": None}[word]
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    if re.fullmatch(r"-?\d+([x,]-?\d+)+", text):
        return tuple(int(part) for part in re.split(r"[x,]", text))
    return text
