"""Crafted and random hostile files, in processes of 1 GiB and five seconds a file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from . import targets
from .__main__ import run
from .crafted import crafted
from .targets import LIMIT_SECONDS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone holds a process to its address space")

MAY_BE_SOUND = ("flipped", "hdf5: ones at", "cut_off: message", "sizes: dim 0", "sizes: input_dim 0", "sizes: axis -1")
"""Where a file can still be one: of other numbers, cut between two fields, empty, or with an axis counted from the end."""


def limited(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
    root = Path(__file__).resolve().parents[2]
    return subprocess.run(
        [sys.executable, *arguments], cwd=root, env=environment, capture_output=True, text=True, timeout=280, check=False
    )


def outcomes() -> dict[str, dict[str, Any]]:
    """Name -> what became of each crafted file. A process that dies of one is a finding; the next goes on behind it."""
    cases = [name for name, _, _ in crafted()]
    found: dict[str, dict[str, Any]] = {}
    first = 0
    while first < len(cases):
        child = limited("-m", "tests.fuzz.crafted_child", str(first))
        for row in map(json.loads, child.stdout.splitlines()):
            if "outcome" in row:
                found[cases[row["number"]]] = row
                first = row["number"] + 1
        if first < len(cases):
            what = f"the process died, status {child.returncode}: {child.stderr[-300:]}"
            found[cases[first]] = {"outcome": "finding", "what": what, "seconds": 0.0}
            first += 1
    return found


def test_crafted_files_are_refused_in_time_and_memory() -> None:
    cases = crafted()
    assert len(cases) >= 300 and len({name for name, _, _ in cases}) == len(cases)
    found = outcomes()
    assert len(found) == len(cases)
    assert {name: row["what"] for name, row in found.items() if row["outcome"] == "finding"} == {}
    assert [name for name, row in found.items() if row["outcome"] == "read" and not name.startswith(MAY_BE_SOUND)] == []
    assert max(row["seconds"] for row in found.values()) < LIMIT_SECONDS


def test_some_random_files(tmp_path: Path) -> None:
    result = run(60, tmp_path, seed=990, examples=300)
    assert result["done"] == 300 and result["findings"] == {}


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("raise KeyError('x')", "KeyError"),
        ("while True: pass", "TooSlow"),
        ("bytearray(2**31)", "MemoryError"),
        ("[].append(1)", ""),
    ],
)
def test_the_limits_are_real(code: str, what: str) -> None:
    """The harness can fail: each of these targets is a finding, and the last one is none."""
    child = limited(
        "-c",
        "from tests.fuzz import targets\n"
        f"def bad(content):\n    {code}\n"
        "targets.TARGETS['bad'] = bad\ntargets.LIMIT_SECONDS = 0.5\ntargets.limit_process()\n"
        "print(*targets.attempt('bad', b''))",
    )
    assert child.stdout.startswith(f"finding {what}" if what else "read"), child.stderr


def test_every_target_takes_good_files() -> None:
    from .inputs import corpus

    assert set(corpus()) == set(targets.TARGETS)
    for target, files in corpus().items():
        for content in files:
            targets.TARGETS[target](content)
