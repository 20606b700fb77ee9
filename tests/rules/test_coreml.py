"""Core ML's rules: shapes and refusals as coremltools infers them. Values could not be run anywhere."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tests.rules.geometry import ceiling, size, size_or_none, windows

import astride
from astride.like import coreml as mil
from astride.plan.kinds import Divisor
from astride.rules import coreml


def test_sizes_follow_the_formulas() -> None:
    for n, k, s, p, ceil in itertools.product(range(1, 9), range(1, 5), range(1, 4), range(3), (False, True)):
        expected: int | None = (n + 2 * p - k + (s - 1 if ceil else 0)) // s + 1
        if ceil and p and (expected - 1) * s >= n + p:
            expected -= 1
        got = size_or_none("max_pool", n, rules="coreml", kernel=k, stride=s, padding=((p, p),), ceil_mode=ceil)
        assert got == (expected if expected >= 1 else None), (n, k, s, p, ceil)
        assert size("max_pool", n, rules="coreml", kernel=k, stride=s, padding="same") == ceiling(n, s)


def test_an_unpadded_ceil_keeps_the_window_pytorch_drops() -> None:
    """T46: MIL's text says "same as PyTorch's"."""
    assert size("max_pool", 6, rules="coreml", kernel=1, stride=2, ceil_mode=True) == 4
    assert size("max_pool", 6, rules="pytorch", kernel=1, stride=2, ceil_mode=True) == 3


def test_the_last_pixel_is_caffes_rounding() -> None:
    """CAF-13, and on all axes where one is padded."""
    assert size("max_pool", 7, rules="coreml", kernel=7, stride=7, include_last_pixel=True) == 1
    for n, k, s, p in itertools.product(range(1, 9), range(1, 4), range(1, 4), range(2)):
        theirs = size_or_none("avg_pool", n, rules="caffe", kernel=k, stride=s, padding=p) if p < k else None
        if theirs is not None:
            assert size("avg_pool", n, rules="coreml", kernel=k, stride=s, padding=p, include_last_pixel=True) == theirs
    two = coreml.avg_pool((1, 1, 6, 6), kernel=(1, 3), stride=2, padding=(0, 1), include_last_pixel=True)
    assert [axis.out for axis in two.axes] == [3, 4] and two.divisor is Divisor.CAFFE


def test_the_heavy_side() -> None:
    assert windows("max_pool", 4, rules="coreml", kernel=2, stride=1, padding="same")[0] == [0, 1]
    assert windows("max_pool", 4, rules="coreml", kernel=2, stride=1, padding="same_lower")[0] == [-1, 0]


def test_the_overhang_counts_in_an_average() -> None:
    """POOL-09: a corner of 48 is 12 by this rule, where PyTorch divides by the one tap inside."""
    x = np.arange(49.0).reshape(1, 1, 7, 7)
    window = dict(kernel_sizes=[2, 2], strides=[3, 3], pad_type="valid", ceil_mode=True)
    assert mil.avg_pool(x, **window)[0, 0].tolist() == [[4, 7, 4.75], [25, 28, 15.25], [21.25, 22.75, 12]]
    right = mil.avg_pool(x, exclude_padding_from_average=True, **window)
    assert right[0, 0].tolist() == [[4, 7, 9.5], [25, 28, 30.5], [42.5, 45.5, 48]]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (dict(pad_type="valid"), [1, 10, 102, 20, 200]),
        (dict(pad_type="same"), [1, 10, 102, 20]),
        (dict(pad_type="custom", pad=[1, 1]), [10, 102, 20]),
        (dict(pad_type="custom", pad=[1, 1], output_shape=[1, 1, 4]), [10, 102, 20, 200]),
    ],
)
def test_transposed(options: dict[str, Any], expected: list[float]) -> None:
    """T16's numbers; where `output_shape` puts them is unverified."""
    y = mil.conv_transpose(np.array([[[1.0, 2]]]), np.array([[[1.0, 10, 100]]]), strides=[2], **options)
    assert y.ravel().tolist() == expected


def test_strides_default_to_one(rng: np.random.Generator) -> None:
    x = rng.normal(size=(1, 2, 6, 6))
    assert mil.max_pool(x, kernel_sizes=[2, 2], pad_type="valid").shape == (1, 2, 5, 5)
    assert np.allclose(mil.l2_pool(np.array([[[3.0, 4]]]), kernel_sizes=[2], pad_type="valid"), 5)
    assert astride.check_gradient(mil.l2_pool, x, kernel_sizes=[2, 2], pad_type="same")
    assert astride.check_gradient(mil.conv, x, rng.normal(size=(4, 1, 3, 3)), pad_type="same", groups=2)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda x: mil.max_pool(x, kernel_sizes=[2], pad_type="same", ceil_mode=True), 'ceil_mode excludes padding "same"'),
        (
            lambda x: mil.max_pool(x, kernel_sizes=[2], pad_type="custom", pad=[0, 1], ceil_mode=True),
            "low == high, on axis W: 0 == 1",
        ),
        (lambda x: mil.max_pool(x, kernel_sizes=[2], pad_type="custom"), "`pad` goes with pad_type"),
        (lambda x: mil.max_pool(x, kernel_sizes=[2], pad_type="valid", pad=[1, 1]), "`pad` goes with pad_type"),
        (lambda x: mil.max_pool(x, kernel_sizes=[2], pad_type="custom", pad=[1]), "pad has an odd length"),
        (lambda x: mil.max_pool(x, kernel_sizes=[2], pad_type="full"), "padding has no such value"),
        (lambda x: mil.max_pool(x, kernel_sizes=[9], pad_type="valid"), "the kernel is larger than the padded input"),
        (lambda x: coreml.max_pool((1, 1, 5, 5, 5), kernel=2, ceil_mode=True), "ceil_mode is for one or two spatial axes"),
        (lambda x: coreml.lp_pool((1, 1, 5, 5, 5), kernel=2), "l2_pool has one or two spatial axes"),
        (lambda x: coreml.lp_pool((1, 1, 5), kernel=2, p=1), "Core ML has the 2-norm only"),
        (lambda x: mil.conv_transpose(x, np.ones((1, 1, 3)), output_shape=[1, 2, 4]), "output_shape does not fit"),
        (lambda x: mil.max_pool(x.astype("int32"), kernel_sizes=[2], pad_type="valid"), "there is no rule for int32 arrays"),
    ],
)
def test_refusals(call: Any, says: str) -> None:
    with pytest.raises(astride.AstrideError) as raised:
        call(np.ones((1, 1, 5)))
    assert says in str(raised.value)
