"""oneDNN's rules: a stated output, a larger end pad for ceil, and the traps about it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.rules.geometry import size

import astride
from astride.plan.kinds import Divisor, IndexBase, Start, Unpicked
from astride.rules import onednn

RULES: dict[str, Any] = {"rules": "onednn"}


def test_the_output_follows_from_the_pads_and_may_be_stated() -> None:
    assert size("max_pool", 6, rules="onednn", kernel=3, stride=2, padding=1) == 3
    assert size("max_pool", 6, rules="onednn", kernel=3, stride=2, padding=((1, 2),), output_size=4) == 4
    with pytest.raises(astride.ArgumentError, match="the output size does not follow from the window"):
        onednn.max_pool((1, 1, 6), kernel=3, stride=2, padding=1, output_size=4)


def test_what_plans_say() -> None:
    most = onednn.max_pool((1, 1, 8), kernel=2)
    assert (most.start, most.unpicked, most.index_base) == (Start.FINITE, Unpicked.FIRST_TAP, IndexBase.WINDOW)
    assert onednn.avg_pool((1, 1, 8), kernel=2).divisor is Divisor.VALID
    assert onednn.avg_pool((1, 1, 8), kernel=2, include_padding=True).divisor is Divisor.KERNEL


def test_t5_ceil_by_a_larger_end_pad_counts_the_overhang() -> None:
    y = astride.avg_pool(np.ones((1, 1, 6), np.float32), kernel=3, stride=2, padding=((1, 2),), include_padding=True, **RULES)
    assert y[0, 0].tolist() == pytest.approx([2 / 3, 1, 1, 1 / 3])


def test_t10_t12_the_first_of_equals_wins_and_nan_never() -> None:
    for values, y, slope in (
        ([1, 1, 1, 1], 1, [1, 0, 0, 0]),
        ([np.nan, 1, 2, 3], 3, [0, 0, 0, 1]),
        ([np.nan] * 4, -np.finfo(np.float32).max, [1, 0, 0, 0]),
    ):
        got, pull = astride.vjp(astride.max_pool, np.float32(values).reshape(1, 1, 4), kernel=4, **RULES)
        assert got.item() == y and pull(np.ones_like(got))[0].reshape(-1).tolist() == slope


def test_t49_the_gradient_of_padding_alone_is_lost() -> None:
    y, pull = astride.vjp(astride.max_pool, np.ones((1, 1, 6), np.float32), kernel=2, stride=1, padding=2, **RULES)
    assert y.shape == (1, 1, 9) and y[0, 0, 0] == y[0, 0, 8] == -np.finfo(np.float32).max
    assert pull(np.ones_like(y))[0].tolist() == [[[2, 1, 1, 1, 1, 1]]]


def test_convolutions_take_pads_on_each_side() -> None:
    assert onednn.conv((1, 1, 8), (1, 1, 3), stride=2, padding=((1, 0),)).output_sizes == (4,)
    assert onednn.conv_transpose((1, 1, 2), (1, 1, 3), stride=2, padding=((1, 0),)).output_sizes == (4,)


@pytest.mark.parametrize(
    ("op", "arguments", "says"),
    [
        ("max_pool", dict(dtype="float64"), "there is no rule for float64"),
        ("max_pool", dict(padding="same"), "no padding of that name"),
        ("avg_pool", dict(kernel=9), "the kernel is larger than the padded input"),
    ],
)
def test_what_it_refuses(op: str, arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(astride.ArgumentError, match=says):
        astride.plan(op, (1, 1, 8), rules="onednn", **{"kernel": 2, **arguments})
