"""The manual shows what the commands print today."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "porting.md"


def transcripts() -> object:
    spec = importlib.util.spec_from_file_location("transcripts", ROOT / "docs" / "transcripts.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_output_is_todays() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert len(re.findall(r"^\$ astride explain --from", page, re.MULTILINE)) >= 8
    assert transcripts().rewritten(page) == page, "python docs/transcripts.py docs/porting.md"  # type: ignore[attr-defined]


def test_an_output_that_is_not_todays_is_seen() -> None:
    page = "```console\n$ astride where \\\n  max_pool\nnothing\n```\n"
    written = transcripts().rewritten(page)  # type: ignore[attr-defined]
    assert written.startswith("```console\n$ astride where \\\n  max_pool\n") and "max_pool.py" in written
    assert "nothing" not in written


def test_explained_operators_are_todays_up_to_where_they_are_cut() -> None:
    page = (ROOT / "docs" / "explain.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```console\n(.*?)^\.\.\.\n```$", page, re.MULTILINE | re.DOTALL)
    assert len(shown) == 3
    for block in shown:
        today = transcripts().rewritten(f"```console\n{block}```\n")  # type: ignore[attr-defined]
        assert today.startswith(f"```console\n{block}"), "docs/explain.md shows another output"
