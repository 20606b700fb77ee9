"""What convolution is made of, and what the contract does not ask: accuracy, threads, padding, memory of any strides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import astride
from astride.backends.cpu.compiler import assembly
from astride.backends.cpu.contraction import Contraction, Tiles
from astride.backends.cpu.conv_directions import declines
from astride.backends.cpu.conv_layout import transpose
from astride.backends.cpu.conv_windows import classes_of, most_classes, stretched_back
from astride.backends.cpu.ir import Function, module
from astride.backends.cpu.machine import machine
from astride.plan import StridedAxis
from astride.plan.kinds import Edge

Array = NDArray[Any]

AXES = [
    StridedAxis(7, 3, 1, 1, 1, 1, 7),
    StridedAxis(9, 3, 2, 2, 2, 3, 5),
    StridedAxis(4, 2, 1, 1, 5, 5, 13),
    StridedAxis(9, 2, 1, 1, -2, -1, 5),
    StridedAxis(5, 4, 1, 1, 2, 1, 9, input_dilation=2),
    StridedAxis(4, 3, 2, 3, 3, 4, 6, input_dilation=3),
    StridedAxis(2, 1, 3, 1, 0, 0, 1),
]


@pytest.mark.parametrize("axis", AXES, ids=str)
def test_classes_have_every_window_and_its_taps(axis: StridedAxis) -> None:
    c = classes_of(axis)
    seen: dict[int, list[tuple[int, int]]] = {}
    for k in range(len(c.taps)):
        for i in range(c.windows[k]):
            window, pixel = c.window[k] + i * c.window_step[k], c.pixel[k] + i * c.pixel_step[k]
            assert window not in seen
            seen[window] = [(c.tap[k] + j * c.skip, pixel + j * c.step) for j in range(c.taps[k])]
    for window in range(axis.out):
        at = [(j, p) for j, p in enumerate(axis.taps(window)) if 0 <= p < axis.stretched and p % axis.input_dilation == 0]
        assert seen[window] == [(j, p // axis.input_dilation) for j, p in at]
    assert len(c.taps) <= most_classes([axis])


@pytest.mark.parametrize("axis", AXES, ids=str)
def test_the_way_back_has_the_same_pairs(axis: StridedAxis) -> None:
    """Pixel p meets window i over tap j exactly where i meets p over the turned tap."""
    back = stretched_back(axis)

    def pairs(axis: StridedAxis) -> set[tuple[int, int, int]]:
        step = axis.input_dilation
        return {
            (i, p // step, j)
            for i in range(axis.out)
            for j, p in enumerate(axis.taps(i))
            if 0 <= p < axis.stretched and p % step == 0
        }

    assert pairs(back) == {(p, i, axis.kernel - 1 - j) for i, p, j in pairs(axis)}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("rows", "columns"), [(1, 5), (2, 3), (16, 16), (17, 40), (33, 7), (5, 100)])
def test_matrices_are_transposed(rows: int, columns: int, dtype: str) -> None:
    x = np.arange(3 * rows * columns).reshape(3, rows, columns).astype(dtype)
    y = np.full((3, columns, rows), -1, dtype)
    transpose(x, y, rows)
    assert np.array_equal(y, x.swapaxes(1, 2))


def whole(rng: np.random.Generator, *shape: int, dtype: str = "float32") -> Array:
    return rng.integers(-3, 4, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("operator", [astride.conv, astride.conv_transpose])
@pytest.mark.parametrize(("shape", "groups"), [((2, 6, 5, 7), 1), ((1, 6, 3), 2), ((3, 4, 2, 3, 9), 1), ((9, 6, 11, 11), 3)])
def test_windows_of_one_pixel(operator: Any, shape: tuple[int, ...], groups: int, dtype: str) -> None:
    rng = np.random.default_rng(4)
    x, b = whole(rng, *shape, dtype=dtype), whole(rng, shape[1] * 3, dtype=dtype)
    turned = operator is astride.conv_transpose
    w_shape = (shape[1], 3 * shape[1] // groups) if turned else (3 * shape[1], shape[1] // groups)
    w = whole(rng, *w_shape, *[1] * (len(shape) - 2), dtype=dtype)
    results = []
    for backend in ("cpu", "reference"):
        y, pull = astride.vjp(operator, x, w, b, groups=groups, backend=backend)
        results.append((y, *pull(np.asarray(y % 4, dtype))))
    for a, e in zip(*results, strict=True):
        assert np.array_equal(a, e)


def random(rng: np.random.Generator, *shape: int, dtype: str = "float32") -> Array:
    return rng.standard_normal(shape).astype(dtype)


def test_long_sums_are_cut() -> None:
    """Added one by one, 9216 products in float32 would be off by more."""
    rng = np.random.default_rng(1)
    x, w = random(rng, 1, 1024, 6, 6), random(rng, 8, 1024, 3, 3)
    y = astride.conv(x, w, backend="cpu")
    exact = astride.conv(x.astype("float64"), w.astype("float64"), backend="reference")
    terms = astride.conv(abs(x).astype("float64"), abs(w).astype("float64"), backend="reference")
    assert (abs(y - exact) / terms).max() < 4 * np.finfo("float32").eps


SHAPES = [((3, 19, 17, 20), 1), ((2, 24, 9, 11), 24), ((1, 96, 5, 6), 1)]


@pytest.mark.parametrize(("shape", "groups"), SHAPES)
@pytest.mark.parametrize("operator", [astride.conv, astride.conv_transpose])
def test_threads_do_not_show(operator: Any, shape: tuple[int, ...], groups: int) -> None:
    rng = np.random.default_rng(2)
    x, w = random(rng, *shape), random(rng, shape[1], shape[1] // groups, 3, 3)
    results = []
    for threads in (1, 2, 5):
        with astride.use(backend="cpu", threads=threads):
            y, pull = astride.vjp(operator, x, w, padding=1, stride=2, groups=groups)
            results.append([a.tobytes() for a in (y, *pull(np.cos(y)))])
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_padding_is_skipped_not_multiplied(bad: float, groups: int) -> None:
    """A tap that only padding meets may be anything."""
    x, w = np.ones((1, 4, 1, 6), "float32"), np.ones((4, 4 // groups, 3, 3), "float32")
    w[:, :, 0], w[:, :, 2] = bad, -bad
    y, pull = astride.vjp(astride.conv, x, w, padding=1, groups=groups, backend="cpu")
    assert np.isfinite(y).all()
    dx, dw = pull(np.full_like(y, bad))[:2]
    assert (dw[:, :, 0] == 0).all() and (dw[:, :, 2] == 0).all()
    assert dx.shape == x.shape


def test_memory_of_any_strides() -> None:
    rng = np.random.default_rng(3)
    x = rng.integers(-3, 4, (4, 12, 9, 6)).astype("float32")[::2, :, ::-1]
    w = np.asfortranarray(rng.integers(-3, 4, (5, 12, 3, 2)).astype("float32"))
    room = np.zeros((2, 5, 7, 10), "float32")
    astride.conv(x, w, out=room[..., ::2], backend="cpu")
    assert np.array_equal(room[..., ::2], astride.conv(x, w, backend="reference"))
    assert not room[..., 1::2].any()


def test_half_types_overflow_quietly() -> None:
    """Sums are formed in float32 and rounded once: 2 * 60000 - 60000 is fine, 2 * 60000 is not."""
    x = np.array([[[60000, 60000, -60000, 60000, 60000, 1]]], "float16")
    y = astride.conv(x, np.ones((1, 1, 3), "float16"), stride=3, backend="cpu")
    assert y.tolist() == [[[60000, np.inf]]]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("layout", ["channels_first", "channels_last"])
@pytest.mark.parametrize(("groups", "kernel"), [(40, 3), (1, 3), (1, 1)])
def test_gradients_of_infinities_are_quiet(groups: int, kernel: int, layout: str) -> None:
    """Sums of images are added up at the end: infinities of both signs make NaN, without a warning."""
    shape = (20, 40, 20, 20) if layout == "channels_first" else (20, 20, 20, 40)
    x, w = np.ones(shape, "float32"), np.ones((40, 40 // groups, kernel, kernel), "float32")
    y, pull = astride.vjp(astride.conv, x, w, np.zeros(40, "float32"), groups=groups, layout=layout, backend="cpu")
    dy = np.ones_like(y)
    dy[0], dy[-1] = np.inf, -np.inf
    _, dw, db = pull(dy)
    assert np.isnan(dw).all() and np.isnan(db).all()


@pytest.mark.filterwarnings("error")
def test_gradients_of_half_types_overflow_quietly() -> None:
    x, w = np.full((1, 1, 9), 300, "float16"), np.full((1, 1, 1), 2, "float16")
    y, pull = astride.vjp(astride.conv, x, w, np.zeros(1, "float16"), backend="cpu")
    dx, dw, db = pull(np.full_like(y, 40000))
    assert np.isinf(dx).all() and np.isinf(dw).all() and np.isinf(db).all()


@pytest.mark.parametrize(("name", "instruction"), [("avx512", "vfmadd231ps"), ("neon", "fmla")])
def test_tiles_of_other_machines(name: str, instruction: str) -> None:
    """A whole tile is computed in registers: one multiply-add for each of its vectors, and little beside them."""
    other, spec = machine(name), Contraction("float")
    f, tiles = Function("f", a="ptr", c="ptr", b="ptr", begin="ptr", nest="ptr", add="i64", lanes="i64"), Tiles(spec, other)
    most = f.value("i64", tiles.rows[0])
    tiles.call(f, most, f.value("i64", tiles.block), f.a, f.c, f.b, f.begin, f.nest, f.add)
    text = assembly(module(f, *tiles.functions), other)
    assert text.count(instruction) >= tiles.rows[0] * tiles.vectors


def test_what_is_declined_has_a_reason() -> None:
    plan = astride.plan("conv", (1, 2, 8), w_shape=(2, 2, 3), dtype="float32")
    assert declines(plan) is None
    assert declines(replace(plan, edge=Edge.WRAP)) == "no kernels for the edge mode wrap"
    assert declines(replace(plan, dtype="int8")) == "no kernels for int8"
    assert declines(replace(plan, batch_groups=2)) == "no kernels for groups of the batch"
    wide = StridedAxis(10**6, 10**5, 1, 1, 10**5 - 1, 10**5 - 1, 10**6 + 10**5 - 1)
    assert declines(replace(plan, axes=(wide,))) == "more than 65536 kinds of windows at the edges"
