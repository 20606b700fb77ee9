"""Chainer's rules as sizes, windows and plans, and its two ways back from pooling on small grids."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tests.rules.geometry import ceiling, size, size_or_none, windows

import astride
from astride.like import chainer as like
from astride.plan.kinds import Divisor, Edge, IndexBase, Tie
from astride.rules import chainer


def test_sizes_follow_the_formula() -> None:
    tried = 0
    for n, k, s, p, cover in itertools.product(range(1, 10), range(1, 5), range(1, 4), range(3), (False, True)):
        free = n + 2 * p - k
        out = (ceiling(free, s) if cover else free // s) + 1
        got = size_or_none("max_pool", n, rules="chainer", kernel=k, stride=s, padding=p, cover_all=cover)
        assert got == (out if out >= 1 else None), (n, k, s, p, cover)
        if not cover:
            assert size_or_none("avg_pool", n, rules="chainer", kernel=k, stride=s, padding=p) == got
        tried += 1
    assert tried > 600


def test_maxima_cover_all_and_convolutions_do_not() -> None:
    """T1 and T29: a ceiling that clips nothing."""
    assert windows("max_pool", 6, rules="chainer", kernel=1, stride=2) == [[0], [2], [4], [6]]
    assert size("max_pool", 5, rules="chainer", kernel=2, stride=2, padding=1) == 4
    for cover, out in ((False, 1), (True, 2)):
        assert chainer.conv((1, 1, 4), (1, 1, 3), stride=2, cover_all=cover).axes[0].out == out


def test_what_plans_say() -> None:
    most = chainer.max_pool((1, 1, 8), kernel=2)
    assert (most.tie, most.index_base, most.edge, most.edge_value) == (
        Tie.FIRST_NAN,
        IndexBase.WINDOW,
        Edge.CONSTANT,
        -np.inf,
    )
    assert chainer.avg_pool((1, 1, 8), kernel=2).divisor is Divisor.KERNEL
    assert chainer.avg_pool((1, 1, 8), kernel=2, pad_value=None).divisor is Divisor.VALID


def test_none_reaches_the_rule() -> None:
    """A None that is a value of its own is not taken for the default."""
    x = np.ones((1, 1, 3), np.float32)
    for pad_value, ends in ((0, 2 / 3), (None, 1)):
        y = astride.avg_pool(x, kernel=3, stride=1, padding=1, rules="chainer", pad_value=pad_value)
        assert y[0, 0, 0] == pytest.approx(ends)


def test_t27_of_two_nans_the_first_is_the_winner() -> None:
    x = np.array([[[1, np.nan, np.nan, 3]]], np.float32)
    assert like.max_pooling_1d(x, 4, return_indices=True)[1].tolist() == [[[1]]]


def test_padding_takes_part_as_minus_infinity() -> None:
    x = np.full((1, 1, 3), -np.inf, np.float32)
    (y, places), pull = astride.vjp(like.max_pooling_nd, x, 3, 1, 1, return_indices=True)
    assert y.tolist() == [[[-np.inf] * 3]] and places.tolist() == [[[0, 0, 0]]]
    assert pull(np.array([[[1, 2, 4]]], np.float32))[0].tolist() == [[[2, 4, 0]]]


def test_t37_unpooling_covers_all_by_default() -> None:
    x = np.array([[[[1, 2], [3, 4]]]], np.float32)
    assert like.unpooling_2d(x, 2).tolist() == [[[[1, 1, 2], [1, 1, 2], [3, 3, 4]]]]
    assert like.unpooling_2d(x, 2, cover_all=False).shape == (1, 1, 4, 4)
    assert like.unpooling_2d(x, 2, outsize=(4, 3)).shape == (1, 1, 4, 3)


def test_unpooling_sums_where_windows_overlap() -> None:
    x = np.array([[[1, 2, 4]]], np.float64)
    y, pull = astride.vjp(like.unpooling_1d, x, 3, 2, cover_all=False)
    assert y.tolist() == [[[1, 1, 3, 2, 6, 4, 4]]]
    assert pull(np.arange(7.0).reshape(1, 1, 7))[0].tolist() == [[[0 + 1 + 2, 2 + 3 + 4, 4 + 5 + 6]]]


def test_unpooling_repeats_infinities_and_nan() -> None:
    x = np.array([[[np.inf, np.nan, 1], [2, 3, 4]]], np.float32)
    assert np.array_equal(like.unpooling_1d(x, 2, cover_all=False), np.repeat(x, 2, axis=-1), equal_nan=True)


def test_unpooling_sizes() -> None:
    for n, k, s, p, cover in itertools.product(range(1, 5), range(1, 4), range(1, 4), range(2), (False, True)):
        expected = s * (n - 1) + k - 2 * p - (s - 1 if cover else 0)
        x = np.ones((1, 1, n))
        if expected < 1:
            with pytest.raises(astride.ArgumentError, match="the output is empty"):
                like.unpooling_nd(x, k, s, p, cover_all=cover)
        else:
            assert like.unpooling_nd(x, k, s, p, cover_all=cover).shape == (1, 1, expected), (n, k, s, p, cover)


def test_unpooling_is_the_way_back_of_a_sum() -> None:
    """<unpool x, y> = <x, sum-pool y> for every geometry."""
    rng = np.random.default_rng(0)
    for k, s, p, cover in itertools.product(((2, 3), (3, 1)), ((1, 2), (3, 2)), ((0, 1), (1, 0)), (False, True)):
        x = rng.normal(size=(2, 3, 4, 5))
        up, pull = astride.vjp(like.unpooling_2d, x, k, s, p, cover_all=cover)
        y = rng.normal(size=up.shape)
        rounding = dict(rounding="ceil", clip="never") if cover else {}
        summed = astride.avg_pool(y, kernel=k, stride=s, padding=tuple((q, q) for q in p), divisor_override=1, **rounding)
        assert np.allclose(pull(y)[0], summed)


def test_upsampling_goes_where_the_maximum_was() -> None:
    rng = np.random.default_rng(1)
    for k, s, p, cover in itertools.product((2, 3), (1, 2, 3), (0, 1), (False, True)):
        x = rng.normal(size=(2, 2, 7, 6))
        pooled, places = like.max_pooling_2d(x, k, s, p, cover, return_indices=True)
        dy = rng.normal(size=pooled.shape)
        _, back = astride.vjp(like.max_pooling_2d, x, k, s, p, cover)
        y, pull = astride.vjp(like.upsampling_2d, dy, places, k, s, p, (7, 6), cover)
        assert np.allclose(y, back(dy)[0])
        if s >= k:  # without overlap every maximum comes back
            inside = np.isfinite(pooled)
            assert np.allclose(pull(x)[0][inside], pooled[inside])


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda x: like.max_pooling_2d(x, 2), "x.ndim == 4: 3"),
        (lambda x: like.average_pooling_nd(x, 2, pad_value=1), "pad_value is 0 or None"),
        (lambda x: like.max_pooling_nd(x, 9, cover_all=False), "the kernel is larger than the padded input"),
        (lambda x: like.unpooling_nd(x, 2, outsize=(3,)), "windows == size, on axis W: 2 == 4"),
        (lambda x: like.unpooling_nd(x, 1, 1, 3), "the output is empty"),
        (lambda x: like.deconvolution_nd(x, np.ones((2, 1, 2), x.dtype), outsize=(9,)), "windows == size, on axis W: 8 == 4"),
        (lambda x: astride.max_pool(x, kernel=2, dilation=2, rules="chainer"), "these rules have no dilation"),
        (lambda x: like.max_pooling_nd(x.astype("int32"), 2), "there is no rule for int32 arrays"),
    ],
)
def test_refusals(call: Any, says: str) -> None:
    with pytest.raises(astride.ArgumentError) as raised:
        call(np.ones((1, 2, 4), np.float32))
    assert says in str(raised.value)


@pytest.mark.parametrize(
    ("places", "says"),
    [
        (np.full((1, 1, 2, 2), 4), "0 <= indexes < 4: 4 to 4"),
        (np.full((1, 1, 2, 2), -1), "0 <= indexes < 4: -1 to -1"),
        (np.zeros((1, 1, 2, 3), int), "integers of shape (1, 1, 2, 2)"),
        (np.zeros((1, 1, 2, 2)), "integers of shape (1, 1, 2, 2)"),
    ],
)
def test_upsampling_refuses_indexes_that_do_not_fit(places: Any, says: str) -> None:
    with pytest.raises(astride.ArrayError) as raised:
        like.upsampling_2d(np.ones((1, 1, 2, 2), np.float32), places, 2)
    assert says in str(raised.value)


def test_deconvolution_sizes() -> None:
    for n, k, s, p, d in itertools.product(range(1, 5), range(1, 4), range(1, 4), range(2), range(1, 3)):
        whole = s * (n - 1) + (k - 1) * d + 1 - 2 * p
        if whole < 1:
            continue
        plan = chainer.conv_transpose((1, 1, n), (1, 1, k), stride=s, padding=p, dilation=d)
        assert plan.output_sizes == (whole,)
        longer = chainer.conv_transpose((1, 1, n), (1, 1, k), stride=s, padding=p, dilation=d, output_size=whole + s - 1)
        assert longer.output_sizes == (whole + s - 1,)
