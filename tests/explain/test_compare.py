"""Comparisons: what the issue's example says, who differs, who refuses, who computes."""

from __future__ import annotations

import json

import pytest

from astride.errors import AstrideError
from astride.explain import Place, compare, to_dict, windowed_operators
from astride.ops import OPERATORS
from astride.plan import plan_from_dict
from astride.rules import RULES, has

THREE = ("caffe", "pytorch", "mps")


def test_three_frameworks_of_one_window() -> None:
    """Size 8, kernel 3, stride 2: Caffe rounds up and reaches past the input, PyTorch drops pixel 7, MPS centres."""
    found = compare("max_pool", 8, THREE, kernel=3, stride=2)
    caffe, pytorch, mps = found.sides
    assert [side.axes[0].out for side in found.sides] == [4, 3, 4]
    assert [window.pixels for window in caffe.axes[0].windows] == [(0, 1, 2), (2, 3, 4), (4, 5, 6), (6, 7)]
    assert caffe.axes[0].windows[3].taps[2].place is Place.OVERHANG
    assert [window.pixels for window in pytorch.axes[0].windows] == [(0, 1, 2), (2, 3, 4), (4, 5, 6)]
    assert pytorch.axes[0].unread == ((7, 7),)
    assert [window.pixels for window in mps.axes[0].windows] == [(0, 1), (1, 2, 3), (3, 4, 5), (5, 6, 7)]
    assert mps.axes[0].windows[0].taps[0].place is Place.PADDING
    assert caffe.formulas[0] == "ceil((8 - 3) / 2) + 1 = 4"
    assert found.differing == ("output", "padding", "outside the input", "equal values", "NaN", "starts from", "nothing won")
    assert found.alike()


def test_windows_that_differ_from_the_first() -> None:
    found = compare("max_pool", 8, THREE, kernel=3, stride=2)
    caffe, pytorch, mps = found.sides
    assert not any(found.differs(caffe, 0, window) for window in caffe.axes[0].windows)
    assert not any(found.differs(pytorch, 0, window) for window in pytorch.axes[0].windows)
    assert all(found.differs(mps, 0, window) for window in mps.axes[0].windows)
    turned = compare("max_pool", 8, ("pytorch", "caffe"), kernel=3, stride=2)
    assert [turned.differs(turned.sides[1], 0, w) for w in turned.sides[1].axes[0].windows] == [False, False, False, True]


def test_equal_rules_do_not_differ() -> None:
    found = compare("max_pool", 8, ("caffe", "caffe"), kernel=3, stride=2)
    assert found.differing == ()


def test_divisors_differ_where_windows_do_not() -> None:
    found = compare(
        "avg_pool", 7, ("caffe", "mps"), kernel=3, stride=2, padding=1, rank=1, own={"mps": {"padding": "same", "edge": "clamp"}}
    )
    caffe, mps = found.sides
    assert [window.divisor for window in caffe.axes[0].windows] == [3, 3, 3, 3]
    assert [window.divisor for window in mps.axes[0].windows] == [2, 3, 3, 2]
    assert [found.differs(mps, 0, window) for window in mps.axes[0].windows] == [True, False, False, True]


def test_axes_of_their_own() -> None:
    found = compare("avg_pool", (7, 9), ("caffe",), kernel=(3, 2), stride=2)
    (side,) = found.sides
    assert [(axis.name, axis.size, axis.out) for axis in side.axes] == [("H", 7, 3), ("W", 9, 5)]
    assert not found.alike()


def test_a_refusal_is_a_side_with_its_reason() -> None:
    found = compare("max_pool", 8, ("caffe", "numpy_loops"), kernel=3, stride=2)
    refused = found.sides[1]
    assert refused.plan is None and refused.error is not None
    assert "do not fill the input" in refused.error.problem
    assert found.answered == found.sides[:1]


def test_a_framework_without_the_operator_is_a_refusal() -> None:
    found = compare("lp_pool", 8, ("pytorch", "caffe"), kernel=2)
    assert found.sides[1].error is not None and "has no lp_pool" in found.sides[1].error.problem


def test_options_go_to_the_rules_that_have_them() -> None:
    found = compare("max_pool", 8, ("caffe", "pytorch"), kernel=3, stride=2, ceil_mode=True)
    assert [side.axes[0].out for side in found.sides] == [4, 4]
    assert "ceil_mode" not in found.sides[0].arguments
    own = compare("max_pool", 8, ("caffe", "pytorch"), kernel=3, stride=2, own={"caffe": {"round_mode": "FLOOR"}})
    assert [side.axes[0].out for side in own.sides] == [3, 3]


def test_who_computes_and_who_declines() -> None:
    """MPS's zeros that take part are not for textbook loops."""
    (side,) = compare("max_pool", 8, ("mps",), kernel=3, stride=2).sides
    assert side.computed_by == "cpu:vectors"
    (side,) = compare("max_pool", 8, ("mps",), kernel=3, stride=2, backend="reference").sides
    assert side.computed_by == "reference:im2col" and side.general_path
    assert {rung.name: rung.declines is None for rung in side.rungs}["reference:loops4"] is False


def test_a_named_rung_that_declines_leaves_nobody() -> None:
    (side,) = compare("max_pool", 8, ("mps",), kernel=3, stride=2, backend="reference:loops4").sides
    assert side.plan is not None and side.computed_by is None and side.error is not None
    assert not side.general_path


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (dict(op="max_pol", sizes=8, kernel=3), "max_pool"),
        (dict(op="MaxPool2d", sizes=8, kernel=3), "try       max_pool"),
        (dict(op="CONV_2D", sizes=8, kernel=3), "try       conv"),
        (dict(op="matmul", sizes=8, kernel=3), "frameworks do not differ in matmul"),
        (dict(op="max_pool", sizes=8, rules=["caffee"], kernel=3), "one of explicit, caffe, pytorch"),
        (dict(op="max_pool", sizes=8, rules=[], kernel=3), "nobody to compare"),
        (
            dict(op="max_pool", sizes=8, rules=["caffe"], kernel=3, ceil_mode=True),
            "none of these rules has an argument 'ceil_mode'",
        ),
        (dict(op="max_pool", sizes=(8, 8), rank=3, rules=["caffe"], kernel=3), "one size per axis"),
        (dict(op="conv", sizes=8, rules=["caffe"]), "the kernel is not given"),
    ],
)
def test_what_cannot_be_compared(arguments: dict[str, object], said: str) -> None:
    with pytest.raises(AstrideError, match=said):
        compare(**arguments)  # type: ignore[arg-type]


WINDOWED = [op for op in OPERATORS if any(has(name, op) for name in RULES)] + ["unfold", "fold", "global_pool", "window_reduce"]


@pytest.mark.parametrize("op", WINDOWED)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_every_windowed_operator_is_explained_as_plain_data(op: str, rank: int) -> None:
    assert op in windowed_operators()
    sized = {"output_size": 3} if op in ("adaptive_pool", "fractional_pool") else {}
    window = {} if op in ("adaptive_pool", "global_pool") else {"kernel": 3, "stride": 2}
    if op == "fractional_pool":
        del window["stride"]
    found = compare(op, 7, rank=rank, **window, **sized)
    assert found.answered and all(side.axes for side in found.answered)
    data = json.loads(json.dumps(to_dict(found)))
    assert [side["rules"] for side in data["rules"]] == list(RULES)
    for side, shown in zip(found.sides, data["rules"], strict=True):
        assert (shown["error"] is None) == (side.plan is not None)
        if side.plan is not None:
            assert plan_from_dict(shown["plan"]) == side.plan
            assert shown["source"]["path"] == f"astride/rules/{side.rules}.py" and shown["source"]["line"] > 1
            assert len(shown["facts"]) >= 3


def test_a_long_axis_keeps_its_ends() -> None:
    (side,) = compare("max_pool", 5000, ("caffe",), kernel=3, stride=2, rank=1).sides
    axis = side.axes[0]
    assert axis.out == 2500 and len(axis.windows) + axis.left_out == 2500
    assert (axis.windows[0].index, axis.windows[-1].index) == (0, 2499)
