"""The gradient of the weights in small groups: whole numbers are exact, threads change nothing, long sums stay exact enough."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import astride
from astride import dispatch
from astride.backends.cpu import conv_choice, depthwise_weights, depthwise_weights_first
from astride.backends.cpu.conv_directions import relation

Array = NDArray[Any]


def arrays(shape: tuple[int, ...], w_shape: tuple[int, ...], options: dict[str, Any], layout: str, dtype: str) -> Any:
    """A plan, and whole numbers for x, w and dy."""
    first = layout == "channels_first"
    x_shape = shape if first else (shape[0], *shape[2:], shape[1])
    plan = astride.plan("conv", x_shape, w_shape=w_shape, dtype=dtype, layout=layout, **options)
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-3, 4, s).astype(dtype) for s in (x_shape, w_shape))
    y, _ = dispatch.forward(plan, x, w, None, save=True, backend="cpu")
    return plan, x, w, rng.integers(-3, 4, y.shape).astype(dtype)


def gradient(plan: Any, x: Array, w: Array, dy: Array, backend: str, threads: int = 1, way: str | None = None) -> Array:
    """The gradient of w, computed in this way."""
    _, saved = dispatch.forward(plan, x, w, None, save=True, backend=backend)
    assert saved is not None
    forced = conv_choice.forced(way) if way else nullcontext()
    with astride.use(threads=threads), np.errstate(invalid="ignore"), forced:
        dw = dispatch.backward(plan, dy, saved, want=(False, True, False), backend=backend)[1]
    assert dw is not None
    return dw


def random_case(rng: np.random.Generator) -> tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]:
    """Shapes of x and w, and options, such that there are windows."""
    rank, inputs = int(rng.integers(1, 4)), int(rng.choice([1, 1, 2, 4]))
    groups = int(rng.integers(2, 40))
    kernel = [int(n) for n in rng.integers(1, 5, rank)]
    stride, dilation = ([int(n) for n in rng.integers(1, 4, rank)] for _ in range(2))
    padding = [tuple(int(n) for n in rng.integers(0, 4, 2)) for _ in range(rank)]
    most = {1: 200, 2: 24, 3: 9}[rank]
    size = [max(int(n), (k - 1) * d + 1) for n, k, d in zip(rng.integers(1, most, rank), kernel, dilation, strict=True)]
    shape = (int(rng.integers(1, 4)), inputs * groups, *size)
    options = {"stride": stride, "dilation": dilation, "padding": padding, "groups": groups, "flip": bool(rng.integers(2))}
    return shape, (inputs * groups, inputs, *kernel), options


@pytest.mark.parametrize("seed", range(24))
def test_random_relations(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    shape, w_shape, options = random_case(rng)
    monkeypatch.setattr(depthwise_weights, "SET", int(rng.choice([1, 1 << 10, 1 << 20])))
    monkeypatch.setattr(depthwise_weights, "FAR", int(rng.choice([1, 1 << 20])))
    monkeypatch.setattr(depthwise_weights, "SUMS_BYTES", int(rng.choice([1, 20 << 10])))
    dtype = str(rng.choice(["float32", "float32", "float64"]))
    for layout in ("channels_first", "channels_last"):
        plan, x, w, dy = arrays(shape, w_shape, options, layout, dtype)
        expected = gradient(plan, x, w, dy, "reference:im2col")
        takes = depthwise_weights.takes(relation(plan, False))
        assert takes or w_shape[1] > 1  # vectors of a CPU may be too short for a group
        for threads in (1, 2, 3):
            found = gradient(plan, x, w, dy, "cpu", threads, "depthwise" if takes else None)
            assert np.array_equal(found, expected)


@pytest.mark.parametrize("layout", ["channels_first", "channels_last"])
@pytest.mark.parametrize(("channels", "inputs"), [(37, 1), (24, 4)])
@pytest.mark.parametrize("size", [(7, 9), (9, 31)], ids=str)
def test_padding_is_not_multiplied(size: tuple[int, int], channels: int, inputs: int, layout: str) -> None:
    """An infinite gradient at a corner, and an infinite pixel at another, meet only the taps that read them."""
    options = {"padding": 1, "groups": channels // inputs}
    plan, x, w, dy = arrays((2, channels, *size), (channels, inputs, 3, 3), options, layout, "float32")
    dy.flat[0], x.flat[-1] = np.inf, -np.inf
    got = gradient(plan, x, w, dy, "cpu")
    with np.errstate(invalid="ignore"):
        expected = gradient(plan, x, w, dy, "reference:loops2")
    assert np.array_equal(got, expected, equal_nan=True) and np.isfinite(got).any()


def test_planes_that_do_not_fit_are_moved_before(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, x, w, dy = arrays((2, 20, 11, 12), (20, 1, 3, 3), {"padding": 1, "groups": 20}, "channels_first", "float32")
    monkeypatch.setattr(depthwise_weights, "MOST", 1 << 12)
    assert np.array_equal(gradient(plan, x, w, dy, "cpu"), gradient(plan, x, w, dy, "reference:im2col"))


@pytest.mark.parametrize("shape", [(1, 16, 40000), (2, 16, 120, 130)], ids=str)
def test_long_sums_are_cut(shape: tuple[int, ...]) -> None:
    """Numbers of one sign, whose sums would lose a digit or two if each were one chain of additions."""
    rng = np.random.default_rng(1)
    rank = len(shape) - 2
    plan = astride.plan("conv", shape, w_shape=(16, 1, *[3] * rank), padding=1, groups=16)
    x, w = rng.random(shape, np.float32), np.ones((16, 1, *[3] * rank), np.float32)
    dy = rng.random(shape, np.float32)
    got = gradient(plan, x, w, dy, "cpu")
    wide = astride.plan("conv", shape, w_shape=w.shape, padding=1, groups=16, dtype="float64")
    exact = gradient(wide, x.astype("float64"), w.astype("float64"), dy.astype("float64"), "cpu")
    assert np.abs(got / exact - 1).max() < 1e-6


@pytest.mark.parametrize("seed", range(24))
def test_random_planes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(depthwise_weights_first, "better", lambda relation: True)  # else many are no candidates
    rng = np.random.default_rng(100 + seed)
    shape, w_shape, options = random_case(rng)
    shape, w_shape = (*shape[:2], *shape[2:][-2:]), (options["groups"] * (shape[1] // options["groups"]), 1, *w_shape[2:][-2:])
    options |= {key: options[key][-2:] for key in ("stride", "dilation", "padding")} | {"groups": shape[1]}
    options["stride"][-1] = min(options["stride"][-1], 2)
    dtype = str(rng.choice(["float32", "float32", "float64"]))
    plan, x, w, dy = arrays(shape, w_shape, options, "channels_first", dtype)
    expected = gradient(plan, x, w, dy, "reference:im2col")
    takes = depthwise_weights_first.takes(relation(plan, False))
    assert takes or np.prod(w_shape[2:]) > 10
    for threads in (1, 2, 3):
        found = gradient(plan, x, w, dy, "cpu", threads, "depthwise planes" if takes else None)
        assert np.array_equal(found, expected)


def test_no_images() -> None:
    plan = astride.plan("conv", (0, 8, 5, 5), w_shape=(8, 1, 3, 3), padding=1, groups=8)
    x, w = np.zeros((0, 8, 5, 5), np.float32), np.ones((8, 1, 3, 3), np.float32)
    assert not gradient(plan, x, w, x, "cpu").any()
