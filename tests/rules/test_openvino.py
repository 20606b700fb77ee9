"""OpenVINO's rules: its three roundings, its divisor, its indices, and where it crops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.rules.geometry import size, size_or_none

import astride
from astride.plan.kinds import Divisor, IndexBase, Start, Unpicked
from astride.rules import openvino

RULES: dict[str, Any] = {"rules": "openvino"}
LOWEST = -float(np.finfo(np.float32).max)


@pytest.mark.parametrize(("rounding", "outs"), [("floor", 3), ("ceil", 4), ("ceil_torch", 3)])
def test_t1_t6_only_ceil_keeps_windows_of_padding_alone(rounding: str, outs: int) -> None:
    assert size("max_pool", 6, rules="openvino", kernel=1, stride=2, rounding_type=rounding) == outs
    assert size("max_pool", 5, rules="openvino", kernel=2, stride=2, padding=1, rounding_type=rounding) == outs


def test_ceil_holds_for_valid_and_not_for_a_kernel_that_does_not_fit() -> None:
    assert size("max_pool", 5, rules="openvino", kernel=2, stride=2, padding="valid", rounding_type="ceil") == 3
    assert size_or_none("max_pool", 6, rules="openvino", kernel=8, stride=4, rounding_type="ceil") is None


@pytest.mark.parametrize("rounding", ["ceil", "ceil_torch"])
def test_t5_the_overhang_is_counted(rounding: str) -> None:
    y = astride.avg_pool(
        np.ones((1, 1, 6), np.float32), kernel=3, stride=2, padding=1, rounding_type=rounding, exclude_pad=False, **RULES
    )
    assert y[0, 0].tolist() == pytest.approx([2 / 3, 1, 1, 1 / 3])


def test_without_padding_the_divisor_is_always_the_real_taps() -> None:
    assert openvino.avg_pool((1, 1, 5), kernel=2, exclude_pad=False).divisor is Divisor.VALID
    five = np.arange(1, 6, dtype=np.float32).reshape(1, 1, 5)
    y = astride.avg_pool(five, kernel=2, rounding_type="ceil", exclude_pad=False, **RULES)
    assert y.tolist() == [[[1.5, 3.5, 5]]]
    assert openvino.avg_pool((1, 1, 5, 5), kernel=2, padding=(1, 0), exclude_pad=False).divisor is Divisor.KERNEL


def test_windows_behind_an_unpadded_input() -> None:
    """Run: 0 over a negative count is -0, over none NaN."""
    x = np.arange(1, 13, dtype=np.float32).reshape(1, 1, 2, 6)
    y = astride.avg_pool(x, kernel=1, stride=3, rounding_type="ceil", **RULES)
    assert str(y[0, 0].tolist()) == "[[1.0, 4.0, nan], [-0.0, -0.0, nan]]"


def test_pads_may_fill_a_window_unless_they_are_excluded() -> None:
    assert size_or_none("max_pool", 6, rules="openvino", kernel=2, stride=1, padding=2) == 9
    assert size_or_none("avg_pool", 6, rules="openvino", kernel=2, stride=1, padding=2, exclude_pad=False) == 9
    assert size_or_none("avg_pool", 6, rules="openvino", kernel=2, stride=1, padding=2) is None


def test_what_plans_say() -> None:
    most = openvino.max_pool((1, 1, 8), kernel=2)
    assert (most.start, most.unpicked, most.index_base) == (Start.FINITE, Unpicked.ORIGIN, IndexBase.TENSOR)


def test_t21_indices_count_from_an_axis_on() -> None:
    x = np.arange(48, dtype=np.float32).reshape(2, 2, 3, 4)
    wanted = {0: [5, 7, 17, 19, 29, 31, 41, 43], 1: [5, 7, 17, 19] * 2, 2: [5, 7] * 4}
    for axis, want in wanted.items():
        for given in (axis, axis - 4):
            assert astride.max_pool(x, kernel=2, axis=given, return_indices=True, **RULES)[1].reshape(-1).tolist() == want
    with pytest.raises(astride.ArgumentError, match="axis is 0, 1 or 2"):
        astride.max_pool(x, kernel=2, axis=3, **RULES)


def test_where_nothing_won_the_index_is_the_planes_first() -> None:
    x = np.full((1, 2, 1, 4), np.nan, np.float32)
    y, places = astride.max_pool(x, kernel=(1, 2), return_indices=True, **RULES)
    assert (y == LOWEST).all() and places.tolist() == [[[[0, 0]], [[4, 4]]]]
    x = np.arange(10, dtype=np.float32).reshape(1, 2, 5)
    y, places = astride.max_pool(x, kernel=2, padding=1, rounding_type="ceil", return_indices=True, **RULES)
    assert places.tolist() == [[[0, 2, 4, 0], [5, 7, 9, 5]]] and (y[..., 3] == LOWEST).all()


@pytest.mark.parametrize(
    ("arguments", "y"),
    [
        ({}, [1, 10, 102, 20, 200]),
        (dict(padding="same_upper"), [1, 10, 102, 20, 200]),
        (dict(padding="same_upper", output_shape=4), [10, 102, 20, 200]),
        (dict(padding="same_lower", output_shape=4), [1, 10, 102, 20]),
        (dict(padding="valid", output_shape=4), [1, 10, 102, 20]),
        (dict(output_shape=4), [1, 10, 102, 20]),
        (dict(padding=((1, 0),), output_shape=4), [10, 102, 20, 200]),
        (dict(padding="same_upper", output_shape=6), [1, 10, 102, 20, 200, 0]),
        (dict(padding=1, output_padding=1), [10, 102, 20, 200]),
    ],
)
def test_where_a_transposed_convolution_is_cropped(arguments: dict[str, Any], y: list[float]) -> None:
    """All run in 2026.4; upper and lower are the reverse of ONNX's."""
    x, w = np.float32([[[1, 2]]]), np.float32([[[1, 10, 100]]])
    assert astride.conv_transpose(x, w, stride=2, **arguments, **RULES).tolist() == [[y]]


def test_convolution_dilates_under_same() -> None:
    x, w = np.float32([[[1, 2, 3, 4, 5, 6]]]), np.float32([[[1, 10, 100]]])
    y = astride.conv(x, w, dilation=2, padding="same_upper", **RULES)
    assert y.tolist() == [[[310, 420, 531, 642, 53, 64]]]
    assert astride.conv(x, w, stride=2, padding="same_lower", **RULES).tolist() == [[[210, 432, 654]]]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (dict(rounding_type="round"), "rounding_type has no such value"),
        (dict(padding="SAME"), "padding has no such value"),
        (dict(padding=-1), "padding is below 0"),
        (dict(dtype="bfloat16"), "there is no rule for bfloat16"),
    ],
)
def test_what_it_refuses(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(astride.ArgumentError, match=says):
        astride.plan("max_pool", (1, 1, 8), kernel=2, rules="openvino", **arguments)


def test_averages_are_not_dilated() -> None:
    with pytest.raises(astride.ArgumentError, match="no dilation"):
        openvino.avg_pool((1, 1, 8), kernel=2, dilation=2)
