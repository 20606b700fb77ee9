"""What the terminal shows: 80 columns, every window, the marks and the reasons."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from astride.explain import Comparison, compare, facts, render
from astride.plan.kinds import Divisor, Edge, Empty, IndexBase, LpForm, LpScale, Nan, Tie, Unpicked, ZeroWindow
from astride.rules import RULES


def printed(comparison: Comparison) -> str:
    file = io.StringIO()
    console = Console(file=file, width=80, highlight=False)
    for part in render(comparison):
        console.print(part)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


TRANSCRIPT = """\
max_pool of 8x8, kernel 3, stride 2, float32

axes H and W (alike): the pixels each window reads
  caffe       8 -> 4   ceil((8 - 3) / 2) + 1 = 4
  window 0       0 1 2
  window 1           2 3 4
  window 2               4 5 6
  window 3                   6 7 x
≠ pytorch     8 -> 3   floor((8 - 3) / 2) + 1 = 3
  window 0       0 1 2
  window 1           2 3 4
  window 2               4 5 6
≠ no window 3
               no window reads pixel 7
  mps         8 -> 4   ceil(8 / 2) = 4
≠ window 0     o 0 1
≠ window 1         1 2 3
≠ window 2             3 4 5
≠ window 3                 5 6 7

  o    padding that takes part, with its own value
  x    past input and padding: the output was rounded up
  ≠    unlike caffe
"""


def test_the_windows_of_three_frameworks() -> None:
    assert printed(compare("max_pool", 8, ("caffe", "pytorch", "mps"), kernel=3, stride=2)).startswith(TRANSCRIPT)


def test_differences_are_marked_and_come_first() -> None:
    text = printed(compare("max_pool", 8, ("caffe", "pytorch", "mps"), kernel=3, stride=2, backend="reference"))
    rows = [line for line in text.splitlines() if line[2:].startswith(("output", "NaN", "window without a"))]
    assert [row[0] for row in rows] == ["≠", "≠", " "]
    assert "reference:loops3, reference:loops4 decline: textbook loops have no constant" in text
    assert "general path" in text and "astride/rules/caffe.py:" in text


COMPARISONS = [
    compare("max_pool", 224, kernel=3, stride=2),
    compare("avg_pool", (7, 9), kernel=(3, 2), stride=2, padding=1),
    compare("conv", (5, 6, 7), kernel=3, padding=1, dtype="float64"),
    compare("conv_transpose", 5, kernel=4, stride=2),
    compare("max_unpool", 4, kernel=2),
    compare("lp_pool", 100_000, kernel=11, stride=7, rank=1),
    compare("conv", 30, ("pytorch",), kernel=7, padding=3, padding_mode="reflect"),
    compare("max_pool", 300, ("caffe",), kernel=120, stride=60, rank=1),
    compare("max_pool", 8, tuple(RULES), kernel=-3),
]


@pytest.mark.parametrize("comparison", COMPARISONS, ids=lambda c: f"{c.op} {c.sizes}")
def test_everything_fits_in_80_columns(comparison: Comparison) -> None:
    lines = printed(comparison).splitlines()
    assert len(lines) > 5
    assert [line for line in lines if len(line) > 80] == []


def test_many_answers_are_grouped_by_what_they_agree_in() -> None:
    """Of more than four, those with the same windows are drawn once, under all their names, and explained in one column."""
    found = compare("max_pool", 8, ("caffe", "caffe", "pytorch", "caffe", "pytorch", "mps"), kernel=3, stride=2)
    text = printed(found)
    assert "  caffe, caffe, caffe\n" in text and "≠ pytorch, pytorch\n" in text and "  mps         8 -> 4" in text
    assert text.count("window 0") == 3
    assert [len(group) for group in found.groups(0)] == [3, 2, 1]
    assert [len(group) for group in found.fact_groups()] == [3, 2, 1]


def test_refusals_for_one_reason_stand_together() -> None:
    assert "≠ caffe, mps refuse: has no max_unpool" in printed(compare("max_unpool", 4, ("caffe", "pytorch", "mps"), kernel=2))


def test_every_choice_has_words() -> None:
    for kind, words in (
        (Tie, facts.TIES), (Nan, facts.NANS), (Unpicked, facts.UNPICKED), (Empty, facts.EMPTIES), (LpForm, facts.LP_FORMS),
        (LpScale, facts.LP_SCALES), (ZeroWindow, facts.ZERO_WINDOWS), (IndexBase, facts.BASES),
    ):  # fmt: skip
        assert set(words) == set(kind), kind
    assert set(facts.DIVISORS) == set(Divisor) - {Divisor.OVERRIDE}
    assert set(facts.EDGES) == set(Edge) - {Edge.CONSTANT}


def test_a_refusal_says_why_and_what_to_try() -> None:
    text = printed(compare("max_pool", 8, ("caffe", "numpy_loops"), kernel=3, stride=2))
    assert "≠ numpy_loops refuses: the windows do not fill the input exactly" in text
    assert "required  (size + padding - kernel) % stride == 0" in text


def test_pixels_read_from_elsewhere_are_in_brackets() -> None:
    text = printed(compare("conv", 5, ("explicit",), kernel=3, padding=1, edge="wrap", rank=1))
    assert "window 0     (4)   0   1" in text
    assert "(n)  outside the input: reads pixel n" in text


def test_the_middle_of_a_long_axis_is_left_out() -> None:
    text = printed(compare("max_pool", 224, ("caffe",), kernel=2, stride=2))
    assert "window 0" in text and "window 111" in text and "more" in text
