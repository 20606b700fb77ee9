"""The gradient of the weights with columns as lanes: however arrays are cut, it is what the reference gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import astride
from astride.backends.cpu import conv_choice, conv_planar_weights

Array = NDArray[Any]

CASES = [
    ((2, 3, 20, 37), (20, 3, 3, 3), {"padding": 1}),
    ((5, 1, 28, 28), (21, 1, 5, 5), {}),
    ((2, 3, 31, 29), (8, 3, 7, 7), {"padding": 3, "stride": 2}),
    ((1, 3, 70, 67), (10, 3, 11, 11), {"stride": 4}),
    ((9, 6, 9, 9), (21, 2, 3, 3), {"groups": 3, "padding": 1}),
    ((2, 1, 1100), (40, 1, 10), {"stride": 5}),
    ((2, 3, 1050), (5, 3, 2), {"padding": ((4, 0),), "dilation": 4}),
    ((2, 3, 5, 9, 21), (9, 3, 3, 3, 3), {"padding": 1, "stride": (2, 1, 1)}),
    ((1, 2, 3, 3), (2, 2, 2, 2), {"padding": 5, "dilation": 4}),
    ((1, 2, 6, 5), (1, 2, 1, 1), {"stride": 3}),
]


def whole(rng: np.random.Generator, *shape: int, dtype: str = "float32") -> Array:
    return rng.integers(-3, 4, shape).astype(dtype)


def gradient(x: Array, w: Array, dy: Array | None, backend: str, **given: Any) -> tuple[Array, Array]:
    """The gradient of w, and of what y."""
    y, pull = astride.vjp(astride.conv, x, w, wrt=1, backend=backend, **given)
    dy = np.asarray(y % 5 - 2, x.dtype) if dy is None else dy
    with conv_choice.forced("columns"):
        return pull(dy)[1], dy


@pytest.fixture(params=[conv_planar_weights.VECTORS, 3, 1])
def vectors(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Slabs of several sizes."""
    monkeypatch.setattr(conv_planar_weights, "VECTORS", request.param)
    for function in (conv_planar_weights._cut, conv_planar_weights.schedule):
        function.cache_clear()
    yield
    for function in (conv_planar_weights._cut, conv_planar_weights.schedule):
        function.cache_clear()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "w_shape", "given"), CASES, ids=str)
@pytest.mark.usefixtures("vectors")
def test_every_cut(shape: tuple[int, ...], w_shape: tuple[int, ...], given: dict[str, Any], dtype: str) -> None:
    rng = np.random.default_rng(0)
    x, w = whole(rng, *shape, dtype=dtype), whole(rng, *w_shape, dtype=dtype)
    expected, dy = gradient(x, w, None, "reference", **given)
    for threads in (1, 3):
        with astride.use(threads=threads):
            assert np.array_equal(gradient(x, w, dy, "cpu", **given)[0], expected)


def test_random_relations() -> None:
    rng = np.random.default_rng(1)
    for _ in range(60):
        rank, groups = int(rng.integers(1, 4)), int(rng.choice([1, 1, 2]))
        size = [int(n) for n in rng.integers(1, [7, 14, 40][3 - rank :], endpoint=True)]
        kernel, stride = ([int(n) for n in rng.integers(1, top, rank, endpoint=True)] for top in (4, 5))
        dilation = [int(n) for n in rng.integers(1, 3, rank)]
        padding = [(int(a), int(b)) for a, b in rng.integers(0, 4, (rank, 2))]
        if any((k - 1) * d + 1 > n + sum(p) for k, d, n, p in zip(kernel, dilation, size, padding, strict=True)):
            continue
        inputs, outputs = (groups * int(rng.integers(1, top)) for top in (5, 20))
        x, w = whole(rng, int(rng.integers(1, 6)), inputs, *size), whole(rng, outputs, inputs // groups, *kernel)
        given = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        expected, dy = gradient(x, w, None, "reference", **given)
        assert np.array_equal(gradient(x, w, dy, "cpu", **given)[0], expected), (x.shape, w.shape, given)


def test_the_transposed_one() -> None:
    rng = np.random.default_rng(2)
    x, w = whole(rng, 2, 7, 9, 20), whole(rng, 7, 3, 3, 3)
    results = []
    dy = None
    for backend in ("reference", "cpu"):
        y, pull = astride.vjp(astride.conv_transpose, x, w, wrt=1, backend=backend, stride=2)
        dy = np.asarray(y % 5 - 2, "float32") if dy is None else dy
        with conv_choice.forced("columns"):
            results.append(pull(dy)[1])
    assert np.array_equal(*results)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("side", ["x", "dy"])
def test_padding_hides_no_infinity(bad: float, side: str) -> None:
    """An infinity at the edge shows in the taps that meet it, and not as NaN in those that lie in the padding."""
    rng = np.random.default_rng(3)
    x, w, dy = whole(rng, 2, 3, 12, 21) + 9, whole(rng, 9, 3, 3, 3), whole(rng, 2, 9, 12, 21) + 9
    (x if side == "x" else dy)[1, 2, 0, 20] = bad
    expected, _ = gradient(x, w, dy, "reference", padding=1)
    assert np.array_equal(gradient(x, w, dy, "cpu", padding=1)[0], expected, equal_nan=True)
    assert np.isnan(bad) or not np.isnan(expected).any()


def test_errors_stay_small() -> None:
    """Of one sign, so that every sum rounds the same way: in one chain the error would be some times as large."""
    rng = np.random.default_rng(4)
    x, w, dy = rng.random((4, 3, 66, 66), "float32"), whole(rng, 4, 3, 3, 3), rng.random((4, 4, 64, 64), "float32")
    expected, _ = gradient(x.astype("float64"), w.astype("float64"), dy.astype("float64"), "reference")
    assert float(np.abs(gradient(x, w, dy, "cpu")[0] / expected - 1).max()) < 1e-6
