"""TensorFlow's rules as sizes, windows and plans, and the traps that concern them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tests.rules.geometry import ceiling, size, size_or_none, windows

import astride
from astride.like import tensorflow as nn
from astride.plan.kinds import Divisor, IndexBase, Nan, Start, Tie
from astride.rules import tensorflow

NAN, INF, LOWEST = np.nan, np.inf, float(-np.finfo(np.float32).max)


def row(values: Any) -> Any:
    """One image of one row and one channel, channels last."""
    return np.array(values, np.float32).reshape(1, 1, -1, 1)


def gradient(fn: Any, x: Any, *arguments: Any, **keywords: Any) -> list[float]:
    y, pull = astride.vjp(fn, x, *arguments, **keywords)
    y = y[0] if isinstance(y, tuple) else y
    return [float(v) for v in pull(np.ones_like(y))[0].ravel()]


def test_sizes_follow_the_formulas() -> None:
    tried = 0
    for n, k, s in itertools.product(range(1, 12), range(1, 6), range(1, 5)):
        assert size("max_pool", n, rules="tensorflow", kernel=k, stride=s, padding="same") == ceiling(n, s)
        valid = ceiling(n - k + 1, s) if n >= k else None
        assert size_or_none("max_pool", n, rules="tensorflow", kernel=k, stride=s) == valid
        for lo, hi in itertools.product(range(k), range(k)):
            expected: int | None = (n + lo + hi - k) // s + 1
            got = size_or_none("max_pool", n, rules="tensorflow", kernel=k, stride=s, padding=((lo, hi),))
            assert got == (expected if expected >= 1 else None), (n, k, s, lo, hi)
            tried += 1
    assert tried > 1000


def test_same_puts_the_odd_pixel_at_the_end() -> None:
    """T8, T29, CONV-07: a stride-2 window over even sizes pads behind, where padding=1 would pad in front."""
    assert windows("max_pool", 6, rules="tensorflow", kernel=3, stride=2, padding="same") == [[0, 1, 2], [2, 3, 4], [4, 5, 6]]
    assert nn.max_pool2d(row(range(1, 7)), [1, 3], [1, 2], "SAME").ravel().tolist() == [3, 5, 6]
    axis = tensorflow.conv((1, 3, 224, 224), (8, 3, 3, 3), stride=2, padding="same").axes[0]
    assert (axis.pad_lo, axis.pad_hi, axis.out) == (0, 1, 112)


def test_same_never_pads_a_negative_amount() -> None:
    """The windows of a stride larger than the kernel begin at the first pixel (TensorFlow's float64 3-D kernels err here)."""
    assert windows("max_pool", 7, rules="tensorflow", kernel=1, stride=3, padding="same") == [[0], [3], [6]]


def test_what_plans_say() -> None:
    two = tensorflow.max_pool((1, 1, 8, 8), kernel=2)
    assert (two.start, two.nan, two.tie, two.index_base) == (Start.FINITE, Nan.COMPARED, Tie.LEADING_NAN, IndexBase.IMAGE)
    assert tensorflow.max_pool((1, 1, 8), kernel=2).tie is Tie.LEADING_NAN
    assert tensorflow.max_pool((1, 1, 8, 8, 8), kernel=2).tie is Tie.NEAR
    argmax = tensorflow.max_pool((1, 1, 8, 8), kernel=2, with_argmax=True, include_batch_in_index=True)
    assert (argmax.start, argmax.tie, argmax.index_base) == (Start.FIRST_TAP, Tie.FIRST, IndexBase.TENSOR)
    assert tensorflow.avg_pool((1, 1, 8), kernel=2).divisor is Divisor.VALID


@pytest.mark.parametrize(
    ("values", "value", "picked"),
    [([NAN, 1, 2, 3], 3, 0), ([1, 2, 3, NAN], 3, 2), ([1, NAN, NAN, 0], 1, 0), ([-INF] * 4, LOWEST, 0), ([1] * 4, 1, 0)],
)
def test_the_gradient_of_a_maximum_is_not_where_its_value_came_from(values: list[float], value: float, picked: int) -> None:
    """T10, T11, T12, T24: forward never sees a NaN, the gradient goes to one that stands first."""
    x = row(values)
    assert nn.max_pool2d(x, [1, 4], 1, "VALID").item() == np.float32(value)
    assert gradient(nn.max_pool2d, x, [1, 4], 1, "VALID") == [float(i == picked) for i in range(4)]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 1, 1, 1], [1, 1, 1, 1]),
        ([NAN, 1, 2, 3], [0, 0, 0, 1]),
        ([-INF] * 4, [0, 0, 0, 0]),
        ([0, 9e-6, 0, -1], [1, 1, 1, 0]),
        ([0, 2e-5, 0, -1], [0, 1, 0, 0]),
        ([INF, 1, INF, 1], [0, 0, 0, 0]),
    ],
)
def test_in_three_axes_all_that_come_near_have_the_whole_gradient(values: list[float], expected: list[float]) -> None:
    """T12, T25, and that "equal" is less than 1e-5 apart there, which infinities never are."""
    assert gradient(nn.max_pool3d, row(values)[None], [1, 1, 4], 1, "VALID") == expected


def test_argmax_counts_in_its_own_layout() -> None:
    """T21: over one image, channels included; or over the batch."""
    x = np.arange(16, dtype="float32").reshape(2, 2, 2, 2)
    for batch, expected in ((False, [6, 7, 6, 7]), (True, [6, 7, 14, 15])):
        _, indices = nn.max_pool_with_argmax(x, 2, 2, "VALID", include_batch_in_index=batch)
        assert indices.ravel().tolist() == expected and indices.dtype == np.int64
    assert nn.max_pool_with_argmax(x, 2, 2, "VALID", output_dtype="int32")[1].dtype == np.int32
    assert np.isnan(nn.max_pool_with_argmax(row([NAN, 1]), [1, 2], 1, "VALID")[0]).all()


def test_averages_divide_by_what_is_there() -> None:
    """T34, CAF-11."""
    x = row([1, 2, 3, 4, 5])
    assert nn.avg_pool2d(x, [1, 3], [1, 2], "SAME").ravel().tolist() == [1.5, 3, 4.5]
    assert np.round(gradient(nn.avg_pool2d, x, [1, 3], [1, 2], "SAME"), 4).tolist() == [0.5, 0.8333, 0.3333, 0.8333, 0.5]
    assert (nn.avg_pool2d(np.ones((1, 5, 5, 1)), 3, 1, "SAME") == 1).all()


def test_erosion_by_a_flat_filter_is_the_least_tap() -> None:
    x = row([3, 1, 2, NAN, 5])
    options = dict(strides=[1, 1, 1, 1], padding="VALID", data_format="NHWC", dilations=[1, 1, 1, 1])
    assert nn.erosion2d(x, np.zeros((1, 2, 1), np.float32), **options).ravel().tolist() == [1, 1, 2, 5]
    with pytest.raises(astride.UnsupportedError, match="only flat filters"):
        nn.erosion2d(x, np.ones((1, 2, 1), np.float32), **options)


@pytest.mark.parametrize(
    ("w", "strides", "size", "padding", "expected"),
    [
        ([1, 10, 100], 2, 5, "VALID", [1, 10, 102, 20, 200]),
        ([1, 10, 100], 2, 4, "SAME", [1, 10, 102, 20]),
        ([1, 10, 100], 2, 3, "SAME", [10, 102, 20]),
        ([1, 10], 1, 2, "SAME", [1, 12]),
        ([1, 10, 100, 1000], 2, 4, "SAME", [10, 102, 1020, 200]),
    ],
)
def test_transposed(w: list[float], strides: int, size: int, padding: str, expected: list[float]) -> None:
    """T16, T18."""
    x, filters = np.array([1.0, 2]).reshape(1, 2, 1), np.array(w, float).reshape(-1, 1, 1)
    assert nn.conv1d_transpose(x, filters, [1, size, 1], strides, padding).ravel().tolist() == expected


def test_an_output_size_is_one_that_a_convolution_takes_back() -> None:
    for n, k, s, L in itertools.product(range(1, 4), range(1, 5), range(1, 4), range(1, 14)):
        for padding, forward in (("same", ceiling(L, s)), ("valid", ceiling(L - k + 1, s))):
            good = forward == n and (padding == "same" or k <= L)
            arguments: dict[str, Any] = dict(stride=s, padding=padding, output_size=L)
            if good:
                plan = tensorflow.conv_transpose((1, 1, n), (1, 1, k), **arguments)
                assert plan.output_shape((1, 1, n), (1, 1, k), None) == (1, 1, L)
            else:
                with pytest.raises(astride.ArgumentError):
                    tensorflow.conv_transpose((1, 1, n), (1, 1, k), **arguments)


def test_groups_follow_from_the_filters() -> None:
    x, w = np.ones((1, 5, 4)), np.ones((3, 2, 6))
    assert nn.conv1d(x, w, 1, "SAME").shape == (1, 5, 6)
    depth = np.arange(12.0).reshape(1, 1, 3, 4)
    y = nn.depthwise_conv2d(np.ones((1, 1, 1, 3)), depth, [1, 1, 1, 1], "VALID")
    assert y.ravel().tolist() == list(range(12))  # channel c * multiplier + m


def test_gradients_return_in_the_layouts_of_the_arrays(rng: np.random.Generator) -> None:
    for fn, shape, w_shape, arguments in (
        (nn.conv2d, (2, 5, 4, 2), (3, 2, 2, 3), (1, "SAME")),
        (nn.depthwise_conv2d, (2, 5, 4, 2), (3, 2, 2, 3), ([1, 1, 1, 1], "SAME")),
        (nn.conv2d_transpose, (2, 5, 4, 2), (3, 2, 3, 2), ([2, 10, 8, 3], 2)),
    ):
        assert astride.check_gradient(fn, rng.normal(size=shape), rng.normal(size=w_shape), *arguments)
    assert astride.check_gradient(nn.max_pool2d, rng.normal(size=(1, 2, 5, 5)), 2, 2, "SAME", data_format="NCHW")


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: nn.max_pool2d(row([1, 2]), 3, 1, "VALID"), "the kernel is larger than the padded input"),  # T45: SIGFPE there
        (lambda: nn.max_pool2d(row([1, 2]), 1, 1, "same"), 'required  "VALID" or "SAME"'),
        (lambda: nn.max_pool2d(row([1, 2]), [1, 1, 1, 2], 1, "SAME"), "ksize moves along the batch or the channels"),
        (lambda: nn.max_pool2d(row([1, 2]), [1, 2, 1], 1, "SAME"), "ksize has the wrong length"),
        (lambda: nn.max_pool2d(row([1, 2]), 2, 0, "SAME"), "stride >= 1: 0"),
        (lambda: nn.max_pool2d(row([1, 2]), 2, 1, [[0, 0], [2, 0], [0, 0], [0, 0]]), "padding < kernel, on axis H: 2 < 2"),
        (lambda: nn.max_pool2d(row([1, 2]), 2, 1, [[1, 0], [0, 0], [0, 0], [0, 0]]), "[0, 0] for batch and channels"),
        (lambda: nn.max_pool2d(row([1, 2]), 2, 1, "SAME", "NCW"), "there is no such data_format"),
        (lambda: nn.avg_pool2d(row([1, 2]), 2, 1, [[0, 0], [1, 1], [1, 1], [0, 0]]), "takes no explicit padding"),
        (lambda: nn.max_pool3d(row([1, 2])[None], 2, 1, [[0, 0]] * 5), "takes no explicit padding"),
        (lambda: nn.max_pool_with_argmax(row([1, 2]), 2, 1, "SAME", "NCHW"), "has one layout"),
        (lambda: nn.avg_pool2d(np.ones((1, 2, 2, 1), np.int32), 1, 1, "SAME"), "there is no rule for int32 arrays"),
        (lambda: nn.conv3d(np.ones((1, 3, 3, 3, 4)), np.ones((1, 1, 1, 2, 2)), 1, "SAME"), "filters do not fit input"),
        (lambda: nn.conv1d(np.ones((1, 3, 3)), np.ones((1, 2, 2)), 1, "SAME"), "filters do not fit input"),
        (lambda: nn.conv1d_transpose(np.ones((1, 2, 1)), np.ones((3, 1, 1)), [1, 6, 1], 2), "takes output_size to this input"),
        (lambda: nn.conv1d_transpose(np.ones((1, 2, 1)), np.ones((3, 1, 1)), [2, 4, 1], 2), "output_shape does not fit"),
    ],
)
def test_refusals(call: Any, says: str) -> None:
    with pytest.raises(astride.AstrideError) as raised:
        call()
    assert says in str(raised.value)
