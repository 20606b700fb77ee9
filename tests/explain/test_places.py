"""The map of an operator points at lines that hold what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from astride.errors import ArgumentError
from astride.explain.places import places_of
from astride.ops import OPERATORS


@pytest.mark.parametrize("op", OPERATORS)
def test_places_exist(op: str, root: Path) -> None:
    found = places_of(op)
    for title, entries in found.groups():
        for entry in entries:
            file = root / entry.path
            assert file.is_file(), entry
            if entry.line:
                near = file.read_text(encoding="utf-8").splitlines()[entry.line - 1 : entry.line + 1]
                assert any("def " in line or "lambda" in line for line in near), (title, entry, near)
    assert found.function[0].path == f"src/astride/ops/{op}.py"


def test_tests_and_manual_are_on_the_map() -> None:
    found = places_of("max_pool")
    assert [entry.path for entry in found.docs] == ["docs/ops/max_pool.md"]
    assert [entry.path for entry in found.tests] == ["tests/cases/max_pool.py", "tests/ops/test_max_pool.py"]


def test_rules_and_kernels_are_listed() -> None:
    found = places_of("max_pool")
    assert {"caffe", "pytorch", "mps", "numpy_loops", "explicit"} <= {entry.label for entry in found.rules}
    assert "reference:loops4" in [entry.label for entry in found.kernels]


def test_an_unknown_operator() -> None:
    with pytest.raises(ArgumentError, match="max_pool"):
        places_of("maxpool")
