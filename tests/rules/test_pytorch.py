"""PyTorch's rules as sizes, windows and plans; no arrays."""

from __future__ import annotations

import itertools

import pytest
from tests.rules.geometry import size, size_or_none, windows

import astride
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
