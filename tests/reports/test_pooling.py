"""Field reports about pooling: each with the value its reporter should have got. The codes are those of docs/faq.md."""

from __future__ import annotations

import numpy as np
import pytest

import astride
from astride.errors import ArgumentError
from astride.like import caffe as C
from astride.like import onnx as O
from astride.like import pytorch as F
from astride.like import tensorflow as tf

F32_LOWEST = float(np.finfo(np.float32).min)


def image(*shape: int, start: float = 0.0, dtype: str = "float32") -> np.ndarray:
    """start, start + 1, ... row by row, with a batch and a channel axis in front."""
    return np.arange(start, start + np.prod(shape), dtype=dtype).reshape(1, 1, *shape)


def test_pool_01_a_row_outside_the_input() -> None:
    x = image(6, 7)
    assert F.max_pool2d(x, 1, stride=2, ceil_mode=True).shape == (1, 1, 3, 4)
    most = C.pooling(x, kernel_size=1, stride=2)
    assert most.shape == (1, 1, 4, 4) and (most[0, 0, -1] == np.float32(F32_LOWEST)).all()
    assert np.isnan(C.pooling(x, pool="AVE", kernel_size=1, stride=2)[0, 0, -1]).all()
    assert (astride.max_pool(x, kernel=1, stride=2, rules="opencv")[0, 0, -1] == 0).all()


@pytest.mark.parametrize("rules", ["explicit", "caffe", "pytorch", "tensorflow", "onnx", "mxnet", "chainer", "mlx", "coreml"])
def test_pool_03_sizes_are_never_negative(rules: str) -> None:
    with pytest.raises(ValueError, match=r"kernel|window"):
        F.max_pool1d(np.zeros((1, 1, 1), np.float32), 4, stride=1, ceil_mode=True)
    rng = np.random.default_rng(3)
    refused = 0
    for _ in range(1000):
        n, k, s = (int(v) for v in (rng.integers(1, 6), rng.integers(1, 8), rng.integers(1, 5)))
        try:
            plan = astride.plan("max_pool", (1, 1, n), kernel=k, stride=s, rules=rules)
        except ArgumentError as error:
            refused += 1
            assert any(character.isdigit() for character in str(error))
        else:
            assert plan.axes[0].out >= 1
    assert refused > 50


def test_pool_04_a_window_that_starts_in_the_padding() -> None:
    expected = [[0, 2, 4], [10, 12, 14], [20, 22, 24]]
    y, indices = F.max_pool2d(image(5, 5), 2, stride=2, padding=1, ceil_mode=True, return_indices=True)
    assert y[0, 0].tolist() == expected and indices.min() >= 0 and indices.max() < 25
    assert O.MaxPool(image(5, 5), kernel_shape=[2, 2], strides=[2, 2], pads=[1] * 4, ceil_mode=1)[0, 0].tolist() == expected


def test_pool_06_onnx_drops_windows_of_end_padding() -> None:
    y = O.MaxPool(image(5, 5), kernel_shape=[3, 3], strides=[3, 3], pads=[1] * 4, ceil_mode=1)
    assert y.shape == (1, 1, 2, 2)
    rng = np.random.default_rng(6)
    with astride.use(backend="reference"):  # rules decide here; other kernels would be compiled for each geometry
        for _ in range(500):
            rank = int(rng.integers(1, 4))
            k, s = int(rng.integers(1, 5)), int(rng.integers(1, 5))
            p, n = int(rng.integers(0, k // 2 + 1)), int(rng.integers(k, 9))
            x = rng.normal(size=(1, 1, *[n] * rank))
            theirs = getattr(F, f"max_pool{rank}d")(x, k, stride=s, padding=p, ceil_mode=True)
            window = dict(kernel_shape=[k] * rank, strides=[s] * rank, pads=[p] * 2 * rank, ceil_mode=1)
            np.testing.assert_array_equal(O.MaxPool(x, **window), theirs)
            theirs = getattr(F, f"avg_pool{rank}d")(x, k, stride=s, padding=p, ceil_mode=True)
            np.testing.assert_allclose(O.AveragePool(x, **window, count_include_pad=1), theirs, rtol=1e-12)


def test_pool_07_the_last_window_divides_by_what_the_padded_input_holds() -> None:
    rows = [
        [2.0903, 4.6493, 1.6320, -3.2051, 4.6975, 4.7296, 3.3653, -1.5815, -2.3832],
        [0.9628, -1.5899, -2.6820, 5.7529, 7.7346, -0.8910, -2.0151, 0.1313, -0.5374],
    ]
    x = np.array([rows], np.float32)
    expected = [[0.73807, 2.56556, 0.80323, -0.0999], [0.34911, 1.0389, 1.45361, -0.40353]]
    y = O.AveragePool(x, kernel_shape=[7], strides=[3], pads=[3, 3], ceil_mode=1, count_include_pad=1)
    np.testing.assert_allclose(y[0], expected, atol=1e-5)
    np.testing.assert_allclose(F.avg_pool1d(x, 7, stride=3, padding=3, ceil_mode=True)[0], expected, atol=1e-5)


def test_pool_09_overhanging_windows_of_core_ml() -> None:
    assert F.avg_pool2d(image(7, 7), 2, stride=3, ceil_mode=True)[0, 0].tolist() == [
        [4, 7, 9.5],
        [25, 28, 30.5],
        [42.5, 45.5, 48],
    ]
    assert F.avg_pool2d(image(3, 3), 2, stride=2, ceil_mode=True)[0, 0].tolist() == [[2, 3.5], [6.5, 8]]
    theirs = astride.avg_pool(image(7, 7), kernel=2, stride=3, ceil_mode=True, rules="coreml")
    assert theirs[0, 0, 0, 2] == 4.75 and theirs[0, 0, 2, 2] == 12


def test_pool_11_the_divisor_under_same() -> None:
    x = np.array([[[1.0, 2.0]]])
    flax = astride.avg_pool(x, kernel=2, stride=1, padding="same", rules="jax")
    assert flax.tolist() == [[[1.5, 1.0]]]
    assert astride.avg_pool(x, kernel=2, stride=1, padding="same", rules="tensorflow").tolist() == [[[1.5, 2.0]]]
    total = astride.avg_pool(image(2, 2, start=1), kernel=2, stride=1, padding="same", total=True, rules="jax")
    assert total[0, 0].tolist() == [[10, 6], [7, 4]]


def test_pool_12_padding_counted_or_not() -> None:
    x = image(2, 2, start=1, dtype="float64")
    window = dict(kernel_shape=[3, 3], pads=[1] * 4)
    assert O.AveragePool(x, **window)[0, 0, 0, 0] == 2.5
    assert O.AveragePool(x, **window, count_include_pad=1)[0, 0, 0, 0] == pytest.approx(10 / 9)


@pytest.mark.parametrize(("kernel", "pads", "dilation"), [(2, (0, 3), 1), (3, (0, 3), 2), (2, (3, 0), 3)])
@pytest.mark.parametrize("include", [0, 1])
def test_pool_13_pads_of_one_side_and_dilation(kernel: int, pads: tuple[int, int], dilation: int, include: int) -> None:
    x = np.random.default_rng(13).normal(size=9)
    arguments = dict(kernel=kernel, stride=2, padding=(pads,), dilation=dilation, count_include_pad=include, rules="onnx")
    y, pull = astride.vjp(astride.avg_pool, x.reshape(1, 1, -1), **arguments)
    (dx,) = pull(np.ones_like(y))
    expected, gradient = [], np.zeros(9)
    for start in range(-pads[0], 9 + pads[1] - (kernel - 1) * dilation, 2):
        taps = [start + j * dilation for j in range(kernel)]
        real = [t for t in taps if 0 <= t < 9]
        divisor = len(taps) if include else len(real)
        expected.append(sum(x[t] for t in real) / divisor if real else np.nan if not include else 0.0)
        for t in real:
            gradient[t] += 1 / divisor
    np.testing.assert_allclose(y[0, 0], expected)
    np.testing.assert_allclose(dx[0, 0], gradient)


def test_pool_14_pads_as_large_as_the_kernel() -> None:
    x = np.array([[[1.0, 2, 3, 4, 5]]])
    y = O.AveragePool(x, kernel_shape=[2], strides=[2], pads=[2, 3], count_include_pad=1)
    assert y[0, 0].tolist() == [0, 1.5, 3.5, 2.5, 0]
    with pytest.raises(ArgumentError, match="more than half the kernel"):
        F.avg_pool1d(x, 2, stride=2, padding=2)


def test_pool_16_nan_is_propagated_or_ignored_as_asked() -> None:
    x = np.array([[[[1, np.nan], [3, 2]]]])
    for op in (astride.max_pool, astride.min_pool):
        y, pull = astride.vjp(op, x, kernel=2)
        assert np.isnan(y).all() and pull(np.ones_like(y))[0].tolist() != [[[[0, 0], [0, 0]]]]
    dx = astride.vjp(F.max_pool2d, x, 2)[1](np.ones((1, 1, 1, 1)))[0]
    assert dx[0, 0].tolist() == [[0, 1], [0, 0]]
    assert astride.max_pool(x, kernel=2, nan="compared").item() == 3
    assert astride.min_pool(x, kernel=2, nan="compared").item() == 1
    assert F.max_pool2d(np.full((1, 1, 2, 2), -np.inf), 2).item() == -np.inf
    assert F.fractional_max_pool2d(np.full((1, 1, 4, 4), -np.inf), 2, output_size=2).max() == -np.inf


@pytest.mark.parametrize("p", [2.0, 3.0])
def test_pool_18_the_gradient_of_a_zero_window(p: float) -> None:
    y, pull = astride.vjp(F.lp_pool2d, np.zeros((1, 1, 4, 4)), p, 2)
    dx = pull(np.ones_like(y))[0]
    assert not dx.any() and not y.any()


def test_pool_19_powers_of_negative_numbers() -> None:
    x = np.array([[[[-1.0, 2], [3, -4]]]])
    for p, expected in ((1.5, 6.61786), (2, 5.47723), (3, 4.64159)):
        assert astride.lp_pool(x, p=p, kernel=2).item() == pytest.approx(expected, abs=1e-5)
        assert bool(astride.check_gradient(astride.lp_pool, x, p=p, kernel=2))
    assert O.LpPool(x, kernel_shape=[2, 2], p=3).item() == pytest.approx(4.64159, abs=1e-5)
    assert all(np.isnan(F.lp_pool2d(x, p, 2)).all() for p in (1.5, 3.0))


def test_pool_21_offsets_beyond_32_bits() -> None:
    """A virtual array: many channels that are one piece of memory, so that places lie far behind 2^31."""
    piece = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    x = np.lib.stride_tricks.as_strided(piece, (1, 2**20, 64, 64), (0, 0, 64 * 4, 4), writeable=False)
    assert x.size > 2**31
    plan = astride.plan("max_pool", x.shape, kernel=2, rules="onnx")
    assert plan.output_shape(x.shape) == (1, 2**20, 32, 32)
    y = F.max_pool2d(x[:, -3:], 2)
    np.testing.assert_array_equal(y[0, 2], F.max_pool2d(piece[None, None], 2)[0, 0])


def test_pool_22_an_index_that_fits_only_when_cut_to_32_bits() -> None:
    indices = np.array([[[[2**32 + 3]]]])
    with pytest.raises(astride.AstrideError, match=r"4294967299|index"):
        F.max_unpool2d(np.ones((1, 1, 1, 1), np.float32), indices, 4)


def test_pool_24_a_dilation_without_bounds() -> None:
    x = image(1, 5)
    assert F.max_pool2d(x, 1, stride=1, dilation=2**31 - 1).tolist() == F.max_pool2d(x, 1, stride=1).tolist()
    with pytest.raises(ArgumentError, match="larger than the padded input"):
        F.max_pool2d(x, (1, 2), stride=1, dilation=2**31 - 1)


def test_pool_26_both_layouts_give_the_same_in_their_own_order() -> None:
    x = np.random.default_rng(26).normal(size=(1, 4, 5, 6, 7)).astype(np.float32)
    first = astride.max_pool(x, kernel=3, stride=2, padding=1)
    last = astride.max_pool(np.ascontiguousarray(np.moveaxis(x, 1, -1)), kernel=3, stride=2, padding=1, layout="channels_last")
    np.testing.assert_array_equal(np.moveaxis(last, -1, 1), first)
    assert last.flags.c_contiguous and first.flags.c_contiguous


def test_pool_28_the_same_bytes_every_time() -> None:
    x = np.random.default_rng(28).normal(size=(2, 3, 9, 9, 9)).astype(np.float32)
    for op, arguments in ((astride.avg_pool, {}), (astride.max_pool, {})):
        found = set()
        for threads in (1, 2, 4, 8):
            for _ in range(5):
                with astride.use(threads=threads):
                    y, pull = astride.vjp(op, x, kernel=3, stride=1, **arguments)
                    found.add(pull(np.sin(y))[0].tobytes())
        assert len(found) == 1


def test_pool_30_three_rounds_of_unpooling_restore_the_size() -> None:
    x = np.random.default_rng(30).normal(size=(1, 1, 540, 960)).astype(np.float32)
    records, y = [], x
    for _ in range(3):
        size = y.shape[2:]
        y, indices = F.max_pool2d(y, 2, stride=2, return_indices=True)
        records.append((indices, size))
    for indices, size in reversed(records):
        y = F.max_unpool2d(y, indices, 2, stride=2, output_size=size)
    assert y.shape == x.shape and np.isin(y[y != 0], x).all()


def test_pool_32_half_precision_is_summed_in_single() -> None:
    x = np.random.default_rng(32).random((1, 1, 255, 255)).astype(np.float16)
    y, pull = astride.vjp(F.avg_pool2d, x, 255)
    exact = np.float16(x.astype(np.float64).mean())
    assert abs(float(y.item()) - float(exact)) <= np.spacing(exact)
    dx = pull(np.ones_like(y))[0]
    assert (dx == np.float16(1 / 65025)).all() and (dx > 0).all()


def test_pool_33_records_are_small() -> None:
    from astride import dispatch
    from astride.ops.max_pool import plane_indices

    x = np.random.default_rng(33).normal(size=(2, 3, 16, 16)).astype(np.float32)
    plan = astride.plan("max_pool", x.shape, kernel=2, rules="pytorch")
    y, saved = dispatch.forward(plan, x, save=True)
    assert saved is not None and saved.offsets is not None and saved.offsets.nbytes == y.size
    np.testing.assert_array_equal(plane_indices(plan, saved), F.max_pool2d(x, 2, return_indices=True)[1])


def test_pool_35_a_batch_of_none() -> None:
    x, w = np.zeros((0, 3, 4, 4)), np.ones((5, 3, 3, 3))
    for op in (F.max_pool2d, F.avg_pool2d):
        y, pull = astride.vjp(op, x, 2)
        assert y.shape == (0, 3, 2, 2) and pull(y)[0].shape == x.shape
    y, pull = astride.vjp(F.conv2d, x, w)
    dx, dw = pull(y)
    assert dx.shape == x.shape and dw.shape == w.shape and not dw.any()
    gradients, twice = astride.vjp(pull, y)
    assert gradients[1].shape == w.shape and next(g.shape for g in twice((dx, dw))) == y.shape


def test_pool_16_tensorflow_ignores_it() -> None:
    x = np.array([np.nan, 1, 2, 3]).reshape(1, 2, 2, 1)
    assert tf.max_pool2d(x, 2, 2, "VALID").item() == 3
