"""The map is the territory: imports keep the order of the house, tables match folders, every operator has its files."""

from __future__ import annotations

import inspect
import re
import subprocess
from pathlib import Path

import pytest

import astride
from astride import backends, layers, like, ops, rules
from astride.caffe import translate
from tests.house import ROW_OF, ROWS, arrows, long_functions

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "astride"


def modules_in(folder: Path) -> set[str]:
    """Public modules and packages of a folder, by name."""
    files = {path.stem for path in folder.glob("*.py")}
    folders = {path.parent.name for path in folder.glob("*/__init__.py")}
    return {name for name in files | folders if not name.startswith("_")}


# The order of imports


def test_imports_keep_the_order_of_the_house() -> None:
    wrong = [str(arrow) for arrow in arrows(PACKAGE) if not arrow.points_down()]
    assert not wrong, "\n".join(wrong)


def test_every_room_has_a_row() -> None:
    assert modules_in(PACKAGE) <= set(ROW_OF)
    assert len(ROW_OF) == sum(len(row) for row in ROWS), "a room stands in two rows"


@pytest.mark.parametrize(
    "statement",
    [
        "from ..dispatch import run",
        "from .. import dispatch",
        "import astride.dispatch",
        "def f():\n    from astride import dispatch",
        "import importlib\nimportlib.import_module('astride.dispatch')",
        "from .. import __version__",
    ],
)
def test_an_arrow_that_points_up_is_found(tmp_path: Path, statement: str) -> None:
    package = tmp_path / "astride"
    (package / "plan").mkdir(parents=True)
    (package / "dispatch.py").write_text("from .plan import axis\n")
    (package / "plan" / "axis.py").write_text("from ..errors import ArgumentError\nfrom .kinds import Tie\n")
    assert [arrow for arrow in arrows(package) if not arrow.points_down()] == []
    (package / "plan" / "careless.py").write_text(statement + "\n")
    wrong = [arrow for arrow in arrows(package) if not arrow.points_down()]
    assert [arrow.file for arrow in wrong] == ["plan/careless.py"]


def test_the_drawing_shows_the_rows() -> None:
    """ARCHITECTURE.md lists the rows in the order that the test above holds the code to."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for row in ROWS:
        assert re.search(r"\s+".join(re.escape(name) + r"/?" for name in row), text), f"no row {row}"


# Operators and their files


def files_of(operator: str) -> list[str]:
    """What only chooses another operator's windows has no kernel."""
    return [
        f"src/astride/ops/{operator}.py",
        *([] if operator in ops.FORMS else [f"src/astride/backends/reference/{operator}.py"]),
        f"tests/cases/{operator}.py",
        f"tests/ops/test_{operator}.py",
        f"docs/ops/{operator}.md",
    ]


def missing_files(operator: str, root: Path) -> list[str]:
    return [name for name in files_of(operator) if not (root / name).is_file()]


@pytest.mark.parametrize("operator", ops.OPERATORS)
def test_operator_has_its_files(operator: str) -> None:
    assert missing_files(operator, ROOT) == []


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    for name in files_of("half_pool")[1:]:
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    assert missing_files("half_pool", tmp_path) == ["src/astride/ops/half_pool.py"]


@pytest.mark.parametrize("name", rules.RULES)
def test_framework_has_its_page(name: str) -> None:
    assert (ROOT / "docs" / "rules" / f"{name}.md").is_file()


# Tables and folders


def test_tables_match_folders() -> None:
    assert set(ops.OPERATORS) == modules_in(PACKAGE / "ops")
    assert set(rules.RULES) == modules_in(PACKAGE / "rules")
    assert set(backends.BACKENDS) == modules_in(PACKAGE / "backends") - {"draws", "epilogue", "fixed", "memory", "protocol"}
    assert set(like.FRAMEWORKS) == modules_in(PACKAGE / "like")
    assert set(layers.LAYERS.values()) == modules_in(PACKAGE / "layers") - {"blob", "fillers", "layer", "source"}
    assert set(translate.TRANSLATORS) == set(layers.LAYERS)


# The public face


def test_all_is_complete() -> None:
    assert list(astride.__all__) == sorted(astride.__all__)
    for name in astride.__all__:
        assert getattr(astride, name, None) is not None, name
    assert set(ops.OPERATORS) <= set(astride.__all__)
    assert set(astride.__all__) <= set(dir(astride))


@pytest.mark.parametrize("name", astride.__all__)
def test_public_name_is_documented(name: str) -> None:
    value = getattr(astride, name)
    if inspect.isfunction(value) or inspect.isclass(value) or inspect.ismodule(value):
        assert (value.__doc__ or "").strip(), f"astride.{name} has no docstring"


# Sizes and words

LONGEST_FILE, LONGEST_FUNCTION, LONGEST_KERNEL = 400, 50, 120
UNSPEAKING = {"utils", "util", "misc", "common", "helpers", "helper"}


def test_files_and_functions_stay_readable() -> None:
    wrong = []
    for file in sorted(PACKAGE.rglob("*.py")):
        lines = len(file.read_text(encoding="utf-8").splitlines())
        if lines > LONGEST_FILE:
            wrong.append(f"{file.relative_to(PACKAGE)} has {lines} lines")
        limit = LONGEST_KERNEL if "backends" in file.parts else LONGEST_FUNCTION
        wrong += long_functions(file, limit)
    assert not wrong, "\n".join(wrong)


def test_a_long_function_is_found(tmp_path: Path) -> None:
    file = tmp_path / "long.py"
    body = "".join(f"    x = {i}\n" for i in range(51))
    file.write_text(f'def short():\n    """Does\n\n    little.\n    """\n    x = 1\ndef long():\n{body}')
    assert long_functions(file, 50) == ["long.py:7 long has 51 lines"]
    assert long_functions(file, 51) == []


def test_no_module_is_a_drawer_for_everything() -> None:
    assert [str(path) for path in PACKAGE.rglob("*.py") if path.stem.strip("_") in UNSPEAKING] == []


# What a repository must not carry

LOCAL = re.compile(r"(?<![\w.~-])/(?:home|root|Users|work|tmp|mnt|opt|var/tmp)/[\w.-]")
TEXT = {".py", ".md", ".toml", ".txt", ".prototxt", ".json", ".cfg", ".yml", ".yaml", ".css", ".html", ""}


def local_paths(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if LOCAL.search(line)]


def test_no_file_names_a_local_path() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    wrong = []
    for name in listed.stdout.split():
        file = ROOT / name
        if file.suffix in TEXT and file.is_file() and file != Path(__file__).resolve():
            wrong += [f"{name}: {line}" for line in local_paths(file.read_text(encoding="utf-8", errors="replace"))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("line", "found"), [("see /home/me/net", True), ("open('/tmp/x')", True), ("src/work/a", False), ("~/tmp/a", False)]
)
def test_a_local_path_is_found(line: str, found: bool) -> None:
    assert bool(local_paths(line)) is found
