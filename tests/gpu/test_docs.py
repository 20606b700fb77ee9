"""The manual's examples that need a device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.markdown import FENCE, NOT_RUN, Block, run_python

ROOT = Path(__file__).resolve().parent.parent.parent
REASON = "needs a GPU"


def blocks_for_devices(page: str) -> list[Block]:
    """The Python blocks that the other tests leave out for want of a device."""
    found = []
    for match in FENCE.finditer(page):
        why = NOT_RUN.search(page[: match.start()])
        if why and why["reason"].startswith(REASON) and match["language"] == "python":
            found.append(Block("python", match["text"], page.count("\n", 0, match.start("text")) + 1))
    return found


PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if blocks_for_devices(page.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run(device: Any, page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_python(page, blocks_for_devices(page.read_text(encoding="utf-8"))) > 0


def test_the_manual_has_examples() -> None:
    assert any(page.name == "gpu.md" for page in PAGES)
