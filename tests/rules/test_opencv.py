"""OpenCV 4's reading of Caffe files as sizes and plans, and where it parts from Caffe."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.rules.geometry import ceiling, size_or_none

import astride
from astride.plan.kinds import Divisor, Empty, Start, Tie, Unpicked
from astride.rules import opencv


@pytest.mark.parametrize("op", ["max_pool", "avg_pool"])
def test_sizes_follow_the_formula(op: str) -> None:
    tried = 0
    for n, k, s, p, ceil in itertools.product(range(1, 10), range(1, 5), range(1, 4), range(5), (False, True)):
        free = n + 2 * p - k
        expected: int | None = (ceiling(free, s) if ceil else free // s) + 1
        if p and (expected - 1) * s >= n + p:
            expected -= 1
        if free < 0 or (p and (expected - 1) * s >= n + p):
            expected = None
        got = size_or_none(op, n, rules="opencv", kernel=k, stride=s, padding=p, ceil_mode=ceil)
        assert got == expected, (n, k, s, p, ceil)
        tried += 1
    assert tried > 1000


def test_padding_on_one_axis_clips_that_axis_only() -> None:
    """Caffe clips both."""
    window = dict(kernel=(1, 3), stride=2, padding=(0, 1))
    assert [a.out for a in astride.plan("avg_pool", (1, 1, 6, 6), rules="opencv", **window).axes] == [4, 4]
    assert [a.out for a in astride.plan("avg_pool", (1, 1, 6, 6), rules="caffe", **window).axes] == [3, 4]


def test_what_plans_say() -> None:
    most = opencv.max_pool((1, 1, 8), kernel=2)
    assert (most.start, most.tie, most.unpicked, most.empty) == (Start.FINITE, Tie.FIRST, Unpicked.NOWHERE, Empty.ZERO)
    mean = opencv.avg_pool((1, 1, 8), kernel=2)
    assert (mean.divisor, mean.empty) == (Divisor.CAFFE, Empty.QUOTIENT)


def test_t1_and_t2_a_window_behind_the_input() -> None:
    six = np.arange(1, 7, dtype=np.float32).reshape(1, 1, 6)
    assert astride.max_pool(six, kernel=1, stride=2, rules="opencv").tolist() == [[[1, 3, 5, 0]]]
    assert np.isnan(astride.avg_pool(six, kernel=1, stride=2, rules="opencv")[0, 0, 3])


def test_t33_padding_of_the_kernels_size_is_accepted() -> None:
    x = np.full((1, 1, 2), -1, np.float32)
    assert astride.max_pool(x, kernel=1, stride=1, padding=1, rules="opencv").tolist() == [[[0, -1, -1]]]
    assert size_or_none("max_pool", 2, rules="caffe", kernel=1, stride=1, padding=1) is None


def test_t33_caffes_round_mode_is_unknown() -> None:
    with pytest.raises(astride.ArgumentError, match="there is no argument 'round_mode'"):
        astride.plan("max_pool", (1, 1, 8), kernel=2, rules="opencv", round_mode="FLOOR")


def test_refusals() -> None:
    with pytest.raises(astride.UnsupportedError, match="opencv has no stochastic_pool"):
        astride.plan("stochastic_pool", (1, 1, 8), kernel=2, rules="opencv")
    with pytest.raises(astride.ArgumentError, match="kernel <= size \\+ 2 \\* padding, on axis W: 9 <= 8"):
        astride.plan("max_pool", (1, 1, 8), kernel=9, rules="opencv")
    with pytest.raises(astride.ArgumentError, match="even with one window less"):
        astride.plan("max_pool", (1, 1, 8), kernel=1, stride=1, padding=3, rules="opencv")
    with pytest.raises(astride.ArgumentError, match="pads both sides of an axis alike"):
        astride.plan("conv", (1, 1, 8), w_shape=(1, 1, 3), padding=((0, 1),), rules="opencv")


def test_convolution_sizes_are_caffes_where_both_have_one() -> None:
    for n, k, s, p, d in itertools.product(range(1, 8), range(1, 4), range(1, 4), range(3), range(1, 3)):
        if n + 2 * p < (k - 1) * d + 1:
            continue
        for op in ("conv", "conv_transpose"):
            arguments = dict(w_shape=(1, 1, k), stride=s, padding=p, dilation=d)
            try:
                caffe = astride.plan(op, (1, 1, n), rules="caffe", **arguments)
            except astride.ArgumentError:
                with pytest.raises(astride.ArgumentError):
                    astride.plan(op, (1, 1, n), rules="opencv", **arguments)
            else:
                assert astride.plan(op, (1, 1, n), rules="opencv", **arguments) == caffe


def test_a_row_outside_the_image() -> None:
    """pytorch #45357: 6 x 7, kernel 1, stride 2, rounded up. Zeros here, the lowest value in Caffe, no such row in PyTorch."""
    x = np.arange(42, dtype=np.float32).reshape(1, 1, 6, 7)
    least = float(np.finfo(np.float32).min)
    assert astride.max_pool(x, kernel=1, stride=2, rules="opencv")[0, 0, 3].tolist() == [0] * 4
    assert astride.max_pool(x, kernel=1, stride=2, rules="caffe")[0, 0, 3].tolist() == [least] * 4
    assert astride.max_pool(x, kernel=1, stride=2, rules="pytorch", ceil_mode=True).shape == (1, 1, 3, 4)
