"""A process in which `import caffe` means pycaffe, and a folder of its own as the working directory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from astride import pycaffe


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, on sys.path as for a script."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.fixture
def installed(folder: Path) -> Iterator[Path]:
    """The working directory, with caffe installed; modules imported from it are forgotten afterwards."""
    before = set(sys.modules)
    pycaffe.install()
    yield folder
    pycaffe.uninstall()
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(folder) in str(sys.modules[name].__file__):
            del sys.modules[name]
