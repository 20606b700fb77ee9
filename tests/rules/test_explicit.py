"""The default rules: every choice named, the plainest reading where nothing is said."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.rules.geometry import ceiling, size, size_or_none, windows

import astride
from astride.plan.kinds import Divisor, Empty, Nan, Start, Tie
from astride.rules import RULES, has, rule


def test_sizes_follow_the_formulas() -> None:
    """Floor and ceil, clipped or not, on unequal pads."""
    for n, k, s, d, lo, hi in itertools.product(range(1, 8), range(1, 4), range(1, 4), range(1, 3), range(-1, 4), range(-1, 3)):
        free = n + lo + hi - (k - 1) * d - 1
        common: dict[str, Any] = dict(rules="explicit", kernel=k, stride=s, dilation=d, padding=((lo, hi),))
        floor, ceil = free // s + 1, ceiling(free, s) + 1
        clipped = ceil - 1 if (ceil - 1) * s >= n + lo else ceil
        for arguments, expected in (
            (dict(rounding="floor"), floor),
            (dict(rounding="ceil", clip="never"), ceil),
            (dict(rounding="ceil", clip="always"), clipped),
            (dict(rounding="ceil", clip="padded"), clipped if lo or hi else ceil),
        ):
            got = size_or_none("max_pool", n, **common, **arguments)
            assert got == (expected if expected >= 1 else None), (n, k, s, d, lo, hi, arguments)


def test_same_puts_the_odd_pixel_at_the_end_or_the_start() -> None:
    assert windows("max_pool", 6, rules="explicit", kernel=3, stride=2, padding="same") == [[0, 1, 2], [2, 3, 4], [4, 5, 6]]
    assert windows("max_pool", 6, rules="explicit", kernel=3, stride=2, padding="same_lower") == [
        [-1, 0, 1],
        [1, 2, 3],
        [3, 4, 5],
    ]
    assert windows("max_pool", 7, rules="explicit", kernel=2, stride=3, padding="same") == [[0, 1], [3, 4], [6, 7]]


def test_causal_windows_end_where_they_belong() -> None:
    """ceil(n / stride) windows, each of which ends with the pixel it belongs to, whatever the rounding."""
    assert windows("max_pool", 6, rules="explicit", kernel=3, stride=2, padding="causal") == [[-2, -1, 0], [0, 1, 2], [2, 3, 4]]
    assert windows("avg_pool", 4, rules="explicit", kernel=2, stride=1, dilation=3, padding="causal", rounding="ceil") == [
        [i - 3, i] for i in range(4)
    ]
    for n, k, s, d in itertools.product(range(1, 9), range(1, 4), (1, 2, 3), (1, 2)):
        if s == 1 or d == 1:
            shape = dict(w_shape=(1, 1, k), stride=s, dilation=d, padding="causal")
            keras, ours = (astride.plan("conv", (1, 1, n), rules=rules, **shape) for rules in ("keras", "explicit"))
            assert ours.axes == keras.axes, (n, k, s, d)


def test_causal_results_see_nothing_that_comes_later() -> None:
    x, w, later = np.arange(12.0).reshape(1, 1, 3, 4), np.arange(1.0, 7).reshape(1, 1, 2, 3), np.zeros((1, 1, 3, 4))
    later[..., 2] = 100
    for op, arguments in (
        (astride.conv, dict(w=w)),
        (astride.max_pool, dict(kernel=(2, 3), stride=1)),
        (astride.avg_pool, dict(kernel=(2, 3), stride=1)),
        (astride.lp_pool, dict(kernel=(2, 3), stride=1)),
        (astride.stochastic_pool, dict(kernel=(2, 3), stride=1)),
    ):
        y, moved = (op(array, padding="causal", **arguments) for array in (x, x + later))
        assert y.shape == x.shape
        np.testing.assert_array_equal(y[..., :2], moved[..., :2])
        assert (y[..., 2:] != moved[..., 2:]).any()
    with pytest.raises(astride.ArgumentError, match="'valid', 'same', 'same_lower', 'causal'"):
        astride.max_pool(x, kernel=2, padding="reflect")


def test_negative_pads_crop() -> None:
    assert windows("max_pool", 6, rules="explicit", kernel=2, stride=1, padding=((-1, 0),)) == [[1, 2], [2, 3], [3, 4], [4, 5]]


def test_defaults() -> None:
    most = astride.plan("max_pool", (1, 1, 8), kernel=2)
    assert (most.axes[0].stride, most.start, most.nan, most.tie) == (2, Start.INFINITY, Nan.PROPAGATED, Tie.FIRST_NAN)
    mean = astride.plan("avg_pool", (1, 1, 8), kernel=2)
    assert (mean.divisor, mean.empty) == (Divisor.VALID, Empty.ZERO)
    assert astride.plan("conv", (1, 1, 8), w_shape=(1, 1, 2)).axes[0].stride == 1


def test_layout_names() -> None:
    first = astride.plan("max_pool", (1, 3, 8, 8), kernel=2)
    last = astride.plan("max_pool", (1, 8, 8, 3), kernel=2, layout="channels_last")
    assert astride.plan("max_pool", (1, 3, 8, 8), kernel=2, layout="NCHW") == first
    assert astride.plan("max_pool", (1, 8, 8, 3), kernel=2, layout="NHWC") == last
    assert first.axes == last.axes


def test_plans_are_equal_hashable_and_become_plain_data() -> None:
    one, two = (astride.plan("max_pool", (1, 3, 8, 8), kernel=(2, 3), rules="caffe") for _ in range(2))
    assert one == two and hash(one) == hash(two)
    other = astride.plan("max_pool", (1, 3, 8, 8), kernel=(3, 2), rules="caffe")
    assert one != other
    data = one.to_dict()
    assert type(one).from_dict(data) == one
    assert data["tie"] == "first" and isinstance(data["axes"], list)
    with pytest.raises(astride.ArgumentError, match="unknown fields"):
        type(one).from_dict(data | {"colour": "red"})
    with pytest.raises(astride.ArgumentError, match="not a saved PoolPlan"):
        type(one).from_dict(data | {"tie": "best"})
    with pytest.raises(AttributeError):
        one.tie = Tie.LAST


def test_a_plan_checks_its_own_arithmetic() -> None:
    from astride.plan import StridedAxis

    assert StridedAxis(size=5, kernel=2, stride=2, out=3).overhang == 1
    for out in (1, 4):
        with pytest.raises(astride.ArgumentError, match="the output size does not follow from the axis"):
            StridedAxis(size=5, kernel=2, stride=2, out=out)


def test_the_table_of_operators() -> None:
    """Which rules have which of the window operators."""
    windows_ = {"max_pool", "min_pool", "avg_pool", "lp_pool", "stochastic_pool", "max_unpool", "conv", "conv_transpose"}
    lacking = {
        "explicit": set(),
        "caffe": {"lp_pool", "max_unpool"},
        "pytorch": {"min_pool", "stochastic_pool"},
        "mps": {"stochastic_pool", "max_unpool"},
        "mxnet": {"min_pool", "stochastic_pool", "max_unpool"},
        "chainer": {"min_pool", "lp_pool", "stochastic_pool", "max_unpool"},
        "opencv": {"min_pool", "lp_pool", "stochastic_pool", "max_unpool"},
        "darknet": {"min_pool", "lp_pool", "stochastic_pool", "max_unpool", "conv_transpose"},
        "numpy_loops": {"lp_pool", "stochastic_pool", "max_unpool"},
    }
    assert set(lacking) <= set(RULES)
    assert {name: {op for op in windows_ if not has(name, op)} for name in lacking} == lacking


def test_asking_for_what_rules_lack_names_those_that_have_it() -> None:
    with pytest.raises(astride.UnsupportedError) as raised:
        rule("mps", "stochastic_pool")
    assert "mps has no stochastic_pool" in str(raised.value) and "one of explicit, caffe" in str(raised.value)


def test_size_counts_windows() -> None:
    assert size("max_pool", 8, rules="explicit", kernel=2) == 4


@pytest.mark.parametrize("dtype", ["float64", np.float64, np.dtype("float64"), np.dtype(">f8"), float], ids=repr)
def test_a_dtype_in_any_of_numpys_forms(dtype: Any) -> None:
    assert astride.plan("max_pool", (1, 1, 4), kernel=2, dtype=dtype).dtype == "float64"


@pytest.mark.parametrize("shape", ["abc", (1, 1, 4.0), (1, 1, -4), 5, None], ids=repr)
def test_what_is_no_shape(shape: Any) -> None:
    with pytest.raises(astride.ArgumentError, match="shape is no shape"):
        astride.plan("max_pool", shape, kernel=2)


def test_what_is_no_dtype() -> None:
    with pytest.raises(astride.ArgumentError, match="there is no such dtype"):
        astride.plan("max_pool", (1, 1, 4), kernel=2, dtype=3)


def test_an_average_counts_the_taps_that_an_edge_mode_reads() -> None:
    x = np.array([[[6.0, 3.0]]])
    average = partial(astride.avg_pool, x, kernel=2, stride=1, padding=1)
    assert average().tolist() == [[[6, 4.5, 3]]]
    assert average(edge="clamp").tolist() == [[[6, 4.5, 3]]]
    assert average(edge="constant", edge_value=1.0).tolist() == [[[3.5, 4.5, 2]]]
    assert average(edge="constant", edge_value=1.0, divisor="valid").tolist() == [[[7, 4.5, 4]]]
