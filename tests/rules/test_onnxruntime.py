"""ONNX Runtime's rules by release: each line of the table on both sides of its change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.rules.geometry import size, size_or_none

import astride
from astride.plan.kinds import Divisor, Empty, IndexBase, Start, Unpicked
from astride.rules import onnxruntime

RULES: dict[str, Any] = {"rules": "onnxruntime"}
LOWEST = -float(np.finfo(np.float32).max)


def line(*values: float) -> Any:
    return np.array([[values]], np.float32)


@pytest.mark.parametrize(("version", "outs"), [("1.16.3", 4), ("1.20", 4), ("1.21", 3), ("1.32", 3)])
def test_1_21_drops_windows_that_start_in_the_end_padding(version: str, outs: int) -> None:
    assert size("max_pool", 6, rules="onnxruntime", kernel=1, stride=2, ceil_mode=1, version=version) == outs
    assert size("max_pool", 5, rules="onnxruntime", kernel=2, stride=2, padding=1, ceil_mode=1, version=version) == outs


@pytest.mark.parametrize(("opset", "empty"), [(18, Empty.QUOTIENT), (19, Empty.ZERO)])
def test_t2_a_window_of_padding_alone(opset: int, empty: Empty) -> None:
    assert onnxruntime.avg_pool((1, 1, 6), kernel=1, stride=2, ceil_mode=1, opset=opset, version="1.20").empty is empty


@pytest.mark.parametrize(
    ("version", "opset", "divisor"),
    [
        ("1.20", 18, Divisor.KERNEL),
        ("1.20", 19, Divisor.KERNEL),
        ("1.21", 18, Divisor.KERNEL),
        ("1.21", 19, Divisor.PADDED),
        ("1.28", 18, Divisor.KERNEL),
        ("1.29", 18, Divisor.PADDED),
        ("1.29", 19, Divisor.PADDED),
    ],
)
def test_t5_whether_the_overhang_is_counted(version: str, opset: int, divisor: Divisor) -> None:
    arguments: dict[str, Any] = dict(kernel=3, stride=2, padding=1, ceil_mode=1, count_include_pad=1)
    assert onnxruntime.avg_pool((1, 1, 6), opset=opset, version=version, **arguments).divisor is divisor
    last = 1 / 3 if divisor is Divisor.KERNEL else 1 / 2
    y = astride.avg_pool(np.ones((1, 1, 6), np.float32), opset=opset, version=version, **arguments, **RULES)
    assert y[0, 0].tolist() == pytest.approx([2 / 3, 1, 1, last])


@pytest.mark.parametrize(("version", "wrong"), [("1.20", False), ("1.21", True), ("1.24", True), ("1.25", False)])
def test_t7_end_pads_taken_for_others(version: str, wrong: bool) -> None:
    arguments: dict[str, Any] = dict(kernel=2, stride=1, padding=((0, 1), (0, 1)), count_include_pad=1, version=version)
    y = astride.avg_pool(np.ones((1, 1, 2, 2), np.float32), **arguments, **RULES)
    assert y[0, 0].tolist() == ([[1, 0.5], [1, 0.5]] if wrong else [[1, 0.5], [0.5, 0.25]])
    assert astride.avg_pool(np.ones((1, 1, 2, 2), np.float32), opset=18, **arguments, **RULES)[0, 0, 1, 1] == 0.25


def test_three_axes_take_three_wrong_end_pads() -> None:
    """Seen in 1.24.4: of [d0, h0, w0, d1, h1, w1] the ends of d and h are read from h0 and d1."""
    plan = onnxruntime.avg_pool(
        (1, 1, 4, 4, 4), kernel=3, stride=1, padding=((0, 2), (1, 0), (0, 1)), count_include_pad=1, version="1.24.4"
    )
    assert plan.divisor_pad == ((0, 1), (1, 2), (0, 1))


@pytest.mark.parametrize(
    ("version", "outputs", "start"),
    [("1.28", 1, Start.FINITE), ("1.28", 2, Start.FINITE), ("1.29", 1, Start.FINITE), ("1.29", 2, Start.FIRST_TAP)],
)
def test_where_a_maximum_starts(version: str, outputs: int, start: Start) -> None:
    plan = onnxruntime.max_pool((1, 1, 4), kernel=2, version=version, outputs=outputs)
    assert (plan.start, plan.unpicked, plan.index_base) == (start, Unpicked.NOWHERE, IndexBase.TENSOR)


def test_only_float32_undilated_has_a_kernel_of_its_own() -> None:
    for dtype, dilation in (("float64", 1), ("float32", 2), ("int8", 1)):
        assert onnxruntime.max_pool((1, 1, 8), dtype, kernel=2, dilation=dilation).start is Start.FIRST_TAP
    assert onnxruntime.max_pool((1, 1, 8), "float16", kernel=2, version="1.28").start is Start.INFINITY


def test_t10_t11_a_nan_with_indices() -> None:
    for values, version, want in (
        ((np.nan, 1, 2, 3), "1.32", (np.nan, 0)),
        ((np.nan, 1, 2, 3), "1.28", (3, 3)),
        ((1, 2, 3, np.nan), "1.32", (3, 2)),
        ((-np.inf,) * 4, "1.32", (-np.inf, 0)),
        ((-np.inf,) * 4, "1.28", (LOWEST, -1)),
    ):
        y, place = astride.max_pool(line(*values), kernel=4, return_indices=True, outputs=2, version=version, **RULES)
        assert np.array_equal([y.item(), place.item()], want, equal_nan=True), (values, version)


@pytest.mark.parametrize(("version", "accepted"), [("1.26", True), ("1.27", False)])
def test_t31_1_27_refuses_zeros_beyond_the_scatter(version: str, accepted: bool) -> None:
    for arguments in (dict(output_padding=2), dict(output_shape=7)):
        plan: dict[str, Any] = dict(stride=2, version=version, **arguments)
        if accepted:
            assert onnxruntime.conv_transpose((1, 1, 2), (1, 1, 3), **plan).output_sizes == (7,)
        else:
            with pytest.raises(astride.ArgumentError, match="output_padding < stride, on axis W: 2 < 2"):
                onnxruntime.conv_transpose((1, 1, 2), (1, 1, 3), **plan)
    assert onnxruntime.conv_transpose((1, 1, 2), (1, 1, 3), stride=2, output_shape=6, version=version).output_sizes == (6,)


@pytest.mark.parametrize(("version", "accepted"), [("1.27", True), ("1.28", False)])
def test_1_28_refuses_negative_pads(version: str, accepted: bool) -> None:
    pads = ((-1, 0),)
    calls = [
        lambda: onnxruntime.conv((1, 1, 6), (1, 1, 3), padding=pads, version=version).output_sizes,
        lambda: onnxruntime.max_pool((1, 1, 6), kernel=3, stride=1, padding=pads, version=version).axes[0].out,
        lambda: onnxruntime.conv_transpose((1, 1, 2), (1, 1, 3), padding=pads, version=version).output_sizes,
    ]
    for call in calls:
        if accepted:
            assert call()
        else:
            with pytest.raises(astride.ArgumentError, match="a pad is negative"):
                call()


def test_t36_a_pad_is_below_the_kernel() -> None:
    assert size_or_none("max_pool", 5, rules="onnxruntime", kernel=3, stride=1, padding=2) == 7
    assert size_or_none("max_pool", 5, rules="onnxruntime", kernel=2, stride=1, padding=2) is None
    assert size_or_none("max_pool", 5, rules="onnxruntime", kernel=2, stride=1, dilation=2, padding=2) is None


def test_a_kernel_larger_than_the_input_by_less_than_a_stride_has_a_window() -> None:
    """C's division takes -1/2 to 0."""
    assert size_or_none("avg_pool", 2, rules="onnxruntime", kernel=3, stride=2) == 1
    assert size_or_none("avg_pool", 2, rules="onnx", kernel=3, stride=2) is None
    assert size_or_none("avg_pool", 2, rules="onnxruntime", kernel=4, stride=2) is None


def test_same_is_solved_without_dilation_and_may_crop() -> None:
    axis = onnxruntime.lp_pool((1, 1, 4), kernel=2, stride=1, dilation=2, padding="SAME_UPPER").axes[0]
    assert (axis.pad_lo, axis.pad_hi, axis.out) == (0, 1, 3)
    axis = onnxruntime.lp_pool((1, 1, 6), kernel=1, stride=3, padding="SAME_UPPER").axes[0]
    assert (axis.pad_lo, axis.pad_hi, axis.out) == (-1, -1, 2)
    with pytest.raises(astride.ArgumentError, match="a pad is negative"):
        onnxruntime.max_pool((1, 1, 6), kernel=1, stride=3, padding="SAME_UPPER")
    assert onnxruntime.max_pool((1, 1, 6), kernel=1, stride=3, padding="SAME_UPPER", outputs=2).axes[0].pad_lo == -1


def test_same_of_a_transposed_convolution_adds_no_zeros() -> None:
    assert onnxruntime.conv_transpose((1, 1, 2), (1, 1, 3), stride=5, padding="SAME_UPPER").output_sizes == (8,)


@pytest.mark.parametrize(
    ("op", "arguments", "says"),
    [
        ("max_pool", dict(version="1.15"), "releases before 1.16 and after 1.32 were not run"),
        ("max_pool", dict(version="latest"), "this is not a release"),
        ("max_pool", dict(dtype="int32"), "there is no rule for int32"),
        ("avg_pool", dict(dtype="float64"), "there is no rule for float64"),
        ("lp_pool", dict(opset=1), "no LpPool of opset 1"),
        ("max_unpool", dict(output_size=15), "fewer places than the default"),
    ],
)
def test_what_it_refuses(op: str, arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(astride.ArgumentError, match=says):
        astride.plan(op, (1, 1, 8), kernel=2, rules="onnxruntime", **arguments)


def test_dilated_same_convolution_is_refused() -> None:
    with pytest.raises(astride.ArgumentError, match="no dilation with SAME"):
        onnxruntime.conv((1, 1, 8), (1, 1, 3), padding="SAME_UPPER", dilation=2)
    assert onnxruntime.conv((1, 1, 8), (1, 1, 3), padding="SAME_UPPER", stride=3).output_sizes == (3,)


@pytest.mark.parametrize(
    ("kinds", "since"),
    [
        (("uint8", "uint8", "int32"), "1.16"),
        (("uint8", "int8", "int32"), "1.24"),
        (("int8", "uint8", "int32"), "1.24"),
        (("uint8", "int8", "uint8"), "1.16"),
        (("int8", "int8", "int8"), "1.16"),
        (("int8", "uint8", "int8"), None),
        (("uint8", "uint8", "int8"), None),
    ],
)
def test_which_whole_numbers_are_convolved(kinds: tuple[str, str, str], since: str | None) -> None:
    for version in ("1.16", "1.23", "1.24", "1.32"):
        dtype, w_dtype, y_dtype = kinds
        arguments: dict[str, Any] = dict(w_dtype=w_dtype, y_dtype=y_dtype, version=version)
        if since is not None and version >= since:
            assert onnxruntime.conv_integer((1, 1, 6), (1, 1, 2), dtype, **arguments).y_dtype == y_dtype
        else:
            with pytest.raises(astride.ArgumentError, match="no kernel for these types"):
                onnxruntime.conv_integer((1, 1, 6), (1, 1, 2), dtype, **arguments)


def test_powers_are_formed_as_written() -> None:
    with np.errstate(over="ignore"):
        assert astride.lp_pool(line(1e30, 1), kernel=2, **RULES).item() == np.inf
    assert astride.lp_pool(line(1e30, 1), kernel=2, rules="onnx").item() == np.float32(1e30)
