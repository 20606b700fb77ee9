"""Every example of the README and of the manual runs, and every link of theirs leads somewhere."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import astride
from tests.markdown import Block, blocks, commands, run_command, run_python

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")] + sorted((ROOT / "docs").rglob("*.md"))
PAGES = [page for page in PAGES if "_build" not in page.parts and "_generated" not in page.parts]
LINK = re.compile(r"(?<!!)\[[^\]]+\]\((?P<target>[^)#\s]+)(?:#[^)]*)?\)")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def has_python(page: Path) -> bool:
    return any(block.language in ("python", "pycon") for block in blocks(page.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", [page for page in PAGES if has_python(page)], ids=name_of)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_python(page, blocks(page.read_text(encoding="utf-8"))) > 0


COMMANDS = [(page, words) for page in PAGES for words in commands(blocks(page.read_text(encoding="utf-8")))]


@pytest.mark.parametrize(
    ("page", "words"), COMMANDS, ids=lambda value: value.stem if isinstance(value, Path) else " ".join(value)
)
def test_commands_run(page: Path, words: list[str], tmp_path: Path) -> None:
    assert run_command(words, tmp_path).strip()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    targets = [match["target"] for match in LINK.finditer(page.read_text(encoding="utf-8"))]
    local = [target for target in targets if "://" not in target and not target.startswith("mailto:")]
    assert [target for target in local if not (page.parent / target).exists() and "_generated" not in target] == []


def modules() -> list[str]:
    """Every module of astride, by name."""
    return [found.name for found in pkgutil.walk_packages(astride.__path__, "astride.") if not found.name.endswith("__main__")]


@pytest.mark.parametrize("name", modules())
def test_docstring_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert failed == 0


def test_the_readme_has_examples() -> None:
    found = blocks((ROOT / "README.md").read_text(encoding="utf-8"))
    assert sum(block.language == "python" for block in found) >= 3
    assert len(commands(found)) >= 2


def test_blocks_are_found_and_failures_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "a\n```python\nx = 1\n```\n<!-- not run: needs a file -->\n```python\nx = 1 / 0\n```\n```pycon\n>>> x\n2\n```\n"
    )
    found = blocks(page.read_text())
    assert found == [Block("python", "x = 1\n", 3), Block("pycon", ">>> x\n2\n", 10)]
    with pytest.raises(Exception, match="page"):
        run_python(page, found)
    assert commands([Block("console", "$ astride where \\\n  max_pool\nsrc\n$ ls\n", 1)]) == [["astride", "where", "max_pool"]]
