"""MPS's rules as the SDK headers derive them: where windows lie. Nothing of MPS can be run here."""

from __future__ import annotations

import pytest
from tests.rules.geometry import size, windows

import astride
from astride.plan.kinds import Divisor, Edge, ZeroWindow
from astride.rules import mps


def test_same_with_either_remainder() -> None:
    """n=5, k=2, s=2: the odd pixel at the top left by default, at the bottom right as TensorFlow has it."""
    assert windows("max_pool", 5, rules="mps", kernel=2, stride=2) == [[-1, 0], [1, 2], [3, 4]]
    assert windows("max_pool", 5, rules="mps", kernel=2, stride=2, remainder="bottom_right") == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize(("policy", "outs"), [("valid", 4), ("same", 6), ("full", 8)])
def test_sizes_by_policy(policy: str, outs: int) -> None:
    assert size("max_pool", 6, rules="mps", kernel=3, stride=1, padding=policy) == outs


def test_a_window_is_centred_at_its_offset() -> None:
    """The first tap lies kernel // 2 before the offset: even kernels lean up and left."""
    assert windows("max_pool", 4, rules="mps", kernel=2, stride=2, offset=0, size=2) == [[-1, 0], [1, 2]]
    assert windows("max_pool", 4, rules="mps", kernel=2, stride=2, offset=1, size=2) == [[0, 1], [2, 3]]
    assert windows("max_pool", 6, rules="mps", kernel=3, stride=2, offset=0, size=3) == [[-1, 0, 1], [1, 2, 3], [3, 4, 5]]


def test_dilation_is_centred_by_the_extent() -> None:
    assert windows("max_pool", 4, rules="mps", kernel=2, stride=1, dilation=3, offset=0, size=1) == [[-2, 1]]


@pytest.mark.parametrize(("n", "kernel", "stride", "first"), [(6, 2, 3, 0), (7, 2, 4, 0), (8, 2, 4, 1)])
def test_valid_windows_are_centred_where_the_stride_leaves_a_rest(n: int, kernel: int, stride: int, first: int) -> None:
    """With the remainder at the bottom right, C's division takes -1/2 to 0 and -2/2 to -1."""
    found = windows("max_pool", n, rules="mps", kernel=kernel, stride=stride, padding="valid", remainder="bottom_right")
    assert len(found) == 2 and found[0][0] == first


def test_averages_divide_by_the_kernel_or_shrink() -> None:
    assert mps.avg_pool((1, 1, 6), kernel=3).divisor is Divisor.KERNEL
    assert mps.avg_pool((1, 1, 6), kernel=3, edge="clamp").divisor is Divisor.VALID
    padded = mps.avg_pool((1, 1, 6), kernel=3, edge="clamp", zero_pad_size=1)
    assert (padded.divisor, padded.divisor_pad) == (Divisor.PADDED, ((1, 1),))


def test_the_zeros_outside_take_part_in_a_maximum() -> None:
    assert mps.max_pool((1, 1, 6), kernel=3).edge is Edge.CONSTANT
    assert mps.max_pool((1, 1, 6), kernel=3, edge="clamp").edge is Edge.CLAMP


def test_the_gradient_of_a_window_of_zeros_has_both_readings() -> None:
    assert mps.lp_pool((1, 1, 6), kernel=3).zero_window is ZeroWindow.ZERO
    assert mps.lp_pool((1, 1, 6), kernel=3, zero_window="formula").zero_window is ZeroWindow.FORMULA


@pytest.mark.parametrize(("policy", "out"), [("valid", 1), ("same", 3), ("full", 5)])
def test_transposed_sizes(policy: str, out: int) -> None:
    """Same gives (n-1)*s + 1, not n*s."""
    plan = mps.conv_transpose((1, 1, 2), (1, 1, 3), stride=2, padding=policy)
    assert plan.output_shape((1, 1, 2), (1, 1, 3), None) == (1, 1, out)
    assert plan.flip


def test_refusals() -> None:
    with pytest.raises(astride.ArgumentError, match="these rules have no dilation"):
        mps.avg_pool((1, 1, 9), kernel=3, dilation=2)
    with pytest.raises(astride.ArgumentError, match="size >= 1: 0"):
        mps.max_pool((1, 1, 2), kernel=3, padding="valid")
    with pytest.raises(astride.ArgumentError, match="edge has no such value"):
        mps.max_pool((1, 1, 4), kernel=3, edge="mirror")
    with pytest.raises(astride.ArgumentError, match="there is no rule for int32 arrays"):
        mps.max_pool((1, 1, 4), "int32", kernel=3)
