"""How much memory there is, and how much is planned."""

from __future__ import annotations

from pathlib import Path

import pytest

from astride.errors import ArgumentError
from astride.layers import Blob
from astride.net import memory
from astride.settings import _container, free_memory


def test_shared_memory_counts_once() -> None:
    one, other, third = Blob((10,)), Blob((5,)), Blob((3,), "float64")
    other.share(one)
    ledger = memory.Ledger()
    ledger.add([other, one, third])
    assert ledger.total == 40 + 24
    ledger.add([one, other], diff=True)
    assert ledger.total == 40 + 24 + 40 + 20


def test_limits() -> None:
    assert memory.limit(5) == 5
    free = free_memory()
    if free is not None:
        assert free > 2**20
    for wrong in (-1, 1.5, True):
        with pytest.raises(ArgumentError, match="number of bytes"):
            memory.limit(wrong)  # type: ignore[arg-type]
    memory.refuse(100, None)
    memory.refuse(100, 100)
    with pytest.raises(ArgumentError, match="101 <= 100 bytes"):
        memory.refuse(101, 100)


def test_a_container_has_a_limit_of_its_own(tmp_path: Path) -> None:
    assert _container(tmp_path) is None
    for name, text in (("memory.max", "1000\n"), ("memory.current", "400\n"), ("memory.stat", "anon 1\ninactive_file 150\n")):
        (tmp_path / name).write_text(text)
    assert _container(tmp_path) == 750
    (tmp_path / "memory.max").write_text("max\n")
    assert _container(tmp_path) is None
