"""JAX's rules as sizes, windows and plans, and the traps that concern them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tests.rules.geometry import ceiling, windows

import astride
from astride.like import jax as lax
from astride.plan.kinds import Edge, Tie
from astride.rules import jax

NAN, INF = np.nan, np.inf
X = np.array([1.0, 2]).reshape(1, 2, 1)


def gradient(x: Any, *arguments: Any) -> list[float]:
    y, pull = astride.vjp(lax.reduce_window, np.array(x, float), -INF, lax.max, *arguments)
    return [float(v) for v in pull(np.ones_like(y))[0].ravel()]


def test_sizes_follow_the_formulas() -> None:
    """Nothing is too small: an axis without a window is empty."""
    for n, k, s, d, b in itertools.product(range(6), range(1, 4), range(1, 4), range(1, 3), range(1, 3)):
        reach, stretched = (k - 1) * d + 1, (n - 1) * b + 1 if n else 0
        common: dict[str, Any] = dict(kernel=k, stride=s, dilation=d, base_dilation=b)
        for lo, hi in itertools.product(range(-1, 3), range(-1, 3)):
            out = jax.max_pool((1, 1, n), padding=((lo, hi),), **common).axes[0].out
            assert out == max(0, (stretched + lo + hi - reach) // s + 1)
        total = max((ceiling(n, s) - 1) * s + reach - n, 0)
        for word in ("same", "same_lower"):
            out = jax.max_pool((1, 1, n), padding=word, **common).axes[0].out
            assert out == max(0, (stretched + total - reach) // s + 1)


def test_the_odd_pixel_at_the_end_or_the_start() -> None:
    """T8."""
    x = np.arange(1.0, 7)
    assert lax.reduce_window(x, -INF, lax.max, (3,), (2,), "SAME").tolist() == [3, 5, 6]
    assert lax.reduce_window(x, -INF, lax.max, (3,), (2,), "SAME_LOWER").tolist() == [2, 4, 6]
    assert windows("max_pool", 4, rules="jax", kernel=2, stride=1, padding="same_lower") == [[-1, 0], [0, 1], [1, 2], [2, 3]]


def test_plans_take_padding_part_where_a_gradient_can_tell() -> None:
    plain = jax.max_pool((1, 1, 8), kernel=2)
    assert (plain.edge, plain.tie) == (Edge.SKIP, Tie.AFTER_NAN)
    padded = jax.max_pool((1, 1, 8), kernel=3, padding="same")
    assert (padded.edge, padded.edge_value) == (Edge.CONSTANT, -INF)
    assert jax.min_pool((1, 1, 8), kernel=3, stride=1, padding="same").edge_value == INF
    assert jax.max_pool((1, 1, 8), "int32", kernel=3, stride=1, padding="same").edge is Edge.SKIP


@pytest.mark.parametrize(
    ("x", "arguments", "expected"),
    [
        ([NAN, 1, 2, 3], ((4,),), [0, 0, 0, 1]),  # T26: on the 3, not the NaN
        ([1, 2, 3, NAN], ((4,),), [0, 0, 0, 1]),
        ([1, 1, 1, 1], ((4,),), [1, 0, 0, 0]),
        ([-INF] * 4, ((4,),), [1, 0, 0, 0]),
        ([1, 2, 3, NAN], ((3,), (3,), ((0, 2),)), [0, 0, 1, 0]),  # the padding behind the NaN takes its gradient
        ([-INF, -INF, 1, 2], ((3,), (3,), ((1, 1),)), [0, 0, 0, 1]),  # the padding in front is the first -inf
        ([NAN, 2, 3, 4], ((3,), (3,), ((2, 0),)), [1, 0, 0, 1]),
    ],
)
def test_where_the_gradient_of_a_maximum_goes(x: list[float], arguments: Any, expected: list[float]) -> None:
    assert gradient(x, *arguments) == expected


def test_windows_lie_along_any_axes(rng: np.random.Generator) -> None:
    x = rng.normal(size=(3, 4, 5, 6))
    for axes in itertools.combinations(range(4), 2):
        window = tuple(2 if a in axes else 1 for a in range(4))
        moved = np.moveaxis(x, axes, (2, 3))
        expected = np.moveaxis(astride.max_pool(np.ascontiguousarray(moved), kernel=2), (2, 3), axes)
        assert (lax.reduce_window(x, -INF, "max", window, window) == expected).all()
        assert astride.check_gradient(lax.reduce_window, x, -INF, lax.max, window, window)
    assert lax.reduce_window(x, 0, lax.add, (1, 1, 1, 1)).tolist() == x.tolist()
    assert lax.reduce_window(np.full(4, 100, np.int8), 0, lax.add, (2,)).tolist() == [-56] * 3  # wraps around
    assert lax.add(1, 2) == 3 and lax.max(1, 2) == 2 and lax.min(1, 2) == 1


@pytest.mark.parametrize(
    ("x", "start", "name", "expected"),
    [
        ([1.0, 0, 3], 2.0, "max", [2, 2, 3]),
        ([1.0, 0, 3], 0.5, "min", [0.5, 0, 0]),
        ([1.0, 0, 3], 7.0, "add", [8, 8, 10]),  # once, and nothing of the padding
        ([1.0, 0, 3], NAN, "max", [NAN, NAN, NAN]),
        ([1.0, 0, 3], INF, "max", [INF, INF, INF]),
        (np.array([1, 0, 3], np.int32), 7, "add", [8, 8, 10]),  # an int is 32 bits wide by default, 64 beside int64
        (np.array([1, 0, 3], np.int64), 7, "max", [7, 7, 7]),
        (np.array([127, 1, 1], np.int8), np.int8(1), "add", [-128, -127, 3]),  # wraps around
        (np.array([1, 0, 3], np.uint8), False, "max", [1, 1, 3]),  # an identity may be of any type
        (np.array([True, False, True]), False, "max", [True, True, True]),
        (np.array([True, False, True]), True, "max", [True, True, True]),
        (np.array([False, False, True]), -INF, "max", [False, False, True]),
        (np.array([True, False, True]), True, "min", [True, False, False]),
    ],
)
def test_any_start_takes_part_once_in_every_window(x: Any, start: Any, name: str, expected: list[Any]) -> None:
    y = lax.reduce_window(np.asarray(x), start, name, (2,), None, ((1, 0),))
    assert y.dtype == np.asarray(x).dtype
    assert np.array_equal(y, np.array(expected, y.dtype), equal_nan=y.dtype.kind == "f")


def test_windows_along_many_axes(rng: np.random.Generator) -> None:
    x = rng.integers(-9, 9, (3, 2, 4, 3, 2)).astype(float)
    window, strides, pads = (2, 1, 3, 2, 2), (1, 2, 1, 1, 1), ((1, 0), (0, 0), (1, 1), (0, 1), (0, 0))
    lowest = np.pad(x, pads, constant_values=-INF)
    every = np.lib.stride_tricks.sliding_window_view(lowest, window)[:, ::2]
    assert (lax.reduce_window(x, -INF, lax.max, window, strides, pads) == every.max((5, 6, 7, 8, 9))).all()
    sums = np.lib.stride_tricks.sliding_window_view(np.pad(x, pads), window)[:, ::2].sum((5, 6, 7, 8, 9))
    assert (lax.reduce_window(x, 0, lax.add, window, strides, pads) == sums).all()
    assert astride.check_gradient(lax.reduce_window, x, 0, lax.add, window, strides, pads)


def test_whole_numbers_wrap_around_and_bools_are_or_of_and() -> None:
    hundred = np.full((1, 1, 4), 100)
    for dtype, expected in (("int8", 48), ("uint8", 48), ("int16", 30000), ("int64", 30000)):
        y = lax.conv_general_dilated(hundred.astype(dtype), hundred[..., :3].astype(dtype), (1,), "VALID")
        assert (y.dtype, y.ravel().tolist()) == (np.dtype(dtype), [expected] * 2)
    bits = np.array([[[True, True, False, False]]])
    assert lax.conv_general_dilated(bits, bits[..., :2], (1,), "VALID").ravel().tolist() == [True, True, False]
    y, pull = astride.vjp(lax.conv_general_dilated, hundred, hundred, (1,), "VALID")
    assert pull(y)[:2] == (None, None)


def test_the_preferred_type_is_that_of_the_sums() -> None:
    x, w = np.full((1, 1, 3), 100, np.int8), np.full((1, 1, 3), 100, np.int8)
    for dtype, expected in (("int32", 30000), ("float16", 30000.0), (np.float64, 30000.0)):
        y = lax.conv_general_dilated(x, w, (1,), "VALID", preferred_element_type=dtype)
        assert (y.dtype, y.item()) == (np.dtype(dtype), expected)
    y = lax.conv_transpose(x.reshape(1, 3, 1), w.reshape(3, 1, 1), (1,), ((0, 0),), preferred_element_type="int16")
    assert (y.dtype, y.item()) == (np.int16, 30000)
    # the arrays themselves become float16 first, where 2049 is 2048
    one = lax.conv_general_dilated(
        np.array([[[2049, 1]]], np.int16),
        np.ones((1, 1, 2), np.int16),
        (1,),
        "VALID",
        precision="high",
        preferred_element_type="f2",
    )
    assert one.item() == 2048
    x32 = np.arange(4, dtype=np.float32).reshape(1, 1, 4)
    y, pull = astride.vjp(lax.conv_general_dilated, x32, x32[..., :2], (1,), "VALID", preferred_element_type="float64")
    dx, dw = pull(np.ones_like(y))[:2]
    assert (y.dtype, dx.dtype, dw.dtype) == (np.float64, np.float32, np.float32)
    assert (dx.ravel().tolist(), dw.ravel().tolist()) == ([0, 1, 1, 1], [3, 6])


def test_sums_and_averages() -> None:
    """POOL-11: flax divides by the whole window, TensorFlow by what is inside."""
    x = np.array([[1.0, 2], [3, 4]])
    assert lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), "SAME").tolist() == [[10, 6], [7, 4]]
    one = np.array([[[1.0, 2]]])
    assert astride.avg_pool(one, kernel=2, stride=1, padding="same", rules="jax").ravel().tolist() == [1.5, 1]
    counted = astride.avg_pool(one, kernel=2, stride=1, padding="same", count_include_pad=False, rules="jax")
    assert counted.ravel().tolist() == [1.5, 2]


@pytest.mark.parametrize(
    ("w", "strides", "padding", "turned", "expected"),
    [
        ([1, 10, 100], 2, "SAME", False, [100, 10, 201, 20]),
        ([1, 10, 100], 2, "SAME", True, [1, 10, 102, 20]),
        ([1, 10, 100], 2, "VALID", False, [100, 10, 201, 20, 2]),
        ([1, 10], 1, "SAME", False, [10, 21]),
        ([1, 10], 1, "SAME", True, [1, 12]),
        ([1, 10, 100, 1000], 2, "SAME", False, [100, 2010, 201, 20]),
        ([1, 10, 100, 1000], 2, "SAME", True, [10, 102, 1020, 200]),
        ([1, 10, 100], 2, ((1, 1),), False, [10, 201, 20]),
    ],
)
def test_transposed(w: list[float], strides: int, padding: Any, turned: bool, expected: list[float]) -> None:
    """T16, T18, T41."""
    y = lax.conv_transpose(X, np.array(w, float).reshape(-1, 1, 1), (strides,), padding, transpose_kernel=turned)
    assert y.ravel().tolist() == expected


def test_consistent_padding_crops_the_output() -> None:
    w = np.array([1.0, 10, 100]).reshape(3, 1, 1)
    whole = lax.conv_transpose(X, w, (2,), ((0, 0),), use_consistent_padding=True).ravel().tolist()
    assert lax.conv_transpose(X, w, (2,), ((1, 1),), use_consistent_padding=True).ravel().tolist() == whole[1:-1]


def test_layouts_are_spelled_out(rng: np.random.Generator) -> None:
    """T28, and any order of axes."""
    x, w = rng.normal(size=(2, 4, 6, 5)), rng.normal(size=(6, 2, 3, 2))
    plain = lax.conv_general_dilated(x, w, (1, 2), "SAME", feature_group_count=2)
    turned = lax.conv_general_dilated(
        x.transpose(3, 0, 2, 1), w.transpose(2, 3, 1, 0), (1, 2), "SAME", None, None, ("WNHC", "HWIO", "CWNH"), 2
    )
    assert np.allclose(turned.transpose(2, 0, 3, 1), plain)
    by_axes = lax.conv_general_dilated(x, w, (1, 2), "SAME", None, None, ((0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3)), 2)
    assert (by_axes == plain).all()
    assert astride.check_gradient(
        lax.conv_general_dilated, x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0), (1, 2), "SAME_LOWER", None, None,
        ("NHWC", "HWIO", "NHWC"), 2,
    )  # fmt: skip
    for word, expected in (("SAME", [21, 32, 43, 4]), ("SAME_LOWER", [10, 21, 32, 43])):
        y = lax.conv_general_dilated(np.arange(1.0, 5).reshape(1, 1, 4), np.array([[[1.0, 10]]]), (1,), word)
        assert y.ravel().tolist() == expected


ONE = np.arange(6.0)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: lax.reduce_window(ONE, 1, lax.max, (2,)), "a number of type float64, or the identity of max: int64"),
        (lambda: lax.reduce_window(ONE, np.float32(1), lax.add, (2,)), "or the identity of add: float32"),
        (lambda: lax.reduce_window(ONE.astype("uint8"), 7, lax.max, (2,)), "a number of type uint8"),
        (lambda: lax.reduce_window(ONE > 2, np.inf, lax.max, (2,)), "a number of type bool"),
        (lambda: lax.reduce_window(ONE > 2, False, lax.add, (2,)), "there is no rule for bool arrays"),
        (lambda: lax.reduce_window(ONE, 2**64, lax.add, (2,)), "init_value is one number"),
        (lambda: lax.reduce_window(ONE, None, lax.add, (2,)), "init_value is one number"),
        (lambda: astride.vjp(lax.reduce_window, ONE, 1.0, lax.add, (2,)), "another value than the identity of add"),
        (lambda: lax.reduce_window(ONE, [0.0], lax.add, (2,)), "init_value is one number"),
        (lambda: lax.reduce_window(ONE, 0.0, "mul", (2,)), "there is no such computation"),
        (lambda: lax.reduce_window(ONE, 0.0, lax.add, (2, 2)), "1 numbers, at least 1: 2"),
        (lambda: lax.reduce_window(ONE, 0.0, lax.add, (2,), (0,)), "window_strides >= 1: 0"),
        (lambda: lax.reduce_window(ONE, 0.0, lax.add, (2,), (1,), "FULL"), '"VALID", "SAME" or "SAME_LOWER"'),
        (lambda: lax.reduce_window(ONE, 0.0, lax.add, (2,), (1,), ((1, 1), (1, 1))), "1 pairs: 2"),
        (
            lambda: astride.vjp(lax.reduce_window, np.ones((2,) * 4), -INF, "max", (2,) * 4),
            "more than three axes has no gradient",
        ),
        (lambda: gradient(ONE, (2,), (1,), "VALID", None, (2,)), "no gradient of a maximum"),
        (lambda: gradient(ONE, (2,), (1,), ((-1, 0),)), "no gradient of a maximum"),
        (lambda: lax.conv_general_dilated(X, X, (1,), "SAME", (2,)), "a dilated input needs its padding in numbers"),
        (lambda: lax.conv_general_dilated(X, X[0], (1,), "SAME"), "lhs and rhs need one rank"),
        (lambda: lax.conv_general_dilated(X, X, (1,), "SAME", dimension_numbers=("NCH", "OIW", "NCH")), "do not agree"),
        (lambda: lax.conv_general_dilated(X, X, (1,), "SAME", dimension_numbers=("NCH", "OIH")), "dimension_numbers are three"),
        (lambda: lax.conv_general_dilated(X, X, (1,), ((1, 1), (0, 0))), "1 pairs: 2"),
        (lambda: lax.conv_transpose(X, X[:, :1], (1,), "SAME_LOWER"), "padding has no such value"),
        (lambda: lax.conv_general_dilated(X, X, (1,), "SAME", precision="tf32"), "there is no such precision"),
        (lambda: lax.conv_general_dilated(X, X, (1,), "SAME", precision=("high",)), "there is no such precision"),
        (lambda: lax.conv_transpose(X, X, (1,), "SAME", precision=1), "there is no such precision"),
        (lambda: lax.conv_general_dilated(X, X, (1,), "SAME", out_sharding="x"), "NumPy arrays are not sharded"),
        (lambda: lax.conv_general_dilated(X, X, (1,), "SAME", preferred_element_type="float32"), "one of float64"),
        (lambda: lax.conv_general_dilated(X, X, (1,), "SAME", preferred_element_type="real"), "no such preferred_element_type"),
        (lambda: jax.conv((1, 1, 4), (1, 1, 2), "int16", preferred_dtype="uint16"), "does not hold what the input's type does"),
        (lambda: jax.conv_transpose((1, 2, 4), (2, 1, 3), groups=2), "these rules have no groups"),
        (lambda: jax.conv((1, 1, 1), (1, 1, 1), padding=((-1, -1),)), "size + padding >= 0, on axis W: -1"),
    ],
)
def test_refusals(call: Any, says: str) -> None:
    with pytest.raises(astride.AstrideError) as raised:
        call()
    assert says in str(raised.value)
