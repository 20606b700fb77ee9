"""The order of the house, and the walk that holds the imports of `src/astride` to it.

A row may import itself and the rows before it. The same rows are drawn in ARCHITECTURE.md.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROWS: tuple[tuple[str, ...], ...] = (
    ("errors", "settings", "plan", "proto"),
    ("rules", "backends"),
    ("dispatch",),
    ("tape",),
    ("ops",),
    ("like", "autodiff", "layers"),
    ("net",),
    ("data",),
    ("train",),
    ("caffe", "onnx", "adapters", "gpu"),
    ("pycaffe", "cv2dnn", "explain", "draw", "bench", "examples"),
    ("cli",),
)
ROW_OF = {name: row for row, names in enumerate(ROWS) for name in names}
# The package itself shows the public names, so it may import every row; only the last row, a user of them, may import it.
TOP = len(ROWS)
ROW_OF_FACE = TOP - 1


@dataclass(frozen=True)
class Arrow:
    """One import: which file, on which line, of which module, and the rooms at both ends."""

    file: str
    line: int
    target: str
    source_room: str
    target_room: str

    def points_down(self) -> bool:
        return ROW_OF.get(self.target_room, ROW_OF_FACE) <= ROW_OF.get(self.source_room, TOP)

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.source_room} imports {self.target} (row of {self.target_room} is above)"


def arrows(package: Path) -> list[Arrow]:
    """Every import of astride by astride, those inside functions included."""
    found = []
    for file in sorted(package.rglob("*.py")):
        path = file.relative_to(package)
        room = path.parts[0].removesuffix(".py")
        inside = (package.name, *path.parts[:-1])
        for line, target in _targets(ast.parse(file.read_text(encoding="utf-8")), inside):
            if target.split(".")[0] == package.name:
                found.append(Arrow(str(path), line, target, room, _room(package, target)))
    return found


def _room(package: Path, target: str) -> str:
    """The first name below the package, if that is a module; a plain name of the package is the package's own."""
    name = (target.split(".") + [""])[1]
    return name if (package / name).is_dir() or (package / f"{name}.py").is_file() or name in ROW_OF else "__init__"


def _targets(tree: ast.AST, inside: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """(line, full module path) of each import; a module named by a literal in import_module counts as well."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(inside[: len(inside) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            for alias in node.names:
                yield node.lineno, f"{module}.{alias.name}"
        elif isinstance(node, ast.Call) and _called(node) == "import_module" and node.args:
            name = node.args[0]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield node.lineno, name.value


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def long_functions(file: Path, limit: int) -> list[str]:
    """Functions whose body has more than `limit` lines; signature and docstring are not counted."""
    found = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            lines = (body[-1].end_lineno or body[-1].lineno) - body[0].lineno + 1 if body else 0
            if lines > limit:
                found.append(f"{file.name}:{node.lineno} {node.name} has {lines} lines")
    return found
