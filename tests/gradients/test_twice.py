"""Double backward against differences: of sum(cotangents * gradients) by g and by every argument, in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.compare import assert_near, assert_same

import astride
from astride.like import caffe, mps
from astride.like import pytorch as F
from astride.ops.softmax import softmax

PLACES = 6
RANKS = [((2, 2, 7), (3,)), ((1, 2, 5, 6), (3, 2)), ((1, 2, 3, 4, 4), (2, 3, 2))]


def value(fn: Any, args: list[Any], g: Any, cotangents: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
    gradients = astride.vjp(fn, *args, **kwargs)[1](g)
    return float(sum((c * dx).sum() for c, dx in zip(cotangents, gradients, strict=True) if c is not None))


def assert_right(fn: Any, *args: Any, tolerance: float = 1e-6, **kwargs: Any) -> None:
    """Central differences of a few elements of g and of every floating argument."""
    rng = np.random.default_rng(0)
    y, pull = astride.vjp(fn, *args, **kwargs)
    g = rng.normal(size=y.shape)
    gradients, pull2 = astride.vjp(pull, g)
    for first, again in zip(gradients, pull(g), strict=True):
        assert (first is None) == (again is None)
        if first is not None:
            assert_same(first, again)
    cotangents = tuple(None if dx is None else rng.normal(size=dx.shape) for dx in gradients)
    seconds = pull2(cotangents)
    assert len(seconds) == 1 + len(args)
    own = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    for array, second in zip([g, *own], seconds, strict=True):
        if second is None:
            assert not isinstance(array, np.ndarray) or array.dtype.kind != "f"
            continue
        assert second.shape == array.shape and second.dtype == array.dtype
        for flat in rng.permutation(array.size)[:PLACES]:
            place, numeric = np.unravel_index(flat, array.shape), 0.0
            kept = array[place]
            for sign in (1, -1):
                array[place] = kept + sign * 1e-6
                numeric += sign * value(fn, own, g, cotangents, kwargs) / 2e-6
            array[place] = kept
            assert_near(second[place], numeric, tolerance, fn.__name__, scale=max(1.0, np.abs(second).max()))


def apart(shape: tuple[int, ...], seed: int = 0) -> Any:
    """Values at least 0.01 from zero and from each other."""
    rng = np.random.default_rng(seed)
    size = math.prod(shape)
    return ((rng.permutation(size) + 1) * 0.02 * rng.choice([-1, 1], size)).reshape(shape)


@pytest.mark.parametrize(("shape", "kernel"), RANKS)
@pytest.mark.parametrize("layout", ["channels_first", "channels_last"])
def test_convolutions(shape: tuple[int, ...], kernel: tuple[int, ...], layout: str) -> None:
    x = apart(shape, 1) if layout == "channels_first" else np.moveaxis(apart(shape, 1), 1, -1)
    w, b = apart((4, 2, *kernel), 2), apart((4,), 3)
    assert_right(astride.conv, x, w, b, stride=2, padding=1, layout=layout)
    assert_right(astride.conv, x, apart((4, 1, *kernel), 2), b, padding=1, groups=2, edge="mirror", layout=layout)
    w = apart((2, 3, *kernel), 2)
    assert_right(astride.conv_transpose, x, w, apart((3,), 3), stride=2, padding=1, dilation=2, layout=layout)


@pytest.mark.parametrize("backend", ["im2col", "loops2", "flip"])
def test_every_rung(backend: str) -> None:
    x, w = apart((1, 4, 3, 4), 1), apart((4, 1, 2, 3), 2)
    assert_right(astride.conv_transpose, x, w, apart((2,), 3), stride=2, groups=2, backend=f"reference:{backend}")
    if backend != "flip":
        assert_right(astride.conv, x, w, apart((4,), 3), groups=4, backend=f"reference:{backend}")
        assert_right(astride.avg_pool, x, kernel=2, backend=f"reference:{backend}")


@pytest.mark.parametrize(("shape", "kernel"), RANKS)
@pytest.mark.parametrize("layout", ["channels_first", "channels_last"])
def test_pools(shape: tuple[int, ...], kernel: tuple[int, ...], layout: str) -> None:
    x = apart(shape) if layout == "channels_first" else np.ascontiguousarray(np.moveaxis(apart(shape), 1, -1))
    common: dict[str, Any] = dict(kernel=kernel, stride=1, padding=1, layout=layout)
    assert_right(astride.avg_pool, x, **common)
    assert_right(astride.max_pool, x, **common)
    assert_right(astride.min_pool, x, **common, tie="all_full")
    for p in (1.0, 1.5, 2.0, 3.0, math.inf):
        assert_right(astride.lp_pool, x, **common, p=p, tolerance=1e-4)


@pytest.mark.parametrize("edge", ["constant", "clamp", "mirror", "wrap"])
def test_edges(edge: str) -> None:
    x = apart((1, 2, 4, 3))
    common: dict[str, Any] = dict(kernel=(3, 2), stride=(1, 2), padding=((2, 1), (1, 2)), edge=edge, edge_value=0.03)
    assert_right(astride.avg_pool, x, **common, divisor="kernel")
    assert_right(astride.max_pool, x, **common)
    assert_right(astride.max_pool, x, **common, tie="equal_share")
    assert_right(astride.lp_pool, x, **common, tolerance=1e-4)


def test_shares_of_ties() -> None:
    """Two of a window's taps tie: each gives half of its cotangent."""
    x = np.array([[[5.0, 5, 1, 2]]])
    y, pull = astride.vjp(astride.max_pool, x, kernel=2, tie="equal_share")
    _, pull2 = astride.vjp(pull, np.ones_like(y))
    by_g, by_x = pull2(np.array([[[1.0, 3, 10, 20]]]))
    assert (by_g.tolist(), by_x.tolist()) == ([[[2, 20]]], [[[0, 0, 0, 0]]])


def test_norms_as_frameworks_have_them() -> None:
    x = np.abs(apart((1, 2, 5, 4)))
    for arguments in (dict(rules="pytorch", ceil_mode=True), dict(form="signed_root", p=3.0), dict(scale="mean", p=2.5)):
        assert_right(astride.lp_pool, x, kernel=2, tolerance=1e-4, **arguments)  # type: ignore[arg-type]
    zeros = np.zeros((1, 1, 4))
    for rule, expected in (("zero", 0.0), ("formula", math.nan)):
        y, pull = astride.vjp(astride.lp_pool, zeros, kernel=2, zero_window=rule)
        _, pull2 = astride.vjp(pull, np.ones_like(y))
        assert_same(pull2(np.ones_like(zeros))[1], np.full(zeros.shape, expected))


def test_columns() -> None:
    x = apart((1, 2, 4, 3))
    assert_right(astride.unfold, x, kernel=2, padding=1)
    assert_right(astride.fold, astride.unfold(x, kernel=2, padding=1), output_size=(4, 3), kernel=2, padding=1)


@pytest.mark.parametrize(
    ("call", "args", "kwargs"),
    [
        (F.conv2d, (apart((2, 5, 4)), apart((3, 2, 3, 2)), apart((3,))), dict(stride=2)),  # unbatched
        (F.adaptive_avg_pool2d, (apart((2, 5, 4)), 3), {}),
        (F.adaptive_max_pool1d, (apart((1, 2, 7)), 3), {}),
        (F.max_pool3d, (apart((1, 1, 3, 3, 3)), 2, 1), {}),
        (F.fold, (apart((1, 8, 6)), (3, 4), 2), {}),
        (caffe.convolution, (apart((2, 2, 3, 5)), apart((2, 3, 2)), apart((2,))), dict(kernel_size=2, axis=2)),
        (mps.convolution, (apart((1, 5, 6, 3)), apart((2, 3, 2, 3)), apart((2,))), dict(stride_in_pixels_x=2)),
    ],
)
def test_like(call: Any, args: Any, kwargs: dict[str, Any]) -> None:
    assert_right(call, *args, **kwargs)


def test_some_cotangents() -> None:
    """Only dw's gradient is asked on: dx has none, and a lone array belongs to the first."""
    x, w = apart((1, 2, 5)), apart((3, 2, 2), 1)
    y, pull = astride.vjp(astride.conv, x, w)
    g = np.ones_like(y)
    _, pull2 = astride.vjp(pull, g)
    by_g, by_x, by_w = pull2((None, w))
    assert_near(by_g, astride.conv(x, w), 1e-12)
    assert_near(by_x, pull(g)[0], 1e-12)
    assert not by_w.any()
    by_g, by_x, by_w = pull2(x)
    assert_near(by_g, astride.conv(x, w), 1e-12)
    assert not by_x.any()
    _, pull = astride.vjp(astride.conv, x, w, wrt=(1,))
    _, pull2 = astride.vjp(pull, g)
    with pytest.raises(astride.ArrayError, match="part 0 of g belongs to no gradient"):
        pull2((x, w))
    assert pull2((None, w))[1] is None


def test_gradients_of_a_pair() -> None:
    """A g given as a tuple gets its gradient as one."""
    x = apart((1, 1, 6))
    (y, _), pull = astride.vjp(F.max_pool1d, x, 2, return_indices=True)
    _, pull2 = astride.vjp(pull, (np.ones_like(y),))
    by_g, by_x, by_kernel = pull2((x,))
    assert isinstance(by_g, tuple) and len(by_g) == 1
    assert_same(by_g[0], y)
    assert by_kernel is None and not by_x.any()


def test_half_types() -> None:
    x, w = apart((1, 2, 6)).astype("float16"), apart((3, 2, 3), 1).astype("float16")
    y, pull = astride.vjp(astride.conv, x, w)
    g = np.ones_like(y)
    gradients, pull2 = astride.vjp(pull, g)
    halves = pull2(gradients)
    wide, pull = astride.vjp(astride.conv, x.astype("float64"), w.astype("float64"))
    gradients, pull2 = astride.vjp(pull, np.ones_like(wide))
    for half, double in zip(halves, pull2(gradients), strict=True):
        assert half.dtype == np.float16
        assert_near(half, double, 1e-2)


@pytest.mark.parametrize("backend", ["scatter", "loops2", "loops4"])
@pytest.mark.parametrize("layout", ["channels_first", "channels_last"])
def test_unpooling(backend: str, layout: str) -> None:
    """Places that overlap are read by several values, each of which returns its cotangent."""
    x, indices = apart((2, 3, 3, 2)), np.random.default_rng(0).integers(0, 12, (2, 3, 3, 2))
    if layout == "channels_last":
        x, indices = np.moveaxis(x, 1, -1), np.moveaxis(indices, 1, -1)
    assert_right(astride.max_unpool, x, indices, output_size=(4, 3), layout=layout, backend=f"reference:{backend}")
    x, indices = np.array([[[1.0, 2, 3]]]), np.array([[[1, 1, 3]]])
    y, pull = astride.vjp(astride.max_unpool, x, indices, output_size=4)
    by_g, by_x, by_indices = astride.vjp(pull, np.ones_like(y))[1](np.array([[[1.0, 10, 100]]]))
    assert by_g.tolist() == [[[0, 11, 0, 100]]] and by_x.tolist() == [[[0, 0, 0]]] and by_indices is None


def test_unpooling_counted_otherwise() -> None:
    x, indices = apart((1, 2, 2)), np.array([[[7, 0], [3, 7]]])
    assert_right(astride.max_unpool, x, indices, output_size=4, index_base="tensor")
    assert_right(astride.max_unpool, x, indices % 3, output_size=5, index_size=3)


@pytest.mark.parametrize("backend", ["gather", "loops4"])
@pytest.mark.parametrize("layout", ["channels_first", "channels_last"])
def test_fractional(backend: str, layout: str) -> None:
    x = apart((2, 2, 7, 6)) if layout == "channels_first" else np.moveaxis(apart((2, 2, 7, 6)), 1, -1)
    common: dict[str, Any] = dict(kernel=(3, 2), seed=1, layout=layout, backend=f"reference:{backend}")
    assert_right(astride.fractional_pool, x, output_size=(4, 5), **common)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(("shape", "kernel"), RANKS)
@pytest.mark.parametrize("layout", ["channels_first", "channels_last"])
def test_stochastic(training: bool, shape: tuple[int, ...], kernel: tuple[int, ...], layout: str) -> None:
    x = np.abs(apart(shape)) + 0.1
    if layout == "channels_last":
        x = np.moveaxis(x, 1, -1)
    window: dict[str, Any] = dict(kernel=kernel, stride=1, padding=1, layout=layout, training=training)
    assert_right(astride.stochastic_pool, x, **window, **({"seed": 3} if training else {}))


def test_a_stochastic_window_of_zeros() -> None:
    y, pull = astride.vjp(astride.stochastic_pool, np.zeros((1, 1, 4)), kernel=2)
    by_g, by_x = astride.vjp(pull, np.ones_like(y))[1](np.ones((1, 1, 4)))
    assert not by_g.any() and not by_x.any()


@pytest.mark.parametrize("backend", ["columns", "loops4"])
@pytest.mark.parametrize("layout", ["channels_first", "channels_last"])
def test_deformable(backend: str, layout: str) -> None:
    """By x, offset, w, mask and b, in two dimensions and, without mask and b, in one and three."""
    rng = np.random.default_rng(1)
    shapes = [(2, 4, 4, 3), (2, 2 * 4 * 2, 3, 2), (2, 2, 2, 2), (2, 2 * 4, 3, 2), (2,)]
    x, offset, w, mask, b = (rng.normal(size=shape) for shape in shapes)
    if layout == "channels_last":
        x, offset, mask = (np.moveaxis(a, 1, -1) for a in (x, offset, mask))
    common: dict[str, Any] = dict(groups=2, offset_groups=2, layout=layout, backend=f"reference:{backend}", tolerance=1e-5)
    assert_right(astride.deform_conv, x, offset, w, b, mask, **common)
    for rank in (1, 3):
        x, w = rng.normal(size=(1, 2, *[3] * rank)), rng.normal(size=(3, 2, *[2] * rank))
        assert_right(astride.deform_conv, x, rng.normal(size=(1, 2**rank * rank, *[2] * rank)), w, tolerance=1e-5)


def test_others_refuse() -> None:
    """A network's dense operators have none."""
    x = apart((1, 2, 6))
    y, pull = astride.vjp(softmax, x)
    gradients, pull2 = astride.vjp(pull, np.ones_like(y))
    with pytest.raises(astride.UnsupportedError, match="softmax: the operator has no double backward"):
        pull2(gradients)
    with pytest.raises(astride.ArgumentError, match="a pull takes the gradient g alone"):
        astride.vjp(pull, y, y)
    with pytest.raises(astride.UnsupportedError, match="not one operator"):
        astride.vjp(pull2, gradients)


@pytest.mark.parametrize("shape", [(0, 2, 5), (1, 0, 5)])
def test_nothing_has_gradients_of_its_own_shape(shape: tuple[int, ...]) -> None:
    """No images, or no channels: empty arrays, and zeros for the weights."""
    x = np.zeros(shape)
    for fn, args, keywords in (
        (astride.max_pool, (x,), dict(kernel=2)),
        (astride.avg_pool, (x,), dict(kernel=2)),
        (astride.conv, (x, np.ones((3, shape[1], 2))), {}),
    ):
        y, pull = astride.vjp(fn, *args, **keywords)
        gradients, pull2 = astride.vjp(pull, np.zeros_like(y))
        by_g, *others = pull2(gradients)
        assert by_g.shape == y.shape and [o.shape for o in others] == [a.shape for a in args]
        assert not any(o.any() for o in others)
