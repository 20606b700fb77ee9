"""What frameworks answered to small probes, against what astride answers."""

from __future__ import annotations

import re
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.compare import assert_near, assert_same
from tests.golden.semantics import own, translate
from tests.golden.semantics.reading import CASES, Answer, Call, Planned, answer, expected, refused

import astride

OWN = [case for case in CASES if case["framework"] in ("Caffe", "PyTorch", "NumPy idiom")]
OTHERS = [case for case in CASES if case["framework"] not in ("Caffe", "PyTorch", "NumPy idiom")]
RULES = Path(__file__).parents[1] / "rules"
ADAPTERS = {
    framework: module
    for module in (import_module(f"tests.rules.{file.stem}") for file in sorted(RULES.glob("cases_*.py")))
    for framework in module.FRAMEWORKS
}
"""framework -> the module that says a case of its in its own rules: FRAMEWORKS and call_of(case) -> Call | Planned."""
RULED = [case for case in CASES if case["framework"] in ADAPTERS]
DIFFERENT = {int(found) for found in re.findall(r"^\| (\d+) \|", (RULES / "known_peer_bugs.md").read_text("utf-8"), re.MULTILINE)}
TOLERANCES = {"oneDNN": 1e-5, "PyTorch": 1e-6}


def name(case: dict[str, Any]) -> str:
    return f"{case['id']} {case['framework']} {case['op']}"


def assert_answers(case: dict[str, Any], got: Answer) -> None:
    """Every part the case asks for; seven digits are all that was recorded."""
    want = expected(case)
    tolerance = TOLERANCES.get(case["framework"], 1e-6)
    y = np.asarray(got.y).astype("float64")
    if want.y.size == 0:
        want = Answer(want.y.reshape(y.shape) if y.size == 0 else want.y, want.indices, want.dx, want.dw)
    assert_near(y, want.y, tolerance, f"{name(case)}, y")
    if want.indices is not None:
        assert_same(np.asarray(got.indices).astype(np.int64), want.indices, f"{name(case)}, indices")
    for part in ("dx", "dw"):
        if getattr(want, part) is not None:
            assert_near(np.asarray(getattr(got, part)), getattr(want, part), tolerance, f"{name(case)}, {part}")


def assert_ruled(case: dict[str, Any], call: Call | Planned) -> None:
    """The recorded answer or refusal; for a listed case, another answer."""
    if case["id"] in DIFFERENT:
        try:
            got = answer(call, case)
        except astride.AstrideError:
            assert not refused(case), "a listed case agrees"
            return
        if not refused(case):
            with pytest.raises(AssertionError):
                assert_answers(case, got)
    elif refused(case):
        with pytest.raises(astride.AstrideError):
            answer(call, case)
    elif isinstance(case["output"], dict):
        assert answer(call, case).y.shape == tuple(case["output"]["output_shape"])
    else:
        assert_answers(case, answer(call, case))


@pytest.mark.parametrize("case", OWN, ids=name)
def test_by_its_own_signature(case: dict[str, Any]) -> None:
    assert_ruled(case, own.call_of(case))


@pytest.mark.parametrize("case", RULED, ids=name)
def test_by_its_rules(case: dict[str, Any]) -> None:
    assert_ruled(case, ADAPTERS[case["framework"]].call_of(case))


def test_every_listed_case_is_recorded() -> None:
    assert {case["id"] for case in CASES} >= DIFFERENT


@pytest.mark.parametrize("case", OTHERS, ids=name)
def test_by_explicit_choices(case: dict[str, Any]) -> None:
    case = dict(case)
    call = translate.call_of(case)
    if call is None:
        assert translate.LEFT_OUT[case["framework"]], "no reason is given for leaving this case out"
    elif refused(case):
        with pytest.raises(astride.AstrideError):
            answer(call, case)
    else:
        assert_answers(case, answer(call, case))


def test_most_cases_have_a_call() -> None:
    """Those left out are few, and only of frameworks with a stated reason."""
    left = Counter(case["framework"] for case in OTHERS if translate.call_of(dict(case)) is None)
    assert set(left) <= {framework for framework, reason in translate.LEFT_OUT.items() if reason}
    assert len(OTHERS) - left.total() > 230, left


@pytest.mark.parametrize("part", ["y", "indices", "dx"])
def test_a_wrong_answer_is_found(part: str) -> None:
    case = next(case for case in OWN if case["id"] == 102)
    case = dict(case, grad_input=case["input"])
    right = Answer(*(np.array(case[key], np.float64) for key in ("output", "indices", "grad_input")))
    assert_answers(case, right)
    wrong = np.array(getattr(right, part))
    wrong.flat[0] += 1
    with pytest.raises(AssertionError, match=part):
        assert_answers(case, Answer(**{"y": right.y, "indices": right.indices, "dx": right.dx, part: wrong}))
