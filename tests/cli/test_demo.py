"""astride demo, cut short; what it does is tested in tests/demo."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.console import astride

pytest.importorskip("sklearn", reason="the demo's digits are part of scikit-learn")
pytest.importorskip("matplotlib", reason="the demo draws with Matplotlib")


def test_the_demo_prints_its_accuracy_and_files(tmp_path: Path) -> None:
    done = astride("demo", "--out", tmp_path / "out", "--iterations", 2)
    assert any(line.startswith("accuracy 0.") for line in done.lines)
    assert (tmp_path / "out" / "lenet_demo.png").is_file()


def test_json(tmp_path: Path) -> None:
    data = astride("demo", "--out", tmp_path, "--iterations", 1, "--seed", 3, "--json").data()
    assert data["iterations"] == 1 and 0 <= data["accuracy"] <= 1
    assert Path(data["picture"]).is_file() and Path(data["model"]).is_file()
