"""Every formula comes to the size that the plan has, in the framework's own form."""

from __future__ import annotations

import re
from itertools import product

import pytest

from astride.explain import compare
from astride.explain.formulas import FORMULAS, formulas
from astride.rules import RULES, has

OPERATORS = ("max_pool", "avg_pool", "conv", "conv_transpose")
WORDS = {"mps", "tensorflow", "keras", "tflite"}  # pad by words rather than amounts
OWN: dict[str, list[dict[str, object]]] = {
    "caffe": [{}, {"round_mode": "FLOOR"}],
    "pytorch": [{}, {"ceil_mode": True}],
    "mps": [{"padding": word} for word in ("same", "valid", "full")] + [{"size": 2, "offset": 0}],
    **{name: [{"padding": word} for word in ("valid", "same")] for name in ("tensorflow", "keras", "tflite")},
    "explicit": [
        {},
        {"padding": "same"},
        {"rounding": "ceil"},
        {"rounding": "ceil", "clip": "never"},
        {"rounding": "ceil", "clip": "padded"},
    ],
}


def test_formulas_are_those_of_known_frameworks() -> None:
    assert set(FORMULAS) <= set(RULES)


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("op", OPERATORS)
def test_formulas_come_to_the_planned_size(op: str, rules: str) -> None:
    if not has(rules, op):
        pytest.skip(f"{rules} has no {op}")
    tried = 0
    for own in OWN.get(rules, [{}]):
        for size, kernel, stride, padding, dilation in product((4, 8), (2, 3), (1, 2, 3), (0, 1), (1, 2)):
            geometry: dict[str, object] = dict(kernel=kernel, stride=stride)
            geometry |= {} if rules in WORDS or own.get("padding") else {"padding": padding}
            geometry |= {"dilation": dilation} if dilation > 1 else {}
            pooling = op.endswith("_pool")
            kept = {n: v for n, v in own.items() if pooling or n in ("padding", "size", "offset")}
            if op == "conv_transpose" and kept.get("padding") == "same" and rules == "explicit":
                continue
            try:
                (side,) = compare(op, size, (rules,), rank=1, own={rules: kept}, **geometry).sides
            except ValueError:
                continue
            if side.plan is None:
                continue
            (text,) = side.formulas
            out = side.axes[0].size if op == "conv_transpose" else side.axes[0].out
            if rules in FORMULAS:
                assert "rounded" not in text and "planned" not in text, (text, own, geometry)
            assert int(re.findall(r"(?:= |to |as )(-?\d+)(?![.\d])", text)[-1]) == out, (text, own, geometry)
            tried += 1
    assert tried >= 5 or rules not in FORMULAS


@pytest.mark.parametrize(
    ("rules", "arguments", "text"),
    [
        ("caffe", dict(kernel=3, stride=2), "ceil((8 - 3) / 2) + 1 = 4"),
        ("caffe", dict(kernel=2, stride=2, padding=1), "ceil((8 + 2 - 2) / 2) + 1 = 5"),
        (
            "caffe",
            dict(kernel=2, stride=3, padding=1),
            "ceil((8 + 2 - 2) / 3) + 1 = 4, less 1 (it would start behind the input) = 3",
        ),
        ("pytorch", dict(kernel=3, stride=2, dilation=2), "floor((8 - 5) / 2) + 1 = 2"),
        ("mps", dict(kernel=3, stride=2), "ceil(8 / 2) = 4"),
        ("numpy_loops", dict(kernel=2, stride=2), "(8 - 2) / 2 + 1 = 4, without a remainder"),
    ],
)
def test_formulas_read_as_in_the_framework(rules: str, arguments: dict[str, object], text: str) -> None:
    assert compare("max_pool", 8, (rules,), rank=1, **arguments).sides[0].formulas == (text,)


def test_the_transposed_formula() -> None:
    (side,) = compare("conv_transpose", 5, ("pytorch",), rank=1, kernel=3, stride=2, padding=1, output_padding=1).sides
    assert side.formulas == ("(5 - 1) * 2 + 3 - 2 + 1 = 10",)


@pytest.mark.parametrize(
    ("rules", "kernel", "text"),
    [
        ("caffe", 3, "(8 - 3) / 2 + 1 = 3.5, rounded up to 4"),
        ("pytorch", 3, "(8 - 3) / 2 + 1 = 3.5, rounded down to 3"),
        ("pytorch", 2, "(8 - 2) / 2 + 1 = 4"),
    ],
)
def test_a_framework_without_a_form_of_its_own_is_told_by_its_plan(rules: str, kernel: int, text: str) -> None:
    (side,) = compare("max_pool", 8, (rules,), rank=1, kernel=kernel, stride=2).sides
    assert side.plan is not None
    assert formulas("nobody", side.plan, {}) == (text,)


def test_unpooling() -> None:
    (side,) = compare("max_unpool", 4, ("pytorch",), rank=1, kernel=3, stride=2).sides
    assert side.formulas == ("(4 - 1) * 2 + 3 = 9",)
