"""Every field report has a test of its name; those about windows a line in docs/faq.md, too."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
REPORTS = ROOT.parent / "shared" / "reports.md"
OTHERS = {
    "POOL-25": "asks for the speed of a maximum, and of no value",
    "CAF-15": "asks for a comparison with a network that another framework runs: nothing is read from there yet",
    "CAF-50": "asks for a converter to ONNX that checks itself: nothing is written there yet",
    "CAF-52": "asks for ONNX out of Caffe: nothing is written there yet",
    "BIG-04": "asks for arrays in pieces, which no operator takes",
}
HEAD = re.compile(r"^### ((?:CAF|POOL|CONV|NUMPY|WISH|APPLE|BIG)-\d+)\n- Source: (.*)$", re.MULTILINE)


def reports() -> list[tuple[str, str]]:
    if not REPORTS.is_file():
        pytest.skip("the reports are not beside this checkout")
    return HEAD.findall(REPORTS.read_text(encoding="utf-8"))


def test_each_has_a_test_of_its_name() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    names = {code for code, _ in reports()}
    assert len(names) == 91
    missing = {code for code in names if f"def test_{code.lower().replace('-', '_')}_" not in text}
    assert missing == set(OTHERS)


def test_each_has_an_answer() -> None:
    faq = (ROOT / "docs" / "faq.md").read_text(encoding="utf-8")
    missing = [
        f"{code}: {source}"
        for code, source in reports()
        if code not in OTHERS
        and not code.startswith("CAF")
        and re.search(r"#\d+", source)
        and not re.search(rf"{re.search(r'#[0-9]+', source)[0]}\b", faq)  # type: ignore[index]
    ]
    assert missing == []
