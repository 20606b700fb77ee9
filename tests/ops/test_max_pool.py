"""Max pooling on grids a person can check."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.compare import assert_near, assert_same

import astride
from astride.like import pytorch as F

LOWEST = -3.4028234663852886e38
NAN = np.nan


def plane(rows: Any, dtype: str = "float32") -> Any:
    """One image of one channel."""
    return np.array(rows, dtype)[None, None]


def gradient(x: Any, **arguments: Any) -> Any:
    """The gradient of the sum of the result, without image and channel axes."""
    y, pull = astride.vjp(astride.max_pool, x, **arguments)
    dx = pull(np.ones_like(y))[0]
    assert dx is not None
    return dx[0, 0].tolist()


GRID = plane([[1, 2, 3, 4], [8, 7, 6, 5], [9, 1, 0, 2], [3, 4, 4, 1]])


def test_two_by_two() -> None:
    #  1 2 | 3 4
    #  8 7 | 6 5      8 6
    #  ----+----  ->
    #  9 1 | 0 2      9 4
    #  3 4 | 4 1
    y, indices = astride.max_pool(GRID, kernel=2, return_indices=True)
    assert y[0, 0].tolist() == [[8, 6], [9, 4]]
    assert indices[0, 0].tolist() == [[4, 6], [8, 14]]
    assert indices.dtype == np.int64
    assert gradient(GRID, kernel=2) == [[0, 0, 0, 0], [1, 0, 1, 0], [1, 0, 0, 0], [0, 0, 1, 0]]


def test_overlapping_windows_add_up() -> None:
    x = plane([[1, 2, 3], [4, 9, 5], [6, 7, 8]])
    assert gradient(x, kernel=2, stride=1) == [[0, 0, 0], [0, 4, 0], [0, 0, 0]]


def test_the_gradient_sums_to_the_number_of_outputs() -> None:
    x = plane(np.ones((10, 10)))
    assert np.sum(gradient(x, kernel=3, stride=2, padding=0, rules="caffe")) == 25
    assert np.sum(gradient(x, kernel=3, stride=2)) == 16


# Ties

TIED = plane([[2, 2], [1, 2]])


@pytest.mark.parametrize(
    ("tie", "expected"),
    [
        ("first", [[1, 0], [0, 0]]),
        ("last", [[0, 0], [0, 1]]),
        ("all_full", [[1, 1], [0, 1]]),
        ("equal_share", [[1 / 3, 1 / 3], [0, 1 / 3]]),
        ("recorded", [[1, 1], [0, 1]]),
    ],
)
def test_ties(tie: str, expected: Any) -> None:
    assert_near(gradient(TIED, kernel=2, tie=tie), expected, 1e-6)


@pytest.mark.parametrize(
    ("rules", "extra", "expected"),
    [
        ("caffe", {}, [[1, 0], [0, 0]]),
        ("pytorch", {}, [[1, 0], [0, 0]]),
        ("mps", {"padding": "valid"}, [[1, 0], [0, 0]]),
        ("numpy_loops", {}, [[1, 1], [0, 1]]),
        ("numpy_loops", {"gradient": "argmax"}, [[1, 0], [0, 0]]),
        ("numpy_loops", {"gradient": "share"}, [[1 / 3, 1 / 3], [0, 1 / 3]]),
    ],
)
def test_ties_by_framework(rules: str, extra: dict[str, Any], expected: Any) -> None:
    assert_near(gradient(TIED, kernel=2, rules=rules, **extra), expected, 1e-6)


def test_near_ties_are_no_ties() -> None:
    """Compared exactly: a gap of a thousandth leaves one winner."""
    x = plane([[1.0, 1.001], [0.5, 1.0]])
    for tie in ("all_full", "equal_share"):
        assert gradient(x, kernel=2, tie=tie) == [[0, 1], [0, 0]]


def test_shared_ties_of_overlapping_windows() -> None:
    #  2 2 2: the windows [2 2] and [2 2] give every tap a half
    assert gradient(np.full((1, 1, 3), 2.0), kernel=2, stride=1, tie="equal_share") == [0.5, 1, 0.5]


# NaN and infinities: one window [a b / c d]


@pytest.mark.parametrize(
    ("rules", "window", "y", "index"),
    [
        ("caffe", [[NAN, 1], [2, 3]], 3, 3),
        ("caffe", [[1, 2], [3, NAN]], 3, 2),
        ("caffe", [[1, NAN], [NAN, 0]], 1, 0),
        ("caffe", [[NAN, NAN], [NAN, NAN]], LOWEST, -1),
        ("caffe", [[-np.inf] * 2] * 2, LOWEST, -1),
        ("pytorch", [[NAN, 1], [2, 3]], NAN, 0),
        ("pytorch", [[1, 2], [3, NAN]], NAN, 3),
        ("pytorch", [[1, NAN], [NAN, 3]], NAN, 2),
        ("pytorch", [[NAN, NAN], [NAN, NAN]], NAN, 3),
        ("pytorch", [[-np.inf] * 2] * 2, -np.inf, 0),
    ],
)
def test_not_numbers(rules: str, window: Any, y: float, index: int) -> None:
    got, indices = astride.max_pool(plane(window), kernel=2, rules=rules, return_indices=True)
    assert_near(got.reshape(-1), [y], 0.0)
    assert indices.item() == index


@pytest.mark.parametrize(
    ("tie", "window", "expected"),
    [
        ("first_nan", [[1, NAN], [NAN, 3]], [[0, 1], [0, 0]]),  # NumPy's argmax, Chainer
        ("last_nan", [[1, NAN], [NAN, 3]], [[0, 0], [1, 0]]),  # PyTorch
        ("leading_nan", [[NAN, 1], [2, 3]], [[1, 0], [0, 0]]),  # TensorFlow: forward 3, gradient to the NaN
        ("leading_nan", [[1, 2], [3, NAN]], [[0, 0], [1, 0]]),
        ("after_nan", [[NAN, 1], [2, 3]], [[0, 0], [0, 1]]),  # JAX: y NaN, gradient to the 3
        ("after_nan", [[3, NAN], [1, 2]], [[0, 0], [0, 1]]),
        ("after_nan", [[1, 2], [3, NAN]], [[0, 0], [0, 1]]),
        ("all_full", [[NAN, 1], [2, 3]], [[0, 0], [0, 0]]),  # nothing equals NaN
        ("equal_share", [[NAN, 1], [2, 3]], [[NAN, NAN], [NAN, NAN]]),  # 0 / 0
    ],
)
def test_where_the_gradient_of_a_window_with_nan_goes(tie: str, window: Any, expected: Any) -> None:
    assert_near(gradient(plane(window), kernel=2, tie=tie), expected, 0.0)


def test_a_window_that_beat_nothing_sends_nothing_back() -> None:
    """Trap T4: Caffe itself writes before the plane, onto the previous channel; here channel 0 gets its own only."""
    x = np.array([[[[1, 2], [3, 4]], [[NAN, NAN], [NAN, NAN]]]], "float32")
    y, pull = astride.vjp(astride.max_pool, x, kernel=2, rules="caffe")
    assert_near(y.reshape(-1), [4, LOWEST], 0.0)
    assert pull(np.ones_like(y))[0].tolist() == [[[[0, 0], [0, 1]], [[0, 0], [0, 0]]]]


def test_recorded_ties_need_the_recorded_value() -> None:
    """Trap T25: all -inf recorded as the lowest finite value, which no tap equals."""
    assert gradient(plane([[-np.inf] * 2] * 2), kernel=2, start="finite", nan="compared", tie="recorded") == [[0, 0], [0, 0]]


# Edges


def test_ceil_windows_behind_the_input() -> None:
    """Trap T1, one row of a 1..6 plane."""
    row = np.arange(1, 7, dtype="float32")[None, None]
    assert F.max_pool1d(row, 1, 2, ceil_mode=True).tolist() == [[[1, 3, 5]]]
    assert_near(astride.max_pool(row, kernel=1, stride=2, rules="caffe")[0, 0], [1, 3, 5, LOWEST], 0.0)
    never: dict[str, Any] = dict(kernel=1, stride=2, rounding="ceil", clip="never")
    assert astride.max_pool(row, **never)[0, 0].tolist() == [1, 3, 5, -np.inf]
    assert astride.max_pool(row, **never, empty="zero")[0, 0].tolist() == [1, 3, 5, 0]


def test_a_six_by_seven_plane_of_single_taps() -> None:
    """PyTorch gives 3x4; Caffe, which clips padded windows only, a fourth row of the lowest value."""
    x = plane(np.arange(42).reshape(6, 7))
    assert F.max_pool2d(x, 1, 2, ceil_mode=True).shape == (1, 1, 3, 4)
    y = astride.max_pool(x, kernel=1, stride=2, rules="caffe")
    assert y.shape == (1, 1, 4, 4) and (y[0, 0, 3] == np.float32(LOWEST)).all()


def test_the_padding_clip() -> None:
    """Trap T6: n=5, k=2, s=2, p=1."""
    x = np.arange(1, 6, dtype="float32")[None, None]
    for rules in ("caffe", "pytorch"):
        extra = {"ceil_mode": True} if rules == "pytorch" else {}
        y, indices = astride.max_pool(x, kernel=2, stride=2, padding=1, rules=rules, return_indices=True, **extra)
        assert (y.tolist(), indices.tolist()) == ([[[1, 3, 5]]], [[[0, 2, 4]]])


def test_same_on_even_remainders() -> None:
    """Trap T8: TensorFlow's SAME pads the end, PyTorch's p=1 shifts by a pixel."""
    x = np.arange(1, 7, dtype="float32")[None, None]
    assert astride.max_pool(x, kernel=3, stride=2, padding="same").tolist() == [[[3, 5, 6]]]
    assert astride.max_pool(x, kernel=3, stride=2, padding="same_lower").tolist() == [[[2, 4, 6]]]
    assert F.max_pool1d(x, 3, 2, 1).tolist() == [[[2, 4, 6]]]


def test_padding_never_wins() -> None:
    x = plane(-np.arange(1.0, 10).reshape(3, 3))
    for padding in (((2, 0), (2, 0)), 1):
        assert astride.max_pool(x, kernel=3, stride=1, padding=padding).max() == -1


def test_mps_zeros_outside_do() -> None:
    """Trap T39: -1..-5, k=2, s=2."""
    x = -np.arange(1, 6, dtype="float32")[None, None]
    assert astride.max_pool(x, kernel=2, stride=2, rules="mps").tolist() == [[[0, -2, -4]]]
    assert astride.max_pool(x, kernel=2, stride=2, rules="mps", edge="clamp").tolist() == [[[-1, -2, -4]]]
    assert astride.max_pool(x, kernel=2, stride=2, rules="mps", remainder="bottom_right", edge="clamp").tolist() == [
        [[-1, -3, -5]]
    ]


@pytest.mark.parametrize(
    ("edge", "expected"),
    [
        ("skip", [3, 3, 5, 5, 5, 2]),
        ("constant", [9, 9, 5, 5, 9, 9]),
        ("clamp", [3, 3, 5, 5, 5, 2]),  # reads 3 3 | 3 1 5 2 | 2 2
        ("mirror", [5, 3, 5, 5, 5, 5]),  # reads 5 1 | 3 1 5 2 | 5 1
        ("mirror_edge", [3, 3, 5, 5, 5, 5]),  # reads 1 3 | 3 1 5 2 | 2 5
        ("wrap", [5, 3, 5, 5, 5, 3]),  # reads 5 2 | 3 1 5 2 | 3 1
    ],
)
def test_what_taps_outside_read(edge: str, expected: list[float]) -> None:
    x = np.array([[[3.0, 1, 5, 2]]])
    assert astride.max_pool(x, kernel=3, stride=1, padding=2, edge=edge, edge_value=9.0)[0, 0].tolist() == expected


def test_dilation_and_ceil() -> None:
    """Trap T38: K = 4, three windows, the third with one real tap."""
    x = np.arange(1, 8, dtype="float32")[None, None]
    y, indices = F.max_pool1d(x, 2, 2, dilation=3, ceil_mode=True, return_indices=True)
    assert (y.tolist(), indices.tolist()) == ([[[4, 6, 5]]], [[[3, 5, 4]]])


def test_a_huge_dilation_of_one_tap_is_none() -> None:
    x = np.arange(8.0)[None, None]
    assert_same(astride.max_pool(x, kernel=1, dilation=2**31 - 1), astride.max_pool(x, kernel=1))


def test_negative_pads_crop() -> None:
    x = np.array([[[9.0, 1, 2, 3]]])
    assert astride.max_pool(x, kernel=2, stride=1, padding=((-1, 0),)).tolist() == [[[2, 3]]]


# Indices

EIGHT = np.arange(16, dtype="float32").reshape(2, 2, 2, 2)


def test_index_bases() -> None:
    """Trap T21: 0..15 as 2x2x2x2, one window per plane."""
    bases = {
        base: astride.max_pool(EIGHT, kernel=2, return_indices=True, index_base=base)[1].reshape(-1).tolist()
        for base in ("plane", "tensor", "window")
    }
    assert bases == {"plane": [3, 3, 3, 3], "tensor": [3, 7, 11, 15], "window": [3, 3, 3, 3]}
    last = astride.max_pool(EIGHT, kernel=2, layout="NHWC", return_indices=True, index_base="tensor")[1]
    assert last.reshape(-1).tolist() == [6, 7, 14, 15]


def test_indices_with_padding() -> None:
    """Trap T23: flat in the unpadded plane, or in the window with its padding counted."""
    x = plane([[5, 1], [2, 3]])
    arguments: dict[str, Any] = dict(kernel=2, stride=1, padding=1, return_indices=True)
    _, indices = astride.max_pool(x, rules="pytorch", **arguments)
    assert indices[0, 0].tolist() == [[0, 0, 1], [0, 0, 3], [2, 3, 3]]
    _, indices = astride.max_pool(x, index_base="window", **arguments)
    assert indices[0, 0].tolist() == [[3, 2, 2], [1, 0, 2], [1, 1, 0]]


def test_indices_find_their_values() -> None:
    """In every layout and rank, with dilation and padding: x[indices] is y."""
    rng = np.random.default_rng(7)
    for rank in (1, 2, 3):
        x = rng.permutation(2 * 3 * 7**rank).reshape(2, 3, *(7,) * rank).astype("float64")
        y, indices = astride.max_pool(x, kernel=3, stride=2, padding=1, dilation=2, return_indices=True)
        flat = np.take_along_axis(x.reshape(2, 3, -1), indices.reshape(2, 3, -1), 2)
        assert_same(flat.reshape(y.shape), y)
        last = np.moveaxis(x, 1, -1)
        y_last, indices_last = astride.max_pool(
            last, kernel=3, stride=2, padding=1, dilation=2, return_indices=True, layout="channels_last"
        )
        assert_same(np.moveaxis(y_last, -1, 1).copy(), y)
        assert_same(np.moveaxis(indices_last, -1, 1).copy(), indices)


def test_rules_that_share_have_no_index() -> None:
    with pytest.raises(astride.ArgumentError, match="pick no single tap"):
        astride.max_pool(TIED, kernel=2, rules="numpy_loops", return_indices=True)


def test_the_record_is_one_byte_an_output() -> None:
    from astride import dispatch

    for kernel, itemsize in ((15, 1), (16, 2)):
        plan = astride.plan("max_pool", (1, 1, 64, 64), kernel=kernel)
        y, saved = dispatch.forward(plan, np.zeros((1, 1, 64, 64), "float32"), save=True)
        assert saved is not None and saved.offsets is not None
        assert (saved.offsets.nbytes, saved.x, saved.y) == (itemsize * y.size, None, None)


# Types


def test_integers_keep_their_type_and_lowest_value() -> None:
    x = np.full((1, 1, 2, 2), -128, "int8")
    y, indices = F.max_pool2d(x, 2, return_indices=True)
    assert (y.dtype, y.item(), indices.item()) == (np.int8, -128, 0)
    assert astride.max_pool(np.array([[[0, 255, 7]]], "uint8"), kernel=3).item() == 255


def test_nested_lists_are_arrays() -> None:
    assert astride.max_pool([[[1.0, 5.0, 2.0]]], kernel=3).tolist() == [[[5.0]]]


def test_unbatched_input_where_the_framework_has_it() -> None:
    x = GRID[0]
    y, indices = F.max_pool2d(x, 2, return_indices=True)
    assert y.tolist() == [[[8, 6], [9, 4]]] and indices.tolist() == [[[4, 6], [8, 14]]]
    _, pull = astride.vjp(F.max_pool2d, x, 2)
    dx = pull(np.ones((1, 2, 2), "float32"))[0]
    assert dx is not None and dx.shape == x.shape and dx.sum() == 4
    with pytest.raises(astride.ArgumentError, match="wrong rank"):
        F.max_pool2d(x[0], 2)


def test_a_masked_array_is_refused() -> None:
    with pytest.raises(astride.ArrayError, match="x is masked") as caught:
        astride.max_pool(np.ma.masked_greater(np.ones((1, 1, 4)), 0), kernel=2)
    assert caught.value.hint == "x.filled(0), or another value"


def test_a_backend_has_a_name() -> None:
    with pytest.raises(astride.ArgumentError, match="a backend is chosen by its name"):
        astride.max_pool(np.ones((1, 1, 4)), kernel=2, backend=3)  # type: ignore[arg-type]


def test_by_default_a_nan_takes_the_gradient_it_caused() -> None:
    x = np.array([[[np.nan, 1.0, np.nan, 2.0]]])
    y, pull = astride.vjp(astride.max_pool, x, kernel=4)
    assert np.isnan(y).all() and pull(np.ones_like(y))[0].tolist() == [[[1.0, 0.0, 0.0, 0.0]]]
    assert astride.max_pool(x, kernel=4, return_indices=True)[1].item() == 0


@pytest.mark.parametrize("rules", ["explicit", "jax", "numpy_loops"])
@pytest.mark.parametrize("rung", ["im2col", "loops2", "loops3", "loops4"])
def test_a_maximum_of_bools_is_any_and_a_minimum_all(rules: str, rung: str) -> None:
    x = np.random.default_rng(5).random((2, 3, 5, 4)) > 0.5
    corners = [x[:, :, i : i + 4, j : j + 3] for i in range(2) for j in range(2)]
    backend = f"reference:{rung}"
    assert_same(astride.max_pool(x, kernel=2, stride=1, rules=rules, backend=backend), np.logical_or.reduce(corners))
    assert_same(astride.min_pool(x, kernel=2, stride=1, rules=rules, backend=backend), np.logical_and.reduce(corners))
    with pytest.raises(astride.ArgumentError, match="no rule for bool"):
        astride.max_pool(x, kernel=2, rules="pytorch")
