"""ONNX's rules: sizes and pads by the text's formulas, what each opset has, and the traps and reports about them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tests.compare import assert_near
from tests.rules.geometry import ceiling, size, size_or_none, windows

import astride
from astride.like import onnx as like
from astride.plan.kinds import Divisor, Empty, IndexBase, LpForm, LpScale, Nan, Start, Tie
from astride.rules import onnx

X, W = np.array([[[1, 2]]], np.float32), np.array([[[1, 10, 100]]], np.float32)


def line(*values: float) -> Any:
    return np.array([[values]], np.float32)


def test_sizes_follow_the_formula() -> None:
    tried = 0
    for n, k, s, lo, hi, d, up in itertools.product(range(1, 8), (1, 2, 3), (1, 2, 3), (0, 1, 2), (0, 2), (1, 2), (0, 1)):
        reach = (k - 1) * d + 1
        expected: int | None = (ceiling(n + lo + hi - reach, s) if up else (n + lo + hi - reach) // s) + 1
        if up and expected is not None and (expected - 1) * s >= n + lo:
            expected -= 1
        if expected is not None and expected < 1:
            expected = None
        arguments: dict[str, Any] = dict(kernel=k, stride=s, padding=((lo, hi),), dilation=d, ceil_mode=up)
        assert size_or_none("max_pool", n, rules="onnx", **arguments) == expected, (n, arguments)
        tried += 1
    assert tried > 1000


@pytest.mark.parametrize("word", ["SAME_UPPER", "SAME_LOWER"])
def test_same_has_as_many_windows_as_strides(word: str) -> None:
    for n, k, s, d in itertools.product(range(1, 9), range(1, 5), range(1, 5), (1, 2)):
        found = windows("max_pool", n, rules="onnx", kernel=k, stride=s, dilation=d, padding=word)
        assert len(found) == ceiling(n, s)
        total = max((len(found) - 1) * s + (k - 1) * d + 1 - n, 0)
        assert -found[0][0] == (total // 2 if word == "SAME_UPPER" else total - total // 2)


def test_t9_ceil_does_not_hold_for_valid() -> None:
    assert size("max_pool", 5, rules="onnx", kernel=2, stride=2, padding="VALID", ceil_mode=1) == 2
    assert size("max_pool", 5, rules="onnxruntime", kernel=2, stride=2, padding="VALID", ceil_mode=1) == 3


def test_what_plans_say() -> None:
    most = onnx.max_pool((1, 1, 8), kernel=2)
    assert (most.start, most.nan, most.tie, most.index_base) == (Start.FIRST_TAP, Nan.COMPARED, Tie.FIRST, IndexBase.TENSOR)
    assert onnx.max_pool((1, 1, 8), kernel=2, storage_order=1).index_base is IndexBase.TENSOR_COLUMN
    mean = onnx.avg_pool((1, 1, 8), kernel=2)
    assert (mean.divisor, mean.empty) == (Divisor.VALID, Empty.QUOTIENT)
    assert onnx.avg_pool((1, 1, 8), kernel=2, count_include_pad=1).divisor is Divisor.PADDED
    norm = onnx.lp_pool((1, 1, 8), kernel=2, p=3)
    assert (norm.lp_form, norm.lp_scale, norm.p) == (LpForm.ABSOLUTE, LpScale.SUM, 3.0)


ADDED = [
    ("max_pool", dict(storage_order=1), 8),
    ("max_pool", dict(ceil_mode=1), 10),
    ("max_pool", dict(dilation=2), 10),
    ("max_pool", dict(dtype="int8"), 12),
    ("max_pool", dict(dtype="uint8"), 12),
    ("max_pool", dict(dtype="bfloat16"), 22),
    ("avg_pool", dict(count_include_pad=1), 7),
    ("avg_pool", dict(ceil_mode=1), 10),
    ("avg_pool", dict(dilation=2), 19),
    ("avg_pool", dict(dtype="bfloat16"), 22),
    ("lp_pool", dict(ceil_mode=1), 18),
    ("lp_pool", dict(dilation=2), 18),
    ("lp_pool", dict(dtype="bfloat16"), 22),
    ("max_unpool", {}, 9),
    ("max_unpool", dict(dtype="bfloat16"), 22),
]


@pytest.mark.parametrize(("op", "arguments", "since"), ADDED)
def test_what_an_opset_lacks_is_refused(op: str, arguments: dict[str, Any], since: int) -> None:
    assert astride.plan(op, (1, 1, 8), rules="onnx", kernel=2, opset=since, **arguments)
    with pytest.raises(astride.ArgumentError, match=f"opset >= {since}: {since - 1}"):
        astride.plan(op, (1, 1, 8), rules="onnx", kernel=2, opset=since - 1, **arguments)


def test_p_is_whole_from_opset_2_on() -> None:
    assert onnx.lp_pool((1, 1, 8), kernel=2, p=2.5, opset=1).p == 2.5
    for p in (2.5, 0, -1):
        with pytest.raises(astride.ArgumentError, match="p is a whole number from opset 2 on"):
            onnx.lp_pool((1, 1, 8), kernel=2, p=p, opset=2)


def test_transposed_sizes() -> None:
    for n, k, s, lo, hi, d, more in itertools.product(range(1, 4), (1, 2, 3), (1, 2, 3), (0, 1), (0, 2), (1, 2), (0, 1)):
        expected = (n - 1) * s + more + (k - 1) * d + 1 - lo - hi
        arguments: dict[str, Any] = dict(stride=s, padding=((lo, hi),), dilation=d, output_padding=more)
        if expected < 1:
            with pytest.raises(astride.ArgumentError):
                onnx.conv_transpose((1, 1, n), (1, 1, k), **arguments)
        else:
            assert onnx.conv_transpose((1, 1, n), (1, 1, k), **arguments).output_sizes == (expected,)


@pytest.mark.parametrize(
    ("arguments", "y"),
    [
        ({}, [1, 10, 102, 20, 200]),
        (dict(auto_pad="SAME_UPPER"), [1, 10, 102, 20]),
        (dict(auto_pad="SAME_LOWER"), [10, 102, 20, 200]),
        (dict(output_shape=[4]), [10, 102, 20, 200]),
        (dict(output_shape=[4], auto_pad="SAME_UPPER"), [1, 10, 102, 20]),
        (dict(output_shape=[6]), [1, 10, 102, 20, 200, 0]),
        (dict(output_shape=[4], pads=[1, 1]), [10, 102, 20, 200]),
        (dict(auto_pad="SAME_UPPER", output_padding=[1]), [10, 102, 20, 200]),
        (dict(output_padding=[1]), [1, 10, 102, 20, 200, 0]),
    ],
)
def test_t16_t19_where_a_transposed_convolution_is_cropped(arguments: dict[str, Any], y: list[float]) -> None:
    assert like.ConvTranspose(X, W, strides=[2], **arguments).tolist() == [[y]]


def test_t14_norms_are_absolute() -> None:
    x = line(-1, 2, -3, 4)
    assert like.LpPool(x, kernel_shape=[2], strides=[2], p=1).tolist() == [[[3, 7]]]
    assert_near(like.LpPool(x, kernel_shape=[2], strides=[2], p=3), [[[2.080084, 4.497941]]], 1e-6)


def test_t13_a_partial_window_is_not_scaled_up() -> None:
    y = like.LpPool(line(1, 1, 1, 1, 1), kernel_shape=[2], strides=[2], ceil_mode=1)
    assert_near(y, [[[2**0.5, 2**0.5, 1]]], 1e-6)


def test_t20_a_larger_output_keeps_rows_and_columns() -> None:
    x, places = np.float32([[[[5, 7], [9, 11]]]]), np.array([[[[0, 3], [12, 15]]]])
    y = like.MaxUnpool(x, places, [1, 1, 5, 5], kernel_shape=[2, 2], strides=[2, 2])
    assert (y[0, 0, 3, 0], y[0, 0, 3, 3]) == (9, 11)
    other = astride.max_unpool(x, places, kernel=2, output_size=5, rules="onnxruntime")
    assert (other[0, 0, 2, 2], other[0, 0, 3, 0]) == (9, 11)


def test_t21_t22_t23_indices_count_over_the_tensor() -> None:
    x = np.arange(16, dtype=np.float32).reshape(2, 2, 2, 2)
    assert like.MaxPool(x, kernel_shape=[2, 2], return_indices=True)[1].reshape(-1).tolist() == [3, 7, 11, 15]
    nine = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
    _, places = like.MaxPool(nine, kernel_shape=[2, 2], storage_order=1, return_indices=True)
    assert places.tolist() == [[[[4, 7], [5, 8]]]]
    small = np.float32([[[[5, 1], [2, 3]]]])
    _, places = like.MaxPool(small, kernel_shape=[2, 2], pads=[1, 1, 1, 1], return_indices=True)
    assert places.tolist() == [[[[0, 0, 1], [0, 0, 3], [2, 3, 3]]]]


def test_column_major_over_three_axes() -> None:
    """As ONNX Runtime counts: d + h * D + w * D * H."""
    x = np.arange(54, dtype=np.float32).reshape(1, 2, 3, 3, 3)
    _, places = like.MaxPool(x, kernel_shape=[2, 2, 2], storage_order=1, return_indices=True)
    assert places[0, 0].tolist() == [[[13, 22], [16, 25]], [[14, 23], [17, 26]]]
    assert (places[0, 1] - places[0, 0] == 27).all()


def test_t28_where_the_odd_pixel_is() -> None:
    x, w = line(1, 2, 3, 4), np.float32([[[1, 10]]])
    assert like.Conv(x, w, auto_pad="SAME_UPPER").tolist() == [[[21, 32, 43, 4]]]
    assert like.Conv(x, w, auto_pad="SAME_LOWER").tolist() == [[[10, 21, 32, 43]]]


# Reports of users


def test_pool_05_06_no_window_starts_in_the_end_padding() -> None:
    x = np.arange(25, dtype=np.float32).reshape(1, 1, 5, 5)
    y, places = like.MaxPool(x, kernel_shape=[2, 2], strides=[2, 2], pads=[1] * 4, ceil_mode=1, return_indices=True)
    assert y[0, 0].tolist() == [[0, 2, 4], [10, 12, 14], [20, 22, 24]] and (places >= 0).all()
    assert like.AveragePool(x, kernel_shape=[3, 3], strides=[3, 3], pads=[1] * 4, ceil_mode=1).shape == (1, 1, 2, 2)


def test_pool_06_ceil_is_pytorchs() -> None:
    """What rules decide, so any kernel will do: the reference, which compiles nothing for each of the geometries."""
    rng = np.random.default_rng(6)
    for _ in range(500):
        rank = int(rng.integers(1, 4))
        n, s = (tuple(int(v) for v in rng.integers(1, high, rank)) for high in (8, 4))
        k = tuple(int(v) for v in rng.integers(1, 5, rank))
        arguments: dict[str, Any] = dict(kernel=k, stride=s, padding=tuple(v // 2 for v in k), ceil_mode=True)
        x = rng.normal(size=(1, 1, *n)).astype("float32")
        try:
            want = astride.max_pool(x, rules="pytorch", backend="reference", **arguments)
        except astride.ArgumentError:
            continue
        assert (astride.max_pool(x, rules="onnx", backend="reference", **arguments) == want).all()


def test_pool_07_the_overhang_is_not_counted() -> None:
    x = np.float32(
        [
            [2.0903, 4.6493, 1.6320, -3.2051, 4.6975, 4.7296, 3.3653, -1.5815, -2.3832],
            [0.9628, -1.5899, -2.6820, 5.7529, 7.7346, -0.8910, -2.0151, 0.1313, -0.5374],
        ]
    )[None]
    arguments: dict[str, Any] = dict(kernel=7, stride=3, padding=3, ceil_mode=1, count_include_pad=1)
    want = [[[0.7381, 2.5656, 0.8032, -0.0999], [0.3491, 1.0389, 1.4536, -0.4035]]]
    assert np.abs(astride.avg_pool(x, rules="onnx", **arguments) - want).max() < 5e-5
    old = astride.avg_pool(x, rules="onnxruntime", version="1.16", opset=18, **arguments)
    assert np.abs(old[..., 3] - [-0.0856, -0.3459]).max() < 5e-5


def test_pool_12_padding_is_not_counted_by_default() -> None:
    x = np.float32([[[[1, 2], [3, 4]]]])
    assert like.AveragePool(x, kernel_shape=[3, 3], pads=[1] * 4)[0, 0, 0, 0] == 2.5
    assert_near(like.AveragePool(x, kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1)[0, 0, 0, 0], 10 / 9, 1e-6)


@pytest.mark.parametrize("include", [0, 1])
def test_pool_13_asymmetric_pads_and_dilation(include: int) -> None:
    """Against a loop over taps, and its gradient."""
    x = np.random.default_rng(13).normal(size=(1, 1, 5, 6))
    pads, d, k = ((0, 3), (0, 3)), 2, 2
    y, pull = astride.vjp(
        astride.avg_pool, x, kernel=k, stride=1, padding=pads, dilation=d, count_include_pad=include, rules="onnx"
    )
    want, slope = np.zeros_like(y), np.zeros_like(x)
    for i, j in np.ndindex(*y.shape[2:]):
        taps = [(i + a * d, j + b * d) for a in range(k) for b in range(k)]
        inside = [(r, c) for r, c in taps if r < 5 and c < 6]
        count = len(taps) if include else len(inside)
        want[0, 0, i, j] = sum(x[0, 0, r, c] for r, c in inside) / count if count else np.nan
        for r, c in inside:
            slope[0, 0, r, c] += 1 / count
    assert_near(y, want, 1e-12)
    assert_near(pull(np.ones_like(y))[0], slope, 1e-12)


def test_pool_14_the_text_checks_no_pad_against_the_kernel() -> None:
    arguments: dict[str, Any] = dict(kernel=2, stride=2, padding=((2, 3),), count_include_pad=1)
    assert astride.avg_pool(line(1, 2, 3, 4, 5), rules="onnx", **arguments).tolist() == [[[0, 1.5, 3.5, 2.5, 0]]]
    with pytest.raises(astride.ArgumentError, match="pad < kernel, on axis W: 3 < 2"):
        astride.avg_pool(line(1, 2, 3, 4, 5), rules="onnxruntime", **arguments)
    with pytest.raises(astride.ArgumentError):
        astride.avg_pool(line(1, 2, 3, 4, 5), rules="pytorch", kernel=2, stride=2, padding=2)


def test_conv_03_04_same_gives_n_times_the_stride() -> None:
    assert onnx.conv_transpose((1, 1, 2, 2), (1, 1, 3, 3), padding="SAME_UPPER").output_sizes == (2, 2)
    assert onnx.conv_transpose((1, 1, 5, 5), (1, 1, 3, 3), stride=2, padding="SAME_LOWER").output_sizes == (10, 10)
    plan = onnx.conv_transpose((1, 1, 3, 3), (1, 1, 3, 3), stride=2, padding="SAME_UPPER", output_padding=1)
    assert plan.output_sizes == (6, 6)


def test_conv_05_the_odd_pixel_of_a_given_output() -> None:
    first = onnx.conv_transpose((1, 1, 3), (1, 1, 3), stride=2, output_shape=6).axes[0]
    last = onnx.conv_transpose((1, 1, 3), (1, 1, 3), stride=2, output_shape=6, padding="SAME_UPPER").axes[0]
    assert (first.pad_lo, first.pad_hi, last.pad_lo, last.pad_hi) == (1, 0, 0, 1)


def test_conv_08_same_with_a_stride_is_smaller() -> None:
    assert onnx.conv((1, 1, 7, 5), (1, 1, 3, 3), stride=2, padding="SAME_UPPER").output_sizes == (4, 3)
