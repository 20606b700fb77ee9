"""MXNet's rules as sizes, windows and plans; no arrays but for what astride.like.mxnet refuses."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tests.rules.geometry import ceiling, size, size_or_none, windows

import astride
from astride.like import mxnet as like
from astride.plan.kinds import Divisor, Edge, Empty, LpForm, LpScale, Nan, Start, Tie, ZeroWindow
from astride.rules import mxnet


@pytest.mark.parametrize("op", ["max_pool", "avg_pool"])
def test_sizes_follow_the_formula(op: str) -> None:
    tried = 0
    for n, k, s, p, full in itertools.product(range(1, 10), range(1, 5), range(1, 4), range(3), (False, True)):
        free = n + 2 * p - k
        expected = None if p >= k or free < 0 else 1 + (ceiling(free, s) if full else free // s)
        convention = "full" if full else "valid"
        got = size_or_none(op, n, rules="mxnet", kernel=k, stride=s, padding=p, pooling_convention=convention)
        assert got == expected, (n, k, s, p, full)
        tried += 1
    assert tried > 600


def test_full_keeps_windows_behind_the_input() -> None:
    """T1 and T6: where PyTorch drops the last one."""
    assert windows("max_pool", 6, rules="mxnet", kernel=1, stride=2, pooling_convention="full") == [[0], [2], [4], [6]]
    assert size("max_pool", 5, rules="mxnet", kernel=2, stride=2, padding=1, pooling_convention="full") == 4
    assert size("max_pool", 5, rules="pytorch", kernel=2, stride=2, padding=1, ceil_mode=True) == 3


def test_sums_and_norms_take_any_padding() -> None:
    assert size("avg_pool", 3, rules="mxnet", kernel=1, padding=2, pool_type="sum") == 7
    assert size("lp_pool", 3, rules="mxnet", kernel=1, padding=2) == 7


def test_what_plans_say() -> None:
    most = mxnet.max_pool((1, 1, 8), kernel=2)
    assert (most.start, most.nan, most.tie, most.edge) == (Start.FINITE, Nan.COMPARED, Tie.FIRST, Edge.SKIP)
    mean = mxnet.avg_pool((1, 1, 8), kernel=2)
    assert (mean.divisor, mean.empty) == (Divisor.PADDED, Empty.ZERO)
    assert mxnet.avg_pool((1, 1, 8), kernel=2, count_include_pad=False).divisor is Divisor.VALID
    total = mxnet.avg_pool((1, 1, 8), kernel=2, pool_type="sum")
    assert (total.divisor, total.divisor_override) == (Divisor.OVERRIDE, 1)
    norm = mxnet.lp_pool((1, 1, 8), kernel=2, p=3)
    assert (norm.lp_form, norm.lp_scale, norm.lp_scaled) == (LpForm.SIGNED_ROOT, LpScale.SUM, False)


def test_the_gradient_of_nothing_goes_to_the_first_place_which_may_be_padding() -> None:
    x = np.full((1, 1, 3), -np.inf, np.float32)
    y, pull = astride.vjp(astride.max_pool, x, kernel=3, stride=1, padding=1, rules="mxnet")
    assert y.tolist() == [[[-np.finfo(np.float32).max] * 3]]
    assert pull(np.array([[[1, 2, 4]]], np.float32))[0].tolist() == [[[2, 4, 0]]]


def test_a_signed_sum_has_slope_one_even_at_zero() -> None:
    """T15 is for norms: of p = 2 and 3 the slope at zero is 0."""
    assert mxnet.lp_pool((1, 1, 8), kernel=2, p=1).zero_window is ZeroWindow.FORMULA
    for p, slope in ((1, 1), (2, 0), (3, 0)):
        _, pull = astride.vjp(like.Pooling, np.array([[[-2, 2, 0, 0]]], np.float32), (4,), "lp", p_value=p)
        assert pull(np.ones((1, 1, 1), np.float32))[0][0, 0, 2:].tolist() == [slope if p == 1 else 0] * 2


def test_t14_roots_keep_their_sign() -> None:
    x = np.array([[[1, -3]]], np.float32)
    assert like.Pooling(x, (2,), "lp", p_value=3).item() == pytest.approx(-(26 ** (1 / 3)))


def test_transposed_sizes() -> None:
    for n, k, s, p, d, more in itertools.product(range(1, 5), range(1, 4), range(1, 4), range(2), range(1, 3), range(3)):
        expected = (n - 1) * s + (k - 1) * d + 1 - 2 * p + more
        arguments: dict[str, Any] = dict(stride=s, padding=p, dilation=d, output_padding=more)
        if more >= s or expected < 1:
            with pytest.raises(astride.ArgumentError):
                mxnet.conv_transpose((1, 1, n), (1, 1, k), **arguments)
        else:
            plan = mxnet.conv_transpose((1, 1, n), (1, 1, k), **arguments)
            assert plan.output_shape((1, 1, n), (1, 1, k), None) == (1, 1, expected)


@pytest.mark.parametrize(("target", "y"), [(5, [1, 10, 102, 20, 200]), (4, [10, 102, 20, 200]), (3, [10, 102, 20])])
def test_a_target_shape_cuts_the_greater_half_off_the_start(target: int, y: list[float]) -> None:
    """T16's data. Read in the source, and run for the target that cuts nothing."""
    x, w = np.array([[[1, 2]]], np.float32), np.array([[[1, 10, 100]]], np.float32)
    assert like.Deconvolution(x, w, kernel=(3,), stride=(2,), num_filter=1, target_shape=(target,)).tolist() == [[y]]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (dict(kernel=(2,), pooling_convention="same"), "every call with this convention fails in MXNet 1.9.1"),
        (dict(kernel=(2,), pad=(2,)), "pad < kernel, on axis W: 2 < 2"),
        (dict(kernel=(9,)), "kernel <= size + 2 * padding, on axis W: 9 <= 6"),
        (dict(kernel=(9,), stride=(9,), pooling_convention="full"), "kernel <= size + 2 * padding, on axis W: 9 <= 6"),
        (dict(kernel=(2, 2)), "kernel needs one value per axis"),
        (dict(kernel=(2,), pool_type="min"), "pool_type has no such value"),
        (dict(kernel=(2,), pool_type="lp"), "lp pooling needs its power"),
        (dict(kernel=(2,), pool_type="lp", p_value=4), "one of 1, 2, 3: 4"),
        ({}, "the kernel is not given"),
        (dict(kernel=(2,), layout="NHWC"), "another number of axes than x"),
    ],
)
def test_what_pooling_refuses(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(astride.ArgumentError) as raised:
        like.Pooling(np.ones((1, 2, 6), np.float32), **arguments)
    assert says in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "bias", "says"),
    [
        (dict(kernel=(2,), num_filter=4, no_bias=True), False, "num_filter is not the number of filters"),
        (dict(kernel=(3,), num_filter=3, no_bias=True), False, "kernel is not the size of weight"),
        (dict(kernel=(2,), num_filter=3), False, "no_bias and bias disagree"),
        (dict(kernel=(2,), num_filter=3, no_bias=True), True, "no_bias and bias disagree"),
        (dict(kernel=(2,), num_filter=3, layout="NWC"), True, "channels first only"),
        (dict(kernel=(2,), num_filter=3, dilate=(9,)), True, "the kernel is larger than the padded input"),
    ],
)
def test_what_convolution_refuses(arguments: dict[str, Any], bias: bool, says: str) -> None:
    x, w, b = np.ones((1, 2, 6), np.float32), np.ones((3, 2, 2), np.float32), np.ones(3, np.float32)
    with pytest.raises(astride.ArgumentError) as raised:
        like.Convolution(x, w, b if bias else None, **arguments)
    assert says in str(raised.value)


def test_global_pooling_reads_no_kernel() -> None:
    x = np.arange(12, dtype=np.float32).reshape(1, 2, 6)
    for layout, y in ((None, [[[2.5], [8.5]]]), ("NWC", [[[2.5, 8.5]]])):
        a = x if layout is None else np.ascontiguousarray(x.transpose(0, 2, 1))
        assert like.Pooling(a, kernel=(2,), pad=(1,), pool_type="avg", global_pool=True, layout=layout).tolist() == y


def test_adaptive_windows() -> None:
    x = np.arange(1, 6, dtype=np.float32).reshape(1, 1, 1, 5)
    assert like.AdaptiveAvgPooling2D(x, (1, 3)).tolist() == [[[[1.5, 3, 4.5]]]]
    assert like.AdaptiveAvgPooling2D(x).tolist() == [[[[3]]]]
    with pytest.raises(astride.ArgumentError, match="MXNet adapts averages only"):
        mxnet.adaptive_pool((1, 1, 5), output_size=2, reduce="max")


def test_retinafaces_81_rows_against_80() -> None:
    """RetinaFace-Cpp #11: a pooling with kernel 3, stride 2, pad 1 rounds down in MXNet and up in Caffe."""
    sizes = {}
    for rules in ("mxnet", "caffe"):
        sizes[rules] = size("max_pool", 160, rules=rules, kernel=3, stride=2, padding=1)
    assert sizes == {"mxnet": 80, "caffe": 81}
    assert size("max_pool", 160, rules="mxnet", kernel=3, stride=2, padding=1, pooling_convention="full") == 81


def test_padding_on_one_side_is_asked_for_by_explicit_rules() -> None:
    """mxnet #10487: causal pooling. MXNet pads both sides; a separate pad of zeros would win over negative data."""
    with pytest.raises(astride.ArgumentError, match="MXNet pads both sides of an axis alike"):
        mxnet.max_pool((1, 1, 4), kernel=3, stride=1, padding=((2, 0),))
    x = np.array([[[-4, -3, -2, -1]]], np.float32)
    causal: dict[str, Any] = dict(kernel=3, stride=1, padding=((2, 0),))
    assert astride.max_pool(x, **causal).tolist() == [[[-4, -3, -2, -1]]]
    assert astride.avg_pool(x, **causal).tolist() == [[[-4, -3.5, -3, -2]]]
