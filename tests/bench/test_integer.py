"""The benchmark of integer convolution: rows of a tiny case, and answers that are told apart."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from astride import dispatch
from astride.bench import convolution_cases, field, integer, race

TINY = convolution_cases.conv("tiny", 1, 3, 6, 4, 3, 2, (0, 1))


def test_a_row() -> None:
    alone = dataclasses.replace(integer.BENCHMARK, libraries=("astride",))
    with field.field(alone, apart=False) as entered:
        found = integer.timed(TINY, ["nchw", "nhwc"], "forward", entered, 0.01)
    for one in found.values():
        assert one["ms"] > 0 and one["ratio"] is None and one["differing"] == [] and one["GOP_per_s"] > 0
    assert race.named("integer") is integer.BENCHMARK


@pytest.mark.parametrize("layout", race.LAYOUTS.values())
def test_astride_computes_what_the_reference_does(layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given, forward = integer.filled(TINY), dispatch.forward
    entrant = integer.astride(TINY, layout, given)
    assert entrant.answer is not None
    found = entrant.answer(entrant.call())
    monkeypatch.setattr(dispatch, "forward", lambda *a, **k: forward(*a, **{**k, "backend": "reference"}))
    expected = entrant.answer(entrant.call())
    assert np.array_equal(found, expected) and 0 < found.mean() < 255


def test_answers_may_differ_by_one() -> None:
    a = np.array([0, 254, 7], np.uint8)
    assert integer.same(a + np.uint8(1), a) and not integer.same(a + np.uint8(2), a)
    assert not integer.same(np.array([255], np.uint8), np.array([0], np.uint8))


def test_names_are_their_own() -> None:
    names = [case.name for case in integer.CASES]
    assert len(names) == len(set(names)) == 21
