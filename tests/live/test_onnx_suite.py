"""onnx's own tests of the window operators, node by node through astride.onnx.run_node: none may fail, and none be refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install astride[peers]")

SUITE = Path(__file__).resolve().parents[3] / "shared" / "suites" / "onnx_suite.py"
SAMPLE = ("MaxUnpool", "ConvTranspose", "LpPool", "GlobalMaxPool", "GlobalAveragePool")
WINDOWS = (
    *SAMPLE,
    "MaxPool",
    "AveragePool",
    "GlobalLpPool",
    "Conv",
    "Col2Im",
    "ConvInteger",
    "QLinearConv",
    "DeformConv",
    "RoiAlign",
)
NODE, CONVERTED = 85, 46
"""How many cases onnx 1.23 has of them: single nodes, and models made from PyTorch's tests."""

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not SUITE.is_file(), reason="the runner of onnx's tests is not beside the repository"),
]


def outcomes(operators: tuple[str, ...], groups: str, folder: Path) -> Counter[str]:
    """How many cases passed, failed and were unsupported."""
    report = folder / "report.json"
    command = [sys.executable, str(SUITE), "--node", "astride.onnx:run_node", "--groups", groups, "--ops", ",".join(operators)]
    done = subprocess.run([*command, "--json", str(report)], capture_output=True, text=True, check=False)
    assert report.is_file(), done.stderr
    cases = json.loads(report.read_text(encoding="utf-8"))["cases"]
    assert [case for case in cases if case["result"] == "failed"] == []
    return Counter(case["result"] for case in cases)


def test_a_sample(tmp_path: Path) -> None:
    found = outcomes(SAMPLE, "node", tmp_path)
    assert found["unsupported"] == 0 and found["passed"] >= 20, found


@pytest.mark.conformance
def test_single_nodes(tmp_path: Path) -> None:
    found = outcomes(WINDOWS, "node", tmp_path)
    assert found["unsupported"] == 0 and found["passed"] >= NODE, found


@pytest.mark.conformance
def test_models_made_from_pytorch(tmp_path: Path) -> None:
    found = outcomes(WINDOWS, "pytorch-converted,pytorch-operator", tmp_path)
    assert found["unsupported"] == 0 and found["passed"] >= CONVERTED, found
