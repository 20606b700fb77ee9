"""PyTorch's rules as sizes, windows and plans; no arrays."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from tests.rules.geometry import size, size_or_none, windows

import astride
from astride.like import pytorch as F
from astride.plan.kinds import Divisor, Edge, LpForm, LpScale, Start, Tie, Unpicked
from astride.rules import pytorch


def test_sizes_follow_the_formula() -> None:
    tried = 0
    for n, k, s, p, d, ceil in itertools.product(range(1, 11), range(1, 5), range(1, 4), range(3), range(1, 3), (False, True)):
        reach = (k - 1) * d + 1
        expected: int | None = (n + 2 * p - reach + (s - 1 if ceil else 0)) // s + 1
        if ceil and (expected - 1) * s >= n + p:
            expected -= 1
        if 2 * p > k or expected < 1:
            expected = None
        got = size_or_none("max_pool", n, rules="pytorch", kernel=k, stride=s, padding=p, dilation=d, ceil_mode=ceil)
        assert got == expected, (n, k, s, p, d, ceil)
        tried += 1
    assert tried > 1000


def test_a_ceil_window_starts_inside_the_input_or_its_left_padding() -> None:
    assert size("max_pool", 6, rules="pytorch", kernel=1, stride=2, ceil_mode=True) == 3
    assert windows("max_pool", 5, rules="pytorch", kernel=2, stride=2, padding=1, ceil_mode=True) == [[-1, 0], [1, 2], [3, 4]]
    assert windows("max_pool", 7, rules="pytorch", kernel=2, dilation=3, stride=2, ceil_mode=True) == [[0, 3], [2, 5], [4, 7]]


def test_padding_may_be_half_the_kernel_whatever_the_dilation() -> None:
    assert size_or_none("max_pool", 9, rules="pytorch", kernel=3, padding=1, dilation=2) == 3
    assert size_or_none("max_pool", 9, rules="pytorch", kernel=3, padding=2, dilation=2) is None


def test_what_plans_say() -> None:
    most = pytorch.max_pool((1, 1, 8), kernel=2)
    assert (most.start, most.tie, most.unpicked) == (Start.INFINITY, Tie.LAST_NAN, Unpicked.FIRST_TAP)
    norm = pytorch.lp_pool((1, 1, 8), kernel=2)
    assert (norm.lp_form, norm.lp_scale, norm.lp_scaled) == (LpForm.SIGNED, LpScale.RESCALED, False)
    assert pytorch.avg_pool((1, 1, 8), kernel=2).divisor is Divisor.PADDED
    assert pytorch.avg_pool((1, 1, 8), kernel=2, count_include_pad=False).divisor is Divisor.VALID
    assert pytorch.avg_pool((1, 1, 8, 8), kernel=2, divisor_override=3).divisor_override == 3


def test_half_types_are_summed_in_float32() -> None:
    for dtype in ("float16", "bfloat16"):
        assert pytorch.avg_pool((1, 1, 8), dtype, kernel=2).accumulate == "float32"
    assert pytorch.avg_pool((1, 1, 8), "float64", kernel=2).accumulate == "float64"


def test_same_puts_the_odd_pixel_at_the_end() -> None:
    axis = pytorch.conv((1, 1, 8), (1, 1, 4), padding="same", dilation=1).axes[0]
    assert (axis.pad_lo, axis.pad_hi, axis.out) == (1, 2, 8)
    axis = pytorch.conv((1, 1, 8), (1, 1, 4), padding="same", dilation=3).axes[0]
    assert (axis.pad_lo, axis.pad_hi, axis.out) == (4, 5, 8)
    assert pytorch.conv((1, 1, 8), (1, 1, 4), padding="valid").axes[0].out == 5


@pytest.mark.parametrize(
    ("mode", "edge"), [("zeros", Edge.SKIP), ("reflect", Edge.MIRROR), ("replicate", Edge.CLAMP), ("circular", Edge.WRAP)]
)
def test_padding_modes_are_edges(mode: str, edge: Edge) -> None:
    assert pytorch.conv((1, 1, 8), (1, 1, 3), padding=1, padding_mode=mode).edge is edge


def test_reflection_reaches_to_the_last_pixel_but_one() -> None:
    assert pytorch.conv((1, 1, 3), (1, 1, 3), padding=2, padding_mode="reflect").axes[0].out == 5
    assert pytorch.conv((1, 1, 3), (1, 1, 3), padding=3, padding_mode="circular").axes[0].out == 7
    for mode, padding in (("reflect", 3), ("circular", 4)):
        with pytest.raises(astride.ArgumentError, match=f"{mode} padding reaches past the input"):
            pytorch.conv((1, 1, 3), (1, 1, 3), padding=padding, padding_mode=mode)


def test_transposed_sizes() -> None:
    for n, k, s, p, d, more in itertools.product(range(1, 5), range(1, 4), range(1, 4), range(2), range(1, 3), range(2)):
        expected = (n - 1) * s + (k - 1) * d + 1 - 2 * p + more
        if more >= max(s, d) or expected < 1:
            with pytest.raises(astride.ArgumentError):
                pytorch.conv_transpose((1, 1, n), (1, 1, k), stride=s, padding=p, dilation=d, output_padding=more)
            continue
        plan = pytorch.conv_transpose((1, 1, n), (1, 1, k), stride=s, padding=p, dilation=d, output_padding=more)
        assert plan.output_shape((1, 1, n), (1, 1, k), None) == (1, 1, expected)


def test_output_padding_may_reach_the_dilation() -> None:
    plan = pytorch.conv_transpose((1, 1, 2), (1, 1, 3), stride=2, output_padding=2, dilation=3)
    assert plan.output_shape((1, 1, 2), (1, 1, 3), None) == (1, 1, 11)


def test_unpooling_sizes() -> None:
    assert pytorch.max_unpool((1, 1, 3, 4), kernel=(2, 3), stride=2, padding=(0, 1)).out == (6, 7)
    for given in ((7, 8), (1, 1, 7, 8)):
        assert pytorch.max_unpool((1, 1, 3, 4), kernel=2, output_size=given).out == (7, 8) if given[-2:] == (7, 8) else None
    for wanted, accepted in ((5, True), (7, True), (4, False), (8, False)):
        if accepted:
            assert pytorch.max_unpool((1, 1, 3), kernel=2, output_size=[wanted]).out == (wanted,)
        else:
            with pytest.raises(astride.ArgumentError, match="4 < output_size < 8"):
                pytorch.max_unpool((1, 1, 3), kernel=2, output_size=[wanted])


# Windows found from the output's size


def test_adaptive_windows() -> None:
    (axis,) = astride.plan("adaptive_pool", (1, 1, 7), output_size=3, rules="pytorch").axes
    assert [list(axis.taps(i)) for i in range(3)] == [[0, 1, 2], [2, 3, 4], [4, 5, 6]]
    plan = astride.plan("adaptive_pool", (1, 1, 7, 5), output_size=(None, 2), reduce="max", rules="pytorch")
    assert [axis.out for axis in plan.axes] == [7, 2]
    assert (plan.tie, plan.start, plan.divisor) == (Tie.LAST_NAN, Start.INFINITY, Divisor.VALID)


def test_fractional_samples_begin_with_the_width_in_two_dimensions_only() -> None:
    for shape, order in (((1, 1, 9), (0,)), ((1, 1, 9, 9), (1, 0)), ((1, 1, 9, 9, 9), (0, 1, 2))):
        made = astride.plan("fractional_pool", shape, kernel=2, output_ratio=0.5, rules="pytorch")
        assert (made.sample_axes, set(made.out)) == (order, {4})
        ours = astride.plan("fractional_pool", shape, kernel=2, output_size=4)
        assert ours.sample_axes == tuple(range(len(order)))


def test_fractional_windows_need_a_pixel_more_in_three_dimensions() -> None:
    """And an output of no size at all is one, where a ratio makes it."""
    assert astride.plan("fractional_pool", (1, 1, 4, 4), kernel=2, output_size=3, rules="pytorch").out == (3, 3)
    with pytest.raises(astride.ArgumentError, match=r"on axis D: 3 \+ 2 - 1 < 4"):
        astride.plan("fractional_pool", (1, 1, 4, 4, 4), kernel=2, output_size=3, rules="pytorch")
    assert astride.plan("fractional_pool", (1, 1, 9, 2), kernel=1, output_ratio=0.4, rules="pytorch").out == (3, 0)


# What is taken by dtype; tests/live compares all of it with torch

WHOLE = {"uint8", "int8", "int16", "int32", "int64"}
REAL = {"float16", "bfloat16", "float32", "float64"}
COMPLEX = {"complex64", "complex128"}
DTYPES = WHOLE | REAL | COMPLEX | {"bool", "uint16", "uint32", "uint64"}


@pytest.mark.parametrize(
    ("op", "shape", "arguments", "taken"),
    [
        ("max_pool", (1, 1, 4, 4), dict(kernel=2), REAL | WHOLE),
        ("avg_pool", (1, 1, 4, 4), dict(kernel=2), REAL | {"int64"}),
        ("avg_pool", (1, 1, 4, 4, 4), dict(kernel=2), {"float32", "float64", "int64"}),
        ("lp_pool", (1, 1, 4, 4), dict(kernel=2), REAL),
        ("lp_pool", (1, 1, 4, 4, 4), dict(kernel=2), {"float32", "float64"}),
        ("lp_pool", (1, 1, 4, 4, 4), dict(kernel=2, p=math.inf), REAL | WHOLE),
        ("lp_pool", (1, 1, 4), dict(kernel=2, p=math.inf), REAL),
        ("adaptive_pool", (1, 1, 4), dict(output_size=2, reduce="max"), REAL),
        ("fractional_pool", (1, 1, 4, 4), dict(kernel=2, output_size=2), REAL),
        ("max_unpool", (1, 1, 4), dict(kernel=2), REAL),
        ("conv", (1, 1, 4), dict(w_shape=(1, 1, 2)), REAL | WHOLE | COMPLEX),
        ("conv", (1, 1, 4), dict(w_shape=(1, 1, 2), dilation=2), REAL | COMPLEX | {"int64"}),
        ("conv_transpose", (1, 1, 4), dict(w_shape=(1, 1, 2)), REAL | COMPLEX | {"int64"}),
    ],
)
def test_dtypes(op: str, shape: tuple[int, ...], arguments: dict[str, Any], taken: set[str]) -> None:
    def takes(dtype: str) -> bool:
        try:
            return bool(astride.plan(op, shape, rules="pytorch", dtype=dtype, **arguments))
        except astride.ArgumentError:
            return False

    assert {dtype for dtype in DTYPES if takes(dtype)} == taken


ROW = np.array([[[3, -2, 0, 5]]])


def test_norms_of_whole_numbers() -> None:
    assert F.lp_pool1d(ROW.astype("uint8") % 4, 2.0, 2).dtype == np.float32
    assert F.lp_pool1d(ROW, 2.0, 2).tolist() == [[[np.float32(np.sqrt(np.float32(13))), 5]]]
    # by an int power the average is a whole number: (9 + 4) / 2 is 6, times 2 is 12
    assert F.lp_pool1d(ROW, 2, 2).tolist() == [[[np.float32(np.sqrt(np.float32(12))), np.float32(np.sqrt(np.float32(24)))]]]
    assert F.lp_pool1d(ROW > 0, 1, 2).tolist() == [[[0, 0]]]
    assert F.lp_pool2d(ROW[None], np.inf, (1, 2)).tolist() == [[[[3, 5]]]]
    y, pull = astride.vjp(F.lp_pool1d, ROW.astype(float), -np.inf, 2)
    assert (y.tolist(), pull(np.ones_like(y))[0].tolist()) == ([[[2, 0]]], [[[0, -1, 0, 0]]])
    for x, order in ((ROW.astype("int32"), 2), (ROW, -1), (ROW, 0.0), (ROW, np.inf), (ROW, -np.inf), (ROW > 0, np.inf)):
        with pytest.raises(astride.AstrideError):
            F.lp_pool1d(x, order, 2)


def test_the_gradient_of_a_power_below_one_at_zeros() -> None:
    """0 arrives from a window of zeros, and 0 * 0^(p-1) is none; a window with a sum sends something: infinite there."""
    for x, expected in (([0.0, 0], [np.nan, np.nan]), ([0.0, 4], [np.inf, 1])):
        y, pull = astride.vjp(F.lp_pool1d, np.array([[x]]), 0.5, 2)
        assert np.array_equal(pull(np.ones_like(y))[0].ravel(), expected, equal_nan=True)


def test_maxima_of_whole_numbers_in_one_dimension_come_with_indices() -> None:
    with pytest.raises(astride.ArgumentError, match="only where it is asked for indices"):
        F.max_pool1d(ROW, 2)
    assert [part.tolist() for part in F.max_pool1d(ROW, 2, return_indices=True)] == [[[[3, 5]]], [[[0, 3]]]]


def test_columns_of_bools() -> None:
    x = np.array([[[[True, False], [False, True]]]])
    assert F.unfold(x, (1, 2)).tolist() == [[[True, False], [False, True]]]
    assert F.fold(np.array([[[True, False], [True, False]]]), (1, 3), (1, 2)).tolist() == [[[[True, True, False]]]]


def test_arrays_without_elements() -> None:
    """Unbatched channels may be none, a batch's not; where the result is empty the dtype does not matter."""
    none, some = np.zeros((0, 4, 4)), np.zeros((2, 0, 4, 4))
    assert F.adaptive_max_pool2d(none, 2, return_indices=True)[1].shape == (0, 2, 2)
    assert F.adaptive_avg_pool2d(some, 2).shape == (2, 0, 2, 2)
    assert F.adaptive_avg_pool2d(np.zeros((2, 3, 4, 4), bool), 0).shape == (2, 3, 0, 0)
    assert np.isnan(F.adaptive_avg_pool2d(np.zeros((2, 3, 4, 0)), 1)).all()
    assert F.adaptive_avg_pool2d(np.ones((5, 4)), 1).tolist() == [[1]]
    assert F.max_unpool2d(none, none.astype(int), 2).shape == (0, 8, 8)
    drawn = np.zeros((0, 3, 2))
    assert F.fractional_max_pool2d(np.zeros((0, 3, 4, 4), int), 2, output_size=2, _random_samples=drawn).shape == (0, 3, 2, 2)
    y, pull = astride.vjp(F.adaptive_avg_pool2d, some, 2)
    assert pull(y)[0].shape == some.shape
    for refused in (
        lambda: F.adaptive_max_pool2d(some, 2),
        lambda: F.adaptive_avg_pool3d(some[None], 2),
        lambda: F.max_unpool2d(some, some.astype(int), 2),
        lambda: F.fractional_max_pool2d(some, 2, output_size=2),
        lambda: F.unfold(some, 2),
        lambda: F.max_pool2d(some, 2),
        lambda: F.conv_transpose2d(some, np.zeros((0, 2, 2, 2))),
        lambda: F.conv2d(np.zeros((2, 0, 4, 4), "uint16"), np.zeros((3, 0, 2, 2), "uint16"), np.zeros(3, "uint16")),
    ):
        with pytest.raises(astride.AstrideError):
            refused()
