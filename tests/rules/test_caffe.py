"""Caffe's rules as sizes, windows and plans; no arrays."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tests.rules.geometry import ceiling, size, size_or_none, windows

import astride
from astride.plan.kinds import Divisor, Empty, Nan, Reduce, Start, Tie, Unpicked
from astride.rules import caffe


@pytest.mark.parametrize(
    ("n", "kernel", "stride", "pad", "out"),
    [(112, 3, 2, 0, 56), (112, 3, 2, 1, 57), (129, 2, 2, 0, 65), (54, 3, 2, 0, 27), (7, 7, 7, 0, 1), (64, 3, 2, 1, 33)],
)
def test_sizes_people_met(n: int, kernel: int, stride: int, pad: int, out: int) -> None:
    assert size("max_pool", n, rules="caffe", kernel=kernel, stride=stride, padding=pad) == out


def test_the_floor_variant() -> None:
    assert size("max_pool", 64, rules="caffe", kernel=3, stride=2, padding=1, round_mode="FLOOR") == 32


def test_convolution_floors_where_pooling_ceils() -> None:
    conv = astride.plan("conv", (1, 1, 64), w_shape=(1, 1, 3), rules="caffe", stride=2, padding=1)
    assert conv.axes[0].out == 32
    assert size("avg_pool", 64, rules="caffe", kernel=3, stride=2, padding=1) == 33


@pytest.mark.parametrize("op", ["max_pool", "avg_pool"])
def test_sizes_follow_the_formula(op: str) -> None:
    tried = 0
    for n, k, s, p, mode in itertools.product(range(1, 12), range(1, 6), range(1, 5), range(3), ("CEIL", "FLOOR")):
        free = n + 2 * p - k
        expected: int | None = (ceiling(free, s) if mode == "CEIL" else free // s) + 1
        if p and (expected - 1) * s >= n + p:
            expected -= 1
        if p >= k or expected < 1:
            expected = None
        assert size_or_none(op, n, rules="caffe", kernel=k, stride=s, padding=p, round_mode=mode) == expected, (n, k, s, p, mode)
        tried += 1
    assert tried > 1000


def test_a_window_starting_behind_the_padded_input_is_dropped_only_where_there_is_padding() -> None:
    assert windows("max_pool", 6, rules="caffe", kernel=1, stride=2) == [[0], [2], [4], [6]]
    assert windows("max_pool", 5, rules="caffe", kernel=2, stride=2, padding=1) == [[-1, 0], [1, 2], [3, 4]]


def test_padding_on_one_axis_clips_the_other() -> None:
    plan = caffe.pooling((1, 1, 6, 6), pool="AVE", kernel_h=1, kernel_w=3, stride=2, pad_h=0, pad_w=1)
    assert [axis.out for axis in plan.axes] == [3, 4]


def test_convolution_sizes_truncate_toward_zero() -> None:
    """C's division: a kernel less than a stride larger than the input still fits once."""
    plan = astride.plan("conv", (1, 1, 4), w_shape=(1, 1, 6), rules="caffe", stride=3)
    assert plan.axes[0].out == 1


def test_what_a_maximum_plan_says() -> None:
    plan = caffe.pooling((2, 3, 8, 8), kernel_size=3, stride=2)
    assert (plan.reduce, plan.start, plan.nan, plan.tie, plan.unpicked) == (
        Reduce.MAX,
        Start.FINITE,
        Nan.COMPARED,
        Tie.FIRST,
        Unpicked.NOWHERE,
    )


def test_what_an_average_plan_says() -> None:
    plan = caffe.pooling((2, 3, 8, 8), pool="AVE", kernel_size=3, stride=2)
    assert (plan.reduce, plan.divisor, plan.empty) == (Reduce.AVERAGE, Divisor.CAFFE, Empty.QUOTIENT)


def test_stochastic_draws_in_training_and_averages_at_test_time() -> None:
    for phase, reduce in (("TRAIN", Reduce.STOCHASTIC), ("TEST", Reduce.STOCHASTIC_MEAN)):
        plan = caffe.pooling((2, 3, 8, 8), dtype="float64", pool="STOCHASTIC", kernel_size=3, phase=phase)
        assert (plan.reduce, plan.threshold) == (reduce, "float32")


def test_the_stride_defaults_to_one_in_fields_and_to_the_kernel_in_the_shared_vocabulary() -> None:
    assert caffe.pooling((1, 1, 8, 8), kernel_size=2).axes[0].stride == 1
    assert caffe.max_pool((1, 1, 8, 8), kernel=2).axes[0].stride == 2


def test_global_pooling_takes_the_input() -> None:
    plan = caffe.pooling((1, 1, 5, 7), pool="AVE", global_pooling=True)
    assert [(axis.kernel, axis.out) for axis in plan.axes] == [(5, 1), (7, 1)]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (dict(global_pooling=True, kernel_size=2), "global pooling takes its window from the input"),
        (dict(global_pooling=True, pad=1), "global pooling takes its window from the input"),
        (dict(global_pooling=True, stride=2), "global pooling takes its window from the input"),
        (dict(kernel_size=2, kernel_h=2, kernel_w=2), "kernel_size excludes kernel_h and kernel_w"),
        (dict(kernel_h=2), "kernel_h and kernel_w come together"),
        (dict(kernel_size=2, stride=1, stride_h=1, stride_w=1), "stride excludes stride_h and stride_w"),
        (dict(kernel_size=2, pad_w=1), "pad_h and pad_w come together"),
        ({}, "the kernel is not given"),
        (dict(kernel_size=0), "kernel_size >= 1: 0"),
        (dict(kernel_size=2, stride=0), "stride >= 1: 0"),
        (dict(kernel_size=2, pad=2), "pad < kernel, on axis H: 2 < 2"),
        (dict(kernel_size=2, pool="STOCHASTIC", pad=1), "Caffe pads only maximum and average pooling"),
        (dict(kernel_size=9), "the kernel is larger than the padded input"),
        (dict(kernel_size=2, pool="MIN"), "pool has no such value"),
        (dict(kernel_size=2, round_mode="ROUND"), "round_mode has no such value"),
        (dict(kernel_size=2, phase="test"), "phase has no such value"),
    ],
)
def test_what_the_layer_refuses(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(astride.ArgumentError) as raised:
        caffe.pooling((1, 1, 6, 6), **fields)
    assert says in str(raised.value)


@pytest.mark.parametrize("shape", [(6, 6), (1, 6, 6), (1, 1, 2, 6, 6)])
def test_the_layer_pools_four_axes_only(shape: tuple[int, ...]) -> None:
    with pytest.raises(astride.ArgumentError, match="Caffe pools arrays of four axes"):
        caffe.pooling(shape, kernel_size=2)


def test_convolution_fields() -> None:
    plan = caffe.convolution((2, 4, 9, 8), num_output=6, kernel_size=(3, 2), stride=2, pad=(1, 0), dilation=2, group=2)
    assert [(a.kernel, a.stride, a.pad_lo, a.dilation) for a in plan.axes] == [(3, 2, 1, 2), (2, 2, 0, 2)]
    assert (plan.groups, plan.out_channels, plan.weight_shape) == (2, 6, (6, 2, 3, 2))
    same = caffe.convolution(
        (2, 4, 9, 8), num_output=6, kernel_h=3, kernel_w=2, stride_h=2, stride_w=2, pad_h=1, dilation=2, group=2
    )
    assert same == plan


def test_deconvolution_sizes() -> None:
    plan = caffe.deconvolution((2, 4, 5, 6), num_output=6, kernel_size=4, stride=2, pad=1, group=2)
    assert plan.output_shape((2, 4, 5, 6), plan.weight_shape, None) == (2, 6, 10, 12)
    assert plan.weight_shape == (4, 3, 4, 4)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (dict(kernel_size=()), "the kernel is not given"),
        (dict(kernel_size=3, kernel_h=3, kernel_w=3), "kernel_h and kernel_w stand alone"),
        (dict(kernel_h=3), "kernel_h and kernel_w come together"),
        (dict(kernel_size=(3, 3, 3)), "kernel needs one value, or one per axis"),
        (dict(kernel_size=3, group=3), "not divisible by groups"),
        (dict(kernel_size=3, stride=0), "stride >= 1: 0"),
        (dict(kernel_size=9), "the kernel is larger than the padded input"),
    ],
)
def test_what_convolution_refuses(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(astride.ArgumentError) as raised:
        caffe.convolution((1, 4, 6, 6), num_output=4, **fields)
    assert says in str(raised.value)


@pytest.mark.parametrize("one", [1, np.int64(1), np.array(1), (1, 1), np.array([1, 1])], ids=repr)
def test_whole_numbers_of_any_kind_say_that_there_is_no_dilation(one: Any) -> None:
    assert astride.plan("avg_pool", (1, 1, 6, 6), kernel=np.array(2), dilation=one, rules="caffe") == astride.plan(
        "avg_pool", (1, 1, 6, 6), kernel=2, rules="caffe"
    )
