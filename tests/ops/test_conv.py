"""Convolution by hand: weights 1, 10, 100 show which tap met which pixel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.backends.ladder import climb
from tests.compare import assert_near, assert_same

import astride
from astride.like import caffe
from astride.like import pytorch as F

RUNGS = ["reference:im2col", "reference:loops2", "reference:loops3", "reference:loops4"]


def row(*values: float) -> Any:
    return np.array(values, "float64")[None, None]


ONE_TO_FOUR = row(1, 2, 3, 4)
DIGITS = row(1, 10, 100)


def test_it_is_a_correlation() -> None:
    """321 is 1*1 + 2*10 + 3*100: the first tap meets the first pixel."""
    assert astride.conv(ONE_TO_FOUR, DIGITS).tolist() == [[[321, 432]]]
    assert astride.conv(ONE_TO_FOUR, DIGITS, flip=True).tolist() == [[[123, 234]]]


def test_a_sobel_filter() -> None:
    #  an edge between columns 1 and 2
    x = np.array([[[[0, 0, 9, 9], [0, 0, 9, 9], [0, 0, 9, 9]]]], "float32")
    w = np.array([[[[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]]], "float32")
    assert astride.conv(x, w).tolist() == [[[[36, 36]]]]
    assert astride.conv(x, w, padding=1)[0, 0, 1].tolist() == [0, 36, 36, -36]


def test_gradients() -> None:
    y, pull = astride.vjp(astride.conv, ONE_TO_FOUR, row(1, 10), np.array([0.5]))
    assert y.tolist() == [[[21.5, 32.5, 43.5]]]
    dx, dw, db = pull(np.ones_like(y))
    assert dx.tolist() == [[[1, 11, 11, 10]]]
    assert dw.tolist() == [[[6, 9]]] and db.tolist() == [3]


def test_no_window_no_gradient() -> None:
    """Pixels in stride gaps and behind the last window get 0."""
    x = np.ones((1, 1, 6))
    y, pull = astride.vjp(astride.conv, x, row(1, 10), stride=4)
    assert y.shape == (1, 1, 2)
    assert pull(np.ones_like(y))[0].tolist() == [[[1, 10, 0, 0, 1, 10]]]
    y, pull = astride.vjp(astride.conv, np.ones((1, 1, 4)), row(1, 10), stride=3)
    assert pull(np.ones_like(y))[0].tolist() == [[[1, 10, 0, 0]]]


@pytest.mark.parametrize(
    ("padding", "expected"), [("same", [21, 32, 43, 4]), ("same_lower", [10, 21, 32, 43]), ("valid", [21, 32, 43])]
)
def test_same_with_an_even_kernel(padding: str, expected: list[float]) -> None:
    """Trap T28."""
    assert astride.conv(ONE_TO_FOUR, row(1, 10), padding=padding)[0, 0].tolist() == expected


def test_same_by_framework() -> None:
    assert F.conv1d(ONE_TO_FOUR, row(1, 10), padding="same")[0, 0].tolist() == [21, 32, 43, 4]
    mps = astride.conv(ONE_TO_FOUR, row(1, 10), rules="mps")
    assert mps[0, 0].tolist() == [10, 21, 32, 43]


def test_strided_same_against_symmetric_padding() -> None:
    """Trap T29: TensorFlow's SAME pads (0, 1); p=1 shifts by a pixel."""
    assert astride.conv(ONE_TO_FOUR, DIGITS, stride=2, padding="same")[0, 0].tolist() == [321, 43]
    for rules in ("caffe", "pytorch"):
        assert astride.conv(ONE_TO_FOUR, DIGITS, stride=2, padding=1, rules=rules)[0, 0].tolist() == [210, 432]


def test_an_impulse_at_the_last_pixel_keeps_its_place() -> None:
    x = np.zeros((1, 1, 224))
    x[0, 0, 223] = 1
    y = astride.conv(x, DIGITS, stride=2, padding="same")
    assert y.shape == (1, 1, 112) and y[0, 0, 111] == 10


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("zeros", [210, 321, 32]), ("reflect", [212, 321, 232]), ("replicate", [211, 321, 332]), ("circular", [213, 321, 132])],
)
def test_padding_modes(mode: str, expected: list[float]) -> None:
    y = astride.conv(row(1, 2, 3), DIGITS, padding=1, padding_mode=mode, rules="pytorch")
    assert y[0, 0].tolist() == expected


def test_repeated_pixels_gather_their_gradient() -> None:
    """Reflected about pixel 0, pixel 1 is read once more, by the first tap of the first window."""
    y, pull = astride.vjp(astride.conv, row(1, 2, 3), DIGITS, padding=1, padding_mode="reflect", rules="pytorch")
    #  windows: 2 1 2 | 1 2 3 | 2 3 2
    assert pull(np.ones_like(y))[0][0, 0].tolist() == [10 + 1, 1 + 100 + 10 + 1 + 100, 100 + 10]


def test_dilation_and_stride() -> None:
    assert F.conv1d(np.arange(1.0, 8)[None, None], row(1, 10), stride=2, dilation=3).tolist() == [[[41, 63]]]


def test_groups_keep_to_themselves() -> None:
    x = np.array([[[1.0], [2], [3], [4]]])
    w = np.array([[[1.0], [10]], [[1], [100]]])
    assert astride.conv(x, w, groups=2)[0, :, 0].tolist() == [21, 403]
    depthwise = np.array([[[2.0]], [[3]], [[5]], [[7]]])
    assert astride.conv(x, depthwise, groups=4)[0, :, 0].tolist() == [2, 6, 15, 28]


def test_batch_groups_pair_images_with_filters() -> None:
    """JAX's batch_group_count: image n of two meets filter n."""
    x = np.array([[[1.0]], [[2.0]]])
    w = np.array([[[10.0]], [[100.0]]])
    assert astride.conv(x, w, batch_groups=2).tolist() == [[[10], [200]]]


def test_caffe_axes_before_the_channels_are_images() -> None:
    x = np.array([[[[1.0, 2, 3, 4]], [[5, 6, 7, 8]]]])
    y = caffe.convolution(x, row(1, 10), num_output=1, kernel_size=2, axis=2)
    assert y.tolist() == [[[[21, 32, 43]], [[65, 76, 87]]]]
    _, pull = astride.vjp(caffe.convolution, x, row(1, 10), num_output=1, kernel_size=2, axis=2)
    dx, dw = pull(np.ones_like(y))
    assert dx.shape == x.shape and dw.tolist() == [[[6 + 18, 9 + 21]]]


# Padding is skipped, not multiplied


@pytest.mark.parametrize("backend", RUNGS)
@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_a_weight_that_meets_padding_alone_adds_nothing(backend: str, bad: float) -> None:
    """0 * inf would be NaN: at both ends the bad tap lies outside."""
    w = row(bad, 10, 1)
    y = astride.conv(row(1, 2, 3), w, padding=1, backend=backend)
    assert y[0, 0, 0] == 12 and not np.isfinite(y[0, 0, 1:]).any()
    y = astride.conv(row(1, 2, 3), w[..., ::-1].copy(), padding=1, backend=backend)
    assert y[0, 0, 2] == 32 and not np.isfinite(y[0, 0, :2]).any()


@pytest.mark.parametrize("backend", RUNGS)
def test_a_gradient_that_meets_padding_alone_adds_nothing(backend: str) -> None:
    from astride import dispatch

    plan = astride.plan("conv", (1, 1, 3), w_shape=(1, 1, 3), padding=1, dtype="float64")
    _, saved = dispatch.forward(plan, row(1, 2, 3), DIGITS, save=True, backend=backend)
    assert saved is not None
    _, dw, _ = dispatch.backward(plan, row(np.inf, 1, 1), saved)
    assert dw is not None and dw[0, 0, 0] == 3 and dw[0, 0, 1] == np.inf and dw[0, 0, 2] == np.inf


@pytest.mark.parametrize("backend", RUNGS)
def test_bad_pixels_spoil_their_windows_only(backend: str) -> None:
    y = astride.conv(row(np.nan, 2, 3, 4, 5), DIGITS, padding=1, backend=backend)
    assert np.isnan(y[0, 0]).tolist() == [True, True, False, False, False]


def test_columns_are_built_in_parts() -> None:
    """A batch whose columns pass the limit of one matrix gives what its images give alone."""
    from astride.backends.reference import _correlation

    rng = np.random.default_rng(9)
    x, w = rng.integers(-4, 5, (5, 3, 9, 8)).astype("float64"), rng.integers(-4, 5, (4, 3, 3, 3)).astype("float64")
    whole, pull = astride.vjp(astride.conv, x, w, padding=1)
    before = _correlation.COLUMN_ELEMENTS
    _correlation.COLUMN_ELEMENTS = 4000
    try:
        parts, pull_parts = astride.vjp(astride.conv, x, w, padding=1)
        dy = rng.integers(-4, 5, whole.shape).astype("float64")
        for got, expected in zip(pull_parts(dy), pull(dy), strict=True):
            assert_same(got, expected)
    finally:
        _correlation.COLUMN_ELEMENTS = before
    assert_same(parts, whole)


def test_every_path_computes_the_same_layer() -> None:
    """14x14 of 20 channels to 42, stride 2, SAME: a shape that once had one wrong pixel per channel elsewhere."""
    rng = np.random.default_rng(10)
    x, w = rng.normal(size=(1, 20, 14, 14)), rng.normal(size=(42, 20, 3, 3))
    plan = astride.plan("conv", x.shape, w_shape=w.shape, stride=2, padding="same", dtype="float64")
    kernels = [kernel for kernel in climb(plan) if "loops4" not in kernel]
    first = astride.conv(x, w, stride=2, padding="same", backend=kernels[0])
    assert first.shape == (1, 42, 7, 7) and len(kernels) >= 3
    for kernel in kernels[1:]:
        assert_near(astride.conv(x, w, stride=2, padding="same", backend=kernel), first, 1e-12)


def test_mixed_types_are_refused() -> None:
    x = np.ones((1, 1, 4), "float32")
    with pytest.raises(astride.ArrayError) as raised:
        astride.conv(x, DIGITS)
    assert "w has another dtype than the plan; nothing is promoted" in str(raised.value)
    assert "w.dtype == float32: float64" in str(raised.value) and "w.astype('float32')" in str(raised.value)
    with pytest.raises(astride.ArrayError, match="b has another dtype"):
        astride.conv(x, DIGITS.astype("float32"), np.zeros(1))


def test_a_bias_of_another_length() -> None:
    with pytest.raises(astride.ArrayError, match="b does not fit the plan"):
        astride.conv(np.ones((1, 1, 4)), DIGITS, np.zeros(2))


@pytest.mark.parametrize("rung", RUNGS)
@pytest.mark.parametrize(("dtype", "expected"), [("int8", 44), ("uint8", 44), ("int16", 300), ("bool", True)])
def test_whole_numbers_wrap_around_in_their_type(rung: str, dtype: str, expected: int) -> None:
    """100 + 100 + 100 is 300, less 256 is 44; of bools it is "or"."""
    x, w = np.full((1, 1, 3), 100).astype(dtype), np.ones((1, 1, 3), dtype)
    y = astride.conv(x, w, rules="jax", backend=rung)
    assert (y.dtype, y.tolist()) == (np.dtype(dtype), [[[expected]]])


def test_whole_numbers_have_no_gradient() -> None:
    x, w = np.arange(4).reshape(1, 1, 4), np.ones((1, 1, 2), int)
    y, pull = astride.vjp(astride.conv, x, w, rules="pytorch")
    assert pull(y) == (None, None)
    from astride import dispatch

    plan = astride.plan("conv", x.shape, w_shape=w.shape, dtype="int64", rules="pytorch")
    _, saved = dispatch.forward(plan, x, w, save=True)
    assert saved is not None
    with pytest.raises(astride.UnsupportedError, match="integers have no gradient"):
        dispatch.backward(plan, y, saved)


@pytest.mark.parametrize("rung", RUNGS)
def test_complex_numbers_are_four_real_convolutions(rung: str, rng: np.random.Generator) -> None:
    a, b, u, v = (rng.integers(-4, 5, shape).astype(float) for shape in ((2, 2, 5, 4),) * 2 + ((3, 2, 2, 3),) * 2)
    y = astride.conv(a + 1j * b, u + 1j * v, padding=1, rules="pytorch", backend=rung)
    assert (y.real == astride.conv(a, u, padding=1) - astride.conv(b, v, padding=1)).all()
    assert (y.imag == astride.conv(a, v, padding=1) + astride.conv(b, u, padding=1)).all()


@pytest.mark.parametrize("rung", RUNGS)
@pytest.mark.parametrize(("rules", "dx", "dw"), [("pytorch", -2j, 3 - 1j), ("jax", 2j, 3 + 1j)])
def test_conjugates_in_gradients(rung: str, rules: str, dx: complex, dw: complex) -> None:
    """y = x w: PyTorch's gradient of w is the conjugate of x, JAX's x itself."""
    x, w = np.array([[[3 + 1j]]]), np.array([[[2j]]])
    with astride.use(backend=rung):
        y, pull = astride.vjp(astride.conv, x, w, rules=rules)
        assert (y.item(), *(g.item() for g in pull(np.ones_like(y))[:2])) == (-2 + 6j, dx, dw)
    if rules == "pytorch":
        _, again = astride.vjp(pull, np.ones_like(y))
        with pytest.raises(astride.UnsupportedError, match="conjugate gradients have no double backward"):
            again((np.ones_like(x), None))


def test_pytorchs_convolution_of_no_channels_has_no_channels() -> None:
    x, w, b = np.ones((1, 0, 4, 4)), np.ones((5, 0, 2, 2)), np.ones(5)
    y, pull = astride.vjp(F.conv2d, x, w, b)
    assert y.shape == (1, 0, 3, 3)
    assert [g.shape for g in pull(y)] == [x.shape, w.shape, b.shape]
    assert not pull(y)[2].any()
    assert F.conv2d(np.ones((0, 2, 4, 4), bool), np.ones((3, 2, 2, 2), bool)).shape == (0, 3, 3, 3)
    for bad in (np.ones((0, 0, 2, 2)), np.ones((5, 1, 2, 2)), np.ones((5, 0, 7, 2))):
        with pytest.raises(astride.AstrideError):
            F.conv2d(x, bad)
