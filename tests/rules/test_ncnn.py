"""ncnn's rules: its pad modes, a padding of -FLT_MAX that takes part, and where it crops. All values were run in ncnn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.compare import assert_near
from tests.rules.geometry import size, size_or_none, windows

import astride
from astride.plan.kinds import Divisor, Edge, Empty
from astride.rules import ncnn

RULES: dict[str, Any] = {"rules": "ncnn"}
LOWEST = -float(np.finfo(np.float32).max)
SIX = np.arange(1, 7, dtype=np.float32).reshape(1, 1, 6)


def test_full_keeps_windows_of_padding_alone() -> None:
    assert astride.max_pool(SIX, kernel=1, stride=2, **RULES).tolist() == [[[1, 3, 5, LOWEST]]]
    y = astride.avg_pool(SIX, kernel=1, stride=2, **RULES)
    assert y[0, 0, :3].tolist() == [1, 3, 5] and np.isnan(y[0, 0, 3])
    assert astride.avg_pool(SIX, kernel=1, stride=2, avgpool_count_include_pad=1, **RULES).tolist() == [[[1, 3, 5, 0]]]


def test_sizes_by_mode() -> None:
    for mode, outs in enumerate((4, 3, 3, 3)):
        assert size("max_pool", 6, rules="ncnn", kernel=3, stride=2, padding=1, pad_mode=mode) == outs
    assert windows("max_pool", 6, rules="ncnn", kernel=3, stride=2, pad_mode=2)[0] == [0, 1, 2]
    assert windows("max_pool", 6, rules="ncnn", kernel=3, stride=2, pad_mode=3)[0] == [-1, 0, 1]
    assert size_or_none("max_pool", 6, rules="ncnn", kernel=8, stride=4) is None


def test_t5_the_overhang_is_counted() -> None:
    assert astride.avg_pool(SIX, kernel=3, stride=2, padding=1, avgpool_count_include_pad=1, **RULES).tolist() == [[[1, 3, 5, 2]]]
    assert astride.avg_pool(SIX, kernel=3, stride=2, padding=1, **RULES).tolist() == [[[1.5, 3, 5, 6]]]


def test_caf_12_padding_counts_only_if_asked() -> None:
    """A report of 2019: Caffe's third column divides by what is inside the padding; ncnn by all or by the real taps."""
    x = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
    arguments: dict[str, Any] = dict(kernel=3, stride=2, padding=1)
    want = [[1.55556, 3.33333, 2], [6.33333, 11, 6], [4.5, 7.5, 4]]
    assert_near(astride.avg_pool(x, rules="caffe", **arguments)[0, 0], want, 1e-5)
    counted = astride.avg_pool(x, avgpool_count_include_pad=1, **arguments, **RULES)[0, 0]
    assert_near(counted[:, 2], np.array([12, 36, 16]) / 9, 1e-6)
    assert_near(astride.avg_pool(x, **arguments, **RULES)[0, 0], [[3.5, 5, 6], [9.5, 11, 12], [13.5, 15, 16]], 1e-6)


def test_padding_takes_part_and_beats_negative_infinity() -> None:
    plan = ncnn.max_pool((1, 1, 4), kernel=2)
    assert (plan.edge, plan.edge_value) == (Edge.CONSTANT, LOWEST)
    x = np.full((1, 1, 2, 2), -np.inf, np.float32)
    assert astride.max_pool(x, kernel=2, **RULES).item() == -np.inf
    assert (astride.max_pool(x, kernel=2, stride=2, padding=1, **RULES) == LOWEST).all()
    assert astride.max_pool(SIX, kernel=2, stride=1, padding=2, pad_mode=1, **RULES)[0, 0, [0, 8]].tolist() == [LOWEST] * 2


def test_what_averages_say() -> None:
    plan = ncnn.avg_pool((1, 1, 4), kernel=2)
    assert (plan.divisor, plan.empty) == (Divisor.VALID, Empty.QUOTIENT)


def test_same_counts_its_padding_either_way() -> None:
    for mode, want in ((2, [2, 4, 11 / 3]), (3, [1, 3, 5])):
        for counted in (0, 1):
            y = astride.avg_pool(SIX, kernel=3, stride=2, pad_mode=mode, avgpool_count_include_pad=counted, **RULES)
            assert_near(y[0, 0], want, 1e-6)
    with pytest.raises(astride.ArgumentError, match="would leave real pixels out"):
        ncnn.avg_pool((1, 1, 6), kernel=3, stride=2, padding=1, pad_mode=2)


def test_same_crops_beside_an_axis_that_it_pads() -> None:
    alone = ncnn.max_pool((1, 1, 4), kernel=1, stride=2, pad_mode=3).axes[0]
    assert (alone.pad_lo, alone.pad_hi) == (0, 0)
    beside = ncnn.max_pool((1, 1, 7, 4), kernel=(2, 1), stride=2, pad_mode=3).axes
    assert [(axis.pad_lo, axis.pad_hi, axis.out) for axis in beside] == [(1, 0, 4), (-1, 0, 2)]
    turned = ncnn.max_pool((1, 1, 4, 7), kernel=(1, 2), stride=2, pad_mode=3).axes
    assert [(axis.pad_lo, axis.pad_hi, axis.out) for axis in turned] == [(0, -1, 2), (1, 0, 4)]


W, X = np.float32([[[1, 10, 100]]]), np.float32([[[1, 2]]])


@pytest.mark.parametrize(
    ("arguments", "y"),
    [
        (dict(stride=2, padding=1), [210, 432, 654]),
        (dict(stride=2, padding="SAME_UPPER"), [321, 543, 65]),
        (dict(stride=2, padding="SAME_LOWER"), [210, 432, 654]),
        (dict(dilation=2), [531, 642]),
        (dict(dilation=2, padding="SAME_UPPER"), [310, 420, 531, 642, 53, 64]),
    ],
)
def test_convolution(arguments: dict[str, Any], y: list[float]) -> None:
    assert astride.conv(SIX, W, **arguments, **RULES).tolist() == [[y]]


@pytest.mark.parametrize(
    ("arguments", "y"),
    [
        ({}, [1, 10, 102, 20, 200]),
        (dict(padding=1), [10, 102, 20]),
        (dict(output_padding=1), [1, 10, 102, 20, 200, 0]),
        (dict(padding=1, output_padding=1), [10, 102, 20, 200]),
        (dict(dilation=2), [1, 0, 12, 0, 120, 0, 200]),
        (dict(padding="SAME_UPPER", output_shape=4), [1, 10, 102, 20]),
        (dict(padding="SAME_LOWER", output_shape=4), [10, 102, 20, 200]),
        (dict(padding="SAME_LOWER", output_shape=3), [10, 102, 20]),
    ],
)
def test_transposed_convolution(arguments: dict[str, Any], y: list[float]) -> None:
    assert astride.conv_transpose(X, W, stride=2, **arguments, **RULES).tolist() == [[y]]


@pytest.mark.parametrize(
    ("op", "arguments", "says"),
    [
        ("max_pool", dict(pad_mode=4), "pad_mode is 0, 1, 2 or 3"),
        ("max_pool", dict(dilation=2), "no dilation"),
        ("avg_pool", dict(dtype="float64"), "there is no rule for float64"),
    ],
)
def test_what_pooling_refuses(op: str, arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(astride.ArgumentError, match=says):
        astride.plan(op, (1, 1, 8), kernel=2, rules="ncnn", **arguments)


def test_an_output_size_needs_same_and_stays_within_the_scatter() -> None:
    with pytest.raises(astride.ArgumentError, match="go together"):
        ncnn.conv_transpose((1, 1, 2), (1, 1, 3), stride=2, output_shape=4)
    with pytest.raises(astride.ArgumentError, match="larger than the scatter"):
        ncnn.conv_transpose((1, 1, 2), (1, 1, 3), stride=2, padding="SAME_UPPER", output_shape=6)
