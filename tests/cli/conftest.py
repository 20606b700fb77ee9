"""A folder in which commands find a small network and its samples."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.cli.console import astride, workshop


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workshop whose network has learned, in stripes_iter_30.caffemodel; to be copied, not changed."""
    folder = workshop(tmp_path_factory.mktemp("workshop"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        astride("train", "solver.prototxt", "--data", "train.npz", "--test-data", "test.npz")
    return folder


@pytest.fixture
def shop(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the workshop, as the working directory."""
    folder = tmp_path / "shop"
    shutil.copytree(trained, folder)
    monkeypatch.chdir(folder)
    return folder
