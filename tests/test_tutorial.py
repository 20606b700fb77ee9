"""The tutorial shows real code and real numbers: what its pages include exists, and pictures show what is computed."""

from __future__ import annotations

import ast
import importlib.util
import io
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "tutorial"
PAGES = sorted(FOLDER.glob("*.md"))
INCLUDED = re.compile(r"^```\{literalinclude\} (?P<file>\S+)\n(?P<options>(?::[^\n]*\n)*)```$", re.MULTILINE)
IMAGE = re.compile(r"!\[[^\]]+\]\((?P<file>[^)]+)\)")
RECORDED = {"ladder"}
"""Pictures of measured times, which no test can repeat."""


def included(page: Path) -> list[tuple[Path, str]]:
    """(file, object) of every piece of source a page shows."""
    found = []
    for match in INCLUDED.finditer(page.read_text(encoding="utf-8")):
        name = re.search(r"^:pyobject: (\S+)$", match["options"], re.MULTILINE)
        assert name is not None, f"{page.name} includes {match['file']} without saying which function"
        found.append(((page.parent / match["file"]).resolve(), name[1]))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_shown_exists(page: Path) -> None:
    assert page.read_text(encoding="utf-8").count("{literalinclude}") == len(included(page)), "an include is misspelt"
    for file, name in included(page):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, f"{file.name} has no {name}"
        assert file.is_relative_to(ROOT / "src" / "astride" / "backends" / "reference")


def test_every_operator_of_the_ladder_has_its_derivation() -> None:
    shown = {file.stem for page in PAGES for file, _ in included(page)}
    assert shown >= {"_pool_ladder", "max_pool", "avg_pool", "lp_pool", "_correlation", "_correlation_loops"}


@pytest.fixture(scope="module")
def pictures() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tutorial_pictures", ROOT / "docs" / "pictures.py")
    assert spec and spec.loader
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def words(svg: str) -> list[str]:
    return [node.text or "" for node in ET.fromstring(svg).iter() if node.tag.endswith("text")]


def test_pictures_are_up_to_date(pictures: ModuleType) -> None:
    """The files show what the script would draw now; `python docs/pictures.py` draws them anew."""
    for name, draw in pictures.PICTURES.items():
        assert words((FOLDER / f"{name}.svg").read_text(encoding="utf-8")) == words(draw().svg()), name


def test_every_picture_is_shown_and_every_shown_one_exists(pictures: ModuleType) -> None:
    shown = {match["file"] for page in PAGES for match in IMAGE.finditer(page.read_text(encoding="utf-8"))}
    assert shown == {f"{name}.svg" for name in (*pictures.PICTURES, *RECORDED)} == {p.name for p in FOLDER.glob("*.svg")}


def test_nothing_reaches_over_the_edge(pictures: ModuleType) -> None:
    for name, draw in pictures.PICTURES.items():
        image = np.asarray(Image.open(io.BytesIO(draw().png())).convert("RGB"))
        inked = (image < 250).any(axis=2)
        assert 0.005 < inked.mean() < 0.5, name
        assert not inked[:, -8:].any() and not inked[-8:].any(), name


def test_pictures_show_what_the_pages_say(pictures: ModuleType) -> None:
    assert {"0.6", "0.8", "2.4", "4.2"} <= set(words(pictures.PICTURES["l2"]().svg()))
    assert words(pictures.PICTURES["max"]().svg()).count("6") == 4, "once in x, twice in y, once as 2 + 4 in dx"
    assert "1*100 + 0*10 + 2*1 = 102 = y[2]" in words(pictures.PICTURES["transposed"]().svg())
