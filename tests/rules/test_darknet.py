"""DarkNet's rules as sizes, windows and plans; no arrays but in the trap of its index -1."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.rules.geometry import size_or_none, windows

import astride
from astride.plan.kinds import IndexBase, Start, Tie, Unpicked
from astride.rules import darknet


def test_sizes_follow_the_formula() -> None:
    tried = 0
    for n, k, s, total in itertools.product(range(1, 10), range(1, 5), range(1, 4), (None, 0, 1, 2, 3)):
        expected = int((n + (k - 1 if total is None else total) - k) / s) + 1
        got = size_or_none("max_pool", n, rules="darknet", kernel=k, stride=s, **({} if total is None else {"padding": total}))
        assert got == (expected if expected >= 1 else None), (n, k, s, total)
        tried += 1
    assert tried > 500


def test_t32_padding_is_the_total_and_leans_to_the_end() -> None:
    assert windows("max_pool", 4, rules="darknet", kernel=2, stride=1) == [[0, 1], [1, 2], [2, 3], [3, 4]]
    assert windows("max_pool", 4, rules="darknet", kernel=2, stride=2) == [[0, 1], [2, 3]]
    assert windows("max_pool", 4, rules="darknet", kernel=3, stride=2, padding=3) == [[-1, 0, 1], [1, 2, 3], [3, 4, 5]]


def test_on_the_way_to_a_layer_of_one_pixel() -> None:
    """yolov3-tiny's last pool: kernel 2, stride 1 keeps 13 pixels."""
    assert size_or_none("max_pool", 13, rules="darknet", kernel=2, stride=1) == 13


def test_what_plans_say() -> None:
    most = darknet.max_pool((1, 1, 8), kernel=2)
    assert (most.start, most.tie, most.unpicked, most.index_base) == (
        Start.FINITE,
        Tie.FIRST,
        Unpicked.NOWHERE,
        IndexBase.TENSOR,
    )


def test_where_darknet_writes_before_its_buffer_nothing_is_written() -> None:
    x = np.full((1, 2, 2, 2), np.nan, np.float32)
    x[0, 0] = 1
    (y, places), pull = astride.vjp(astride.max_pool, x, kernel=2, padding=0, rules="darknet", return_indices=True)
    assert y.ravel().tolist() == [1, -np.finfo(np.float32).max] and places.ravel().tolist() == [0, -1]
    assert pull(np.ones_like(y))[0].ravel().tolist() == [1, 0, 0, 0, 0, 0, 0, 0]


def test_averages_are_global() -> None:
    x = np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2)
    assert astride.global_pool(x, rules="darknet").ravel().tolist() == [1.5, 5.5]
    for arguments in (dict(kernel=2), dict(kernel=(3, 4), padding=1)):
        with pytest.raises(astride.ArgumentError, match="DarkNet averages whole planes only"):
            astride.plan("avg_pool", (1, 1, 3, 4), rules="darknet", **arguments)


def test_convolution_pads() -> None:
    """`pad=1` means half the kernel, `padding=N` N pixels on each side."""
    assert [a.pad_lo for a in darknet.conv((1, 1, 9, 9), (1, 1, 5, 2), pad=True).axes] == [2, 1]
    assert darknet.conv((1, 1, 9), (1, 1, 3), padding=2).axes[0].out == 11
    with pytest.raises(astride.ArgumentError, match="these rules have no dilation"):
        darknet.conv((1, 1, 9), (1, 1, 3), dilation=2)
