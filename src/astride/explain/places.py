"""The files of an operator: its function, the rules that have it, kernels, layers that compute by it, tests, manual."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from ..backends import BACKENDS, backend
from ..errors import ArgumentError, BackendUnavailable
from ..like import FRAMEWORKS
from ..ops import FORMS, OPERATORS
from ..proto import nearest
from ..rules import RULES, has, rule
from .sources import PACKAGE, place

TESTS = ("tests/cases/{op}.py", "tests/ops/test_{op}.py")
DOCS = ("docs/ops/{op}.md",)


@dataclass(frozen=True, slots=True)
class Place:
    """A file, from the root of the repository or of the installed package; 0 for the line means the whole file."""

    label: str
    path: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class Places:
    """All places of one operator."""

    op: str
    says: str
    function: tuple[Place, ...]
    rules: tuple[Place, ...]
    like: tuple[Place, ...]
    kernels: tuple[Place, ...]
    tests: tuple[Place, ...]
    docs: tuple[Place, ...]

    def groups(self) -> Iterator[tuple[str, tuple[Place, ...]]]:
        """(title, places) of what there is."""
        for title, places in (
            ("operator", self.function),
            ("rules: arguments to a plan", self.rules),
            ("like: a framework's own functions that follow them", self.like),
            ("kernels: a plan to numbers, best first", self.kernels),
            ("tests", self.tests),
            ("manual", self.docs),
        ):
            if places:
                yield title, places

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def places_of(op: str) -> Places:
    """Where an operator lives. Raises ArgumentError: nobody knows it."""
    if op not in OPERATORS:
        raise ArgumentError(
            "there is no operator of that name",
            given={"op": op},
            required=f"one of {', '.join(OPERATORS)}",
            hint=nearest(op, OPERATORS),
        )
    function = getattr(import_module(f"astride.ops.{op}"), op)
    return Places(
        op,
        OPERATORS[op],
        (_place("", function),),
        tuple(_place(name, rule(name, op)) for name in RULES if has(name, op)),
        tuple(Place(name, _shown(PACKAGE / "like" / f"{name}.py")) for name in FRAMEWORKS if name in RULES and has(name, op)),
        tuple(_kernels(op)),
        _existing(TESTS, op),
        _existing(DOCS, op),
    )


def _kernels(op: str) -> Iterator[Place]:
    for name in BACKENDS:
        try:
            kernels = [kernel for form in FORMS.get(op, (op,)) for kernel in backend(name).kernels(form)]
        except BackendUnavailable:
            continue
        for kernel in kernels:
            yield _place(f"{name}:{kernel.name}", kernel.forward)


def _place(label: str, function: Any) -> Place:
    path, line = place(function)
    return Place(label, _shown(PACKAGE.parent / path), line)


def _shown(file: Path) -> str:
    """From the root of the checkout where this is one, else from the folder that holds the package."""
    root = _checkout() or PACKAGE.parent
    return file.relative_to(root).as_posix() if file.is_relative_to(root) else str(file)


def _checkout() -> Path | None:
    root = PACKAGE.parent.parent
    return root if (root / "pyproject.toml").is_file() and (root / "tests").is_dir() else None


def _existing(patterns: tuple[str, ...], op: str) -> tuple[Place, ...]:
    root = _checkout()
    names = [pattern.format(op=op) for pattern in patterns]
    return tuple(Place("", name) for name in names if root is not None and (root / name).is_file())
