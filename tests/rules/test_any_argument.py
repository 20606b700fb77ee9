"""Whatever is given for an argument, a rule answers with a plan or with an error of astride's own, at once."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import astride
from astride.rules import RULES, has, module

OPERATORS = [op for op in vars(module("explicit")) if not op.startswith("_") and has("explicit", op)]
NEEDED: dict[str, dict[str, Any]] = {op: {"kernel": 2} for op in OPERATORS if "conv" not in op} | {
    "adaptive_pool": {"output_size": 2},
    "fractional_pool": {"kernel": 2, "output_size": 2},
}
GIVEN = [None, [1], "x", {}, object(), float("nan"), 2**70, b"x", (1, 2, 3, 4), [[1, 2], [3]], [None], "", 1.5]


@pytest.mark.parametrize("rules", RULES)
def test_of_a_rule(rules: str) -> None:
    tried = refused = 0
    for op in OPERATORS:
        if not has(rules, op):
            continue
        parameters = inspect.signature(astride.rules.rule(rules, op)).parameters
        fixed: dict[str, Any] = {"w_shape": (2, 2, 2, 2)} if "w_shape" in parameters else {}
        fixed |= {"dtype": "uint8"} if op == "conv_integer" else {}
        for name in [p.name for p in parameters.values() if p.kind is p.KEYWORD_ONLY]:
            for value in GIVEN:
                tried += 1
                try:
                    astride.plan(op, (1, 2, 6, 6), rules=rules, **fixed | NEEDED.get(op, {}) | {name: value})
                except astride.AstrideError:
                    refused += 1
    assert tried and tried // 2 < refused < tried


@pytest.mark.parametrize(
    ("op", "shape", "keywords", "says"),
    [
        (None, (1, 1, 4), {}, ("an operator is asked for by its name", "operator = None", 'try       "max_pool"')),
        ([1], (1, 1, 4), {}, ("an operator is asked for by its name",)),
        ("max_pool", None, {}, ("shape is no shape", "shape = None", "try       shape=x.shape")),
        ("max_pool", 5, {}, ("shape is no shape",)),
        (
            "max_pool",
            (1, 1, 4),
            dict(rules=[1]),
            ("there are no rules of that name", "rules = [1]", 'try       rules="explicit"'),
        ),
        ("max_pool", (1, 1, 4), dict(rules=None), ("there are no rules of that name",)),
        ("max_pool", (1, 1, 4), dict(dtype=[1]), ("there is no such dtype", 'try       dtype="float32"')),
        ("max_pool", (1, 1, 4), {}, ("the kernel is not given", "try       kernel=2")),
        ("adaptive_pool", (1, 1, 4), {}, ("the output size is not given", "try       output_size=2")),
        (
            "adaptive_pool",
            (1, 1, 4),
            dict(output_size=2**25),
            ("more windows than a plan can list", "<= 2^24, on axis W: 33554432"),
        ),
        ("conv", (1, 1, 4), dict(w_shape=5), ("w_shape is no shape",)),
        ("lp_pool", (1, 1, 4), dict(kernel=2, p="2"), ("p is not a number", "p = '2'", "as p=1.0")),
        ("max_pool", (1, 1, 4), dict(kernel=2, edge="constant", edge_value=[0]), ("edge_value is not a number",)),
        ("max_pool", (1, 1, 4), dict(kernel=2, layout=[1]), ("there is no layout of that name", "layout = [1]")),
        (
            "max_pool",
            (1, 1, 4),
            dict(kernel=2, remainder=("top_left",) * 2, rules="mps"),
            ("one corner per axis", "or 1 of them"),
        ),
    ],
)
def test_of_a_plan(op: Any, shape: Any, keywords: dict[str, Any], says: tuple[str, ...]) -> None:
    with pytest.raises(astride.ArgumentError) as raised:
        astride.plan(op, shape, **keywords)
    for text in says:
        assert text in str(raised.value), f"{text!r} is not in:\n{raised.value}"


@pytest.mark.parametrize(
    ("opset", "says"), [(99, "1 <= opset <= 28: 99"), (0, "opset is below 1"), ("x", "opset is not a whole")]
)
def test_of_an_opset(opset: Any, says: str) -> None:
    """None is newer than what onnx 1.23.2, whose operators are known, had."""
    for op in ("max_pool", "avg_pool", "lp_pool", "max_unpool"):
        for rules in ("onnx", "onnxruntime"):
            with pytest.raises(astride.ArgumentError, match=says):
                astride.plan(op, (1, 1, 4), kernel=2, rules=rules, opset=opset)
            assert astride.plan(op, (1, 1, 4), kernel=2, rules=rules, opset=28)


@pytest.mark.parametrize("version", ["9.9", "1.33", "1.15", "0.0"])
def test_of_a_release(version: str) -> None:
    for op in ("max_pool", "avg_pool", "lp_pool", "max_unpool"):
        with pytest.raises(astride.ArgumentError, match=f"1.16 <= version <= 1.32: {version}"):
            astride.plan(op, (1, 1, 4), kernel=2, rules="onnxruntime", version=version)
        assert astride.plan(op, (1, 1, 4), kernel=2, rules="onnxruntime", version="1.32.1")
