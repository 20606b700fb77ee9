"""PyTorch's own operator samples (OpInfo) and error inputs, shipped in the torch wheel, for the operators that exist here."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.live.opinfo_table import NAMES

pytest.importorskip("torch", reason="torch is not installed: pip install astride[peers]")
pytest.importorskip("expecttest", reason="PyTorch's own tests need expecttest: pip install astride[peers]")

pytestmark = pytest.mark.live

SAMPLES = 4174
"""All there are in torch 2.13: operator samples, module inputs and error inputs."""
ROUNDED = ("conv3d", "conv_transpose3d")
"""Whose float32 sums of hundreds of terms are in another order than PyTorch's, which its own tolerance leaves no room for."""


def score(shared: Path, root: Path, table: str, dtype: str, names: tuple[str, ...] = NAMES) -> tuple[int, int, int, str]:
    """(passed, failed, skipped, printed) of the suite on one table."""
    suite = shared / "suites" / "torch_opinfo.py"
    if not suite.is_file():
        pytest.skip("the suite that drives PyTorch's samples is not beside the repository")
    command = [sys.executable, str(suite), "--table", table, "--ops", ",".join(names), "--dtype", dtype]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=3000)
    found = re.search(r"(\d+) passed, (\d+) failed, (\d+) skipped", done.stdout)
    assert found, done.stdout[-3000:] + done.stderr[-3000:]
    return int(found[1]), int(found[2]), int(found[3]), done.stdout


FEW = ("adaptive_avg_pool2d", "adaptive_max_pool3d", "fractional_max_pool2d", "fold", "lp_pool2d", "avg_pool3d", "conv2d")


def test_some_samples(shared: Path, root: Path) -> None:
    passed, failed, skipped, printed = score(shared, root, "tests.live.opinfo_table:TABLE", "float64", FEW)
    assert (failed, skipped) == (0, 0), printed
    assert passed > 150


@pytest.mark.conformance
def test_all_samples(shared: Path, root: Path) -> None:
    passed, failed, skipped, printed = score(shared, root, "tests.live.opinfo_table:TABLE", "float64")
    assert (failed, skipped) == (0, 0), printed
    assert passed >= SAMPLES


@pytest.mark.conformance
def test_all_samples_of_single_precision(shared: Path, root: Path) -> None:
    exact = tuple(name for name in NAMES if name not in ROUNDED)
    passed, failed, skipped, printed = score(shared, root, "tests.live.opinfo_table:TABLE", "float32", exact)
    assert (failed, skipped) == (0, 0), printed
    assert passed > 4000


@pytest.mark.conformance
def test_planted_faults_show(shared: Path, root: Path) -> None:
    assert score(shared, root, "torch_opinfo:WRONG", "float64")[1] > 20
