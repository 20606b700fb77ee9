"""Convolution of few input channels, columns as lanes: however a shape is cut, it gives what the reference gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import astride
from astride.backends.cpu import conv_choice, conv_planar

Array = NDArray[Any]

CASES = [
    ((2, 3, 20, 37), (20, 3, 3, 3), {"padding": 1}),
    ((3, 1, 28, 28), (20, 1, 5, 5), {}),
    ((2, 3, 31, 29), (8, 3, 7, 7), {"padding": 3, "stride": 2}),
    ((1, 3, 70, 67), (70, 3, 11, 11), {"stride": 4}),
    ((2, 6, 9, 9), (21, 2, 3, 3), {"groups": 3, "padding": 1}),
    ((1, 1, 1100), (40, 1, 10), {"stride": 5}),
    ((2, 3, 1050), (5, 3, 2), {"padding": ((4, 0),), "dilation": 4}),
    ((2, 3, 5, 9, 21), (9, 3, 3, 3, 3), {"padding": 1, "stride": (2, 1, 1)}),
    ((2, 7, 12, 40), (3, 7, 5, 5), {"dilation": (2, 3), "stride": (3, 1), "padding": 2}),
    ((1, 2, 3, 3), (2, 2, 2, 2), {"padding": 5, "dilation": 4}),
    ((1, 2, 6, 5), (1, 2, 1, 1), {"stride": 3}),
]


def whole(rng: np.random.Generator, *shape: int, dtype: str = "float32") -> Array:
    return rng.integers(-3, 4, shape).astype(dtype)


@pytest.mark.parametrize("room", [conv_planar.X_BYTES, 1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "w_shape", "given"), CASES, ids=str)
def test_every_cut(
    monkeypatch: pytest.MonkeyPatch,
    shape: tuple[int, ...],
    w_shape: tuple[int, ...],
    given: dict[str, Any],
    dtype: str,
    room: int,
) -> None:
    if room == 1:
        monkeypatch.setattr(conv_planar, "X_BYTES", room)
        monkeypatch.setattr(conv_planar, "COLUMNS", 30)
    for function in (conv_planar._cut, conv_planar.schedule):
        function.cache_clear()
    rng = np.random.default_rng(0)
    x, w, b = (whole(rng, *s, dtype=dtype) for s in (shape, w_shape, w_shape[:1]))
    expected = astride.conv(x, w, b, backend="reference", **given)
    with conv_choice.forced("columns"):
        for threads in (1, 3):
            with astride.use(backend="cpu", threads=threads):
                assert np.array_equal(astride.conv(x, w, b, **given), expected)
    for function in (conv_planar._cut, conv_planar.schedule):
        function.cache_clear()


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
        x = whole(rng, int(rng.integers(1, 3)), inputs, *size)
        w, b = whole(rng, outputs, inputs // groups, *kernel), whole(rng, outputs)
        given = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        expected = astride.conv(x, w, b, backend="reference", **given)
        with conv_choice.forced("columns"):
            assert np.array_equal(astride.conv(x, w, b, backend="cpu", **given), expected), (x.shape, w.shape, given)


def test_turned_and_swapped_weights() -> None:
    """A transposed convolution of stride 1, and its gradient, are relations with these."""
    rng = np.random.default_rng(2)
    x, w = whole(rng, 2, 3, 9, 20), whole(rng, 3, 12, 3, 3)
    results = []
    for backend in ("cpu", "reference"):
        with conv_choice.forced("columns"):
            results.append(astride.conv_transpose(x, w, backend=backend))
    assert np.array_equal(*results)
    x, w, dy = whole(rng, 1, 4, 10, 21), whole(rng, 5, 4, 3, 2), whole(rng, 1, 5, 8, 20)
    results = []
    for backend in ("cpu", "reference"):
        _, pull = astride.vjp(astride.conv, x, w, wrt=0, backend=backend)
        with conv_choice.forced("columns"):
            results.append(pull(dy)[0])
    assert np.array_equal(*results)


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_padding_hides_no_infinity(bad: float) -> None:
    """Padding is skipped, not multiplied: an infinite weight shows where it meets a pixel, and nowhere else."""
    x, w = np.ones((1, 3, 12, 24), "float32"), np.ones((8, 3, 3, 3), "float32")
    w[2, 1, 0, 0] = bad
    for given in ({"padding": 1}, {}):
        for weights in (w, astride.frozen(w)):
            y = astride.conv(x, weights, backend="cpu", **given)
            assert np.array_equal(y, astride.conv(x, w, backend="reference", **given), equal_nan=True)
    x[0, 0, 5, 5] = bad
    w[2, 1, 0, 0] = 1
    with conv_choice.forced("columns"):
        y = astride.conv(x, w, padding=1, backend="cpu")
    assert np.array_equal(y, astride.conv(x, w, padding=1, backend="reference"), equal_nan=True)


def test_long_sums_are_cut() -> None:
    """Of one sign, so that every sum rounds the same way: in one chain the error would be some times as large."""
    rng = np.random.default_rng(4)
    x, w = rng.random((1, 8, 9, 32), "float32"), rng.random((9, 8, 9, 9), "float32")
    expected = astride.conv(x.astype("float64"), w.astype("float64"), backend="reference")
    with conv_choice.forced("columns"):
        y = astride.conv(x, w, backend="cpu")
    assert float(np.abs(y / expected - 1).max()) < 1e-6
