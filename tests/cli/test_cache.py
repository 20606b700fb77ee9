"""astride cache."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from tests.cli.console import astride


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of three entries, as the backend names and dates them."""
    monkeypatch.setenv("ASTRIDE_CACHE_DIR", str(tmp_path))
    kernels = tmp_path / "kernels"
    kernels.mkdir()
    for name, bytes_, moment in (("pool_first_max-aa", 2000, 3), ("pool_first_max-bb", 1000, 1), ("driver-cc", 500, 2)):
        (kernels / f"{name}.o").write_bytes(bytes(bytes_))
        at = time.mktime((2026, 11, 30, 12, moment, 0, 0, 0, -1))
        os.utime(kernels / f"{name}.o", (at, at))
    (kernels / ".new-half").write_bytes(b"half")
    return kernels


def test_what_is_there(folder: Path) -> None:
    done = astride("cache")
    rows = [line.split() for line in done.lines]
    assert rows[0] == ["kernel", "kept", "size", "last", "used"]
    assert rows[1] == ["driver", "1", "500", "B", "2026-11-30", "12:02"]
    assert rows[2] == ["pool_first_max", "2", "3.0", "KB", "2026-11-30", "12:03"]
    assert done.lines[4:] == ["3 kernels, 3.5 KB of 268.4 MB", str(folder)]


def test_json(folder: Path) -> None:
    data = astride("cache", "show", "--json").data()
    assert data["folder"] == str(folder) and data["bytes"] == 3500 and data["limit_bytes"] == 256 * 2**20
    assert data["kernels"][0] == {"kernel": "pool_first_max", "bytes": 2000, "used": "2026-11-30 12:03"}
    assert [entry["kernel"] for entry in data["kernels"]] == ["pool_first_max", "driver", "pool_first_max"]


def test_clear(folder: Path) -> None:
    assert astride("cache", "clear").lines == ["3 kernels deleted, 3.5 KB freed"]
    assert list(folder.iterdir()) == []
    assert astride("cache", "clear", "--json").data()["deleted"] == 0
    assert astride("cache").lines == ["0 kernels, 0 B of 268.4 MB", str(folder)]


def test_a_real_kernel_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    import astride as package
    from astride.backends.cpu import cache

    monkeypatch.setenv("ASTRIDE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "_addresses", {})
    # A geometry no other test has, so that no schedule of it is remembered.
    package.max_pool(np.zeros((1, 1, 37, 41), np.float32), kernel=(5, 7), stride=(3, 2), backend="cpu")
    kernels = [entry["kernel"] for entry in astride("cache", "--json").data()["kernels"]]
    assert any(name.startswith("pool_first_max") for name in kernels)


def test_another_word_is_refused(folder: Path) -> None:
    done = astride("cache", "erase", status=1)
    assert "one of show, clear" in done.err and done.out == "" and len(list(folder.iterdir())) == 4
