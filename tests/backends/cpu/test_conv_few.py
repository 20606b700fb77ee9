"""Convolution into few channels: windows of all kinds in both layouts, equal to the reference's to the last bit."""

from __future__ import annotations

import ctypes
import itertools
import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import astride
from astride import dispatch
from astride.backends.cpu import conv_choice, conv_few
from astride.backends.cpu.compiler import compile_object, load_object
from astride.backends.cpu.conv_directions import relation
from astride.backends.cpu.conv_few_boxes import boxes_of, columns_of, groups_of, lanes_of, places_of, size_of
from astride.backends.cpu.conv_few_kernel import woven
from astride.backends.cpu.conv_relation import Relation
from astride.backends.cpu.ir import Function, module
from astride.backends.cpu.ir_types import vector
from astride.backends.epilogue import RECTIFIED, Epilogue
from astride.errors import ArgumentError

Array = NDArray[Any]
Shape = tuple[int, ...]


def whole(rng: np.random.Generator, *shape: int, dtype: str = "float32") -> Array:
    return rng.integers(-3, 4, shape).astype(dtype)


def guarded(x: Array, front: bool) -> Array:
    """A copy that begins or ends where memory does that nobody may read or write: doing so would end the process."""
    page = mmap.PAGESIZE
    room = -(-x.nbytes // page) * page
    made = np.frombuffer(mmap.mmap(-1, room + 2 * page), np.uint8)
    protect = getattr(ctypes.CDLL(None), "mprotect", None)
    if protect is not None:
        for place in (0, page + room):
            assert protect(ctypes.c_void_p(made.ctypes.data + place), ctypes.c_size_t(page), 0) == 0
    start = page if front else page + room - x.nbytes
    found = made[start : start + x.nbytes].view(x.dtype).reshape(x.shape)
    found[...] = x
    return found


def both(op: str, shape: Shape, w_shape: Shape, dtype: str, seed: int, **options: Any) -> Iterator[tuple[Relation, Any]]:
    """The relations of y and of the gradient of x; what they read, the weights, and what the reference gives."""
    plan, rng = astride.plan(op, shape, w_shape=w_shape, dtype=dtype, **options), np.random.default_rng(seed)
    x, w = whole(rng, *shape, dtype=dtype), whole(rng, *w_shape, dtype=dtype)
    y, saved = dispatch.forward(plan, x, w, save=True, backend="reference")
    assert saved is not None
    dy = whole(rng, *y.shape, dtype=dtype)
    dx = dispatch.backward(plan, dy, saved)[0]
    assert dx is not None
    yield relation(plan, False), [x, w, y]
    yield relation(plan, True), [dy, w, dx]


def computed(how: Relation, x: Array, w: Array, expected: Array, first: bool, front: bool = False) -> None:
    """Compute it between guards, and compare."""
    if not first:
        x, expected = (np.ascontiguousarray(np.moveaxis(a, 1, -1)) for a in (x, expected))
    y = guarded(np.full_like(expected, 77), front)
    given = guarded(x, front), guarded(w, front), None, y
    (conv_few.compute if first else conv_few.compute_last)(how, *given)
    assert np.array_equal(y, expected), (how, first)


CASES: list[tuple[str, Shape, Shape, dict[str, Any]]] = [
    ("conv", (2, 3, 20, 40), (8, 3, 3, 3), {"padding": 1}),
    ("conv", (2, 3, 20, 150), (140, 3, 3, 3), {"padding": 1}),
    ("conv", (1, 3, 30, 41), (8, 3, 7, 7), {"padding": 3, "stride": 2}),
    ("conv", (2, 3, 29, 61), (8, 3, 11, 11), {"stride": 4}),
    ("conv", (1, 1, 400), (8, 1, 10), {"stride": 5}),
    ("conv", (1, 3, 6, 12, 30), (8, 3, 3, 3, 3), {"padding": 1}),
    ("conv", (3, 1, 28, 28), (20, 1, 5, 5), {}),
    ("conv_transpose", (2, 7, 9, 21), (7, 3, 4, 4), {"stride": 2, "padding": 1}),
    ("conv_transpose", (1, 7, 9, 11), (7, 2, 2, 2), {"stride": 3}),
]


@pytest.mark.parametrize(("op", "shape", "w_shape", "options"), CASES)
def test_first_layers_and_last_ones(op: str, shape: Shape, w_shape: Shape, options: dict[str, Any]) -> None:
    taken, dtype = 0, "float64" if shape[-1] == 40 else "float32"
    for how, (x, w, expected) in both(op, shape, w_shape, dtype, 0, **options):
        for first in (True, False):
            if conv_few.takes(how, len(x), first):
                computed(how, x, w, expected, first)
                taken += 1
    assert taken >= 2 or size_of(how) is None


@pytest.mark.parametrize("seed", range(8))
def test_random_windows(seed: int) -> None:
    rng, taken = np.random.default_rng(seed), 0
    while not taken:
        axes, op = int(rng.integers(1, 4)), str(rng.choice(["conv", "conv_transpose"]))
        size, kernel, stride, dilation, padding = (
            tuple(rng.integers(low, high, axes).tolist())
            for low, high in ((1, 14 if axes == 3 else 40), (1, 6), (1, 4), (1, 3), (0, 4))
        )
        inputs, outputs = rng.integers(1, 7, 2).tolist()
        w_shape = (outputs, inputs, *kernel) if op == "conv" else (inputs, outputs, *kernel)
        options = {"stride": stride, "dilation": dilation, "padding": padding}
        try:
            found = list(both(op, (2, inputs, *size), w_shape, ["float32", "float64"][seed % 2], seed, **options))
        except ArgumentError:  # the window does not fit
            continue
        for (how, (x, w, expected)), first in itertools.product(found, (True, False)):
            if conv_few.takes(how, 2, first):
                for threads in (1, 3):
                    with astride.use(threads=threads):
                        computed(how, x, w, expected, first, front=threads == 1)
                taken += 1


AXES = [((2, 3, 70, 9), (5, 3, 3, 3), 1), ((1, 2, 9, 300), (5, 2, 5, 7), 2), ((2, 1, 40, 13), (5, 1, 3, 3), 3)]


@pytest.mark.parametrize(("shape", "w_shape", "stride"), AXES)
def test_what_is_cut_covers_all(shape: Shape, w_shape: Shape, stride: int) -> None:
    """Every row is in one group and every column in one block; boxes have all pairs of them once, and what these read."""
    plan = astride.plan("conv", shape, w_shape=w_shape, dtype="float32", stride=stride, padding=1)
    how = relation(plan, True)
    _, high, wide = how.volume
    groups, columns = groups_of(how), columns_of(how)
    rows = sorted(group.row + k * group.row_step for group in groups for k in range(group.rows))
    assert rows == list(range(high.out))
    lanes = lanes_of(how)
    ends = [at + block.vectors * lanes for at, block in columns]
    assert [at for at, _ in columns] == [0, *ends[:-1]] and ends[-1] * wide.input_dilation >= wide.out
    boxes = boxes_of(how, 1)
    assert boxes is not None
    pairs = [(row, column) for _, r, c, *_ in boxes for row in range(*r) for column in range(*c)]
    assert sorted(pairs) == list(itertools.product(range(len(groups)), range(len(columns))))
    start, taps = places_of(wide)
    for _, r, c, _, read, across in boxes:
        for group in groups[slice(*r)]:
            assert not group.taps or read[0] <= group.pixel <= group.pixel + (group.rows - 1) * group.pixel_step < read[1]
        first, end = columns[c[0]][0] + start, ends[c[1] - 1] + start + max(shift for shift, _ in taps)
        assert across[0] <= max(first, 0) and min(end, wide.size) <= across[1]


@pytest.mark.parametrize("count", [1, 2, 3, 5, 6, 8, 12])
@pytest.mark.parametrize("lanes", [2, 4, 16])
def test_vectors_are_woven(count: int, lanes: int) -> None:
    f = Function("weave", x="ptr", y="ptr")
    for k, value in enumerate(woven(f, [f.load(vector(lanes, "float"), f.at(f.x, 4 * lanes * k)) for k in range(count)])):
        f.store(value, f.at(f.y, 4 * lanes * k))
    (address,) = load_object(compile_object(module(f)), ("weave",))
    x, y = np.arange(count * lanes, dtype=np.float32).reshape(count, lanes), np.zeros((lanes, count), np.float32)
    ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(address)(x.ctypes.data, y.ctypes.data)
    assert np.array_equal(y, x.T)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("layout", ["channels_first", "channels_last"])
def test_the_call_and_its_ending(layout: str, stride: int) -> None:
    """Through the whole call, with a bias, a residual and limits, on several threads: the same as afterwards, on one."""
    rng, first = np.random.default_rng(1), layout == "channels_first"
    x, w = rng.standard_normal((2, 20, 9, 40), "float32"), rng.standard_normal((20, 3, 3, 3), "float32")
    b = np.ones(3, "float32")
    x.reshape(-1)[[7, 90, 171]] = np.nan, np.inf, -np.inf
    x = x if first else np.ascontiguousarray(np.moveaxis(x, 1, -1))
    plan = astride.plan("conv_transpose", x.shape, w_shape=w.shape, dtype="float32", stride=stride, padding=1, layout=layout)
    with conv_choice.forced("few outputs"):
        plain = dispatch.forward(plan, x, w, b, backend="cpu")[0]
        for epilogue, threads in ((RECTIFIED, 1), (Epilogue(slope=0.1), 3), (Epilogue(low=-0.7, high=0.3, nan_is_low=True), 2)):
            residual = rng.standard_normal(plain.shape, "float32")
            with astride.use(threads=threads):
                found = dispatch.forward(plan, x, w, b, backend="cpu", epilogue=epilogue, residual=residual)[0]
            expected = plain.copy()
            epilogue.apply(expected, residual)
            assert found.tobytes() == expected.tobytes()
    exact = dispatch.forward(plan, x, w, b, backend="reference")[0]
    assert np.allclose(plain, exact, rtol=1e-4, atol=1e-4, equal_nan=True)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("stride", [1, 2])
def test_padding_is_skipped_not_multiplied(first: bool, stride: int) -> None:
    """Weights that only padding meets may be anything, whatever x is behind the edge of memory that was used before."""
    plan = astride.plan("conv", (1, 2, 5, 37), w_shape=(3, 2, 3, 3), dtype="float32", padding=1, stride=stride)
    how, w = relation(plan, True), np.ones((3, 2, 3, 3), "float32")
    high, wide = how.axes
    x = np.ones((1, 3, high.size, wide.size) if first else (1, high.size, wide.size, 3), "float32")
    x[..., 0, 0] = x[..., -1, -1] = 2
    y = np.empty((1, 2, 5, 37) if first else (1, 5, 37, 2), "float32")
    before = y.copy()
    (conv_few.compute if first else conv_few.compute_last)(how, x, w, None, before)
    w[:, :, 1, 1] = np.inf
    (conv_few.compute if first else conv_few.compute_last)(how, x, w, None, y)
    assert not np.isnan(y).any() and np.array_equal(y[np.isfinite(y)], before[np.isfinite(y)])


def test_long_sums_are_cut() -> None:
    rng = np.random.default_rng(1)
    x, w = rng.standard_normal((1, 1024, 6, 20), "float32"), rng.standard_normal((2, 1024, 3, 3), "float32")
    with conv_choice.forced("few outputs"):
        y = astride.conv(x, w, backend="cpu")
    exact = astride.conv(x.astype("float64"), w.astype("float64"), backend="reference")
    terms = astride.conv(abs(x).astype("float64"), abs(w).astype("float64"), backend="reference")
    assert (abs(y - exact) / terms).max() < 4 * np.finfo("float32").eps


def test_what_is_not_taken() -> None:
    """Strided windows, groups, more channels than registers hold, and nothing at all."""
    cases: list[tuple[Shape, Shape, dict[str, Any]]] = [
        ((1, 8, 20, 40), (3, 8, 3, 3), {"stride": 2}),
        ((1, 8, 20, 40), (4, 4, 3, 3), {"groups": 2}),
        ((1, 8, 20, 40), (40, 8, 3, 3), {}),
    ]
    for shape, w_shape, options in cases:
        plan = astride.plan("conv", shape, w_shape=w_shape, dtype="float32", **options)
        assert not any(conv_few.takes(relation(plan, False), 1, first) for first in (True, False))
    plan = astride.plan("conv", (1, 8, 20, 40), w_shape=(3, 8, 3, 3), dtype="float32")
    assert conv_few.takes(relation(plan, False), 1, True) and not conv_few.takes(relation(plan, False), 0, True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_boxes_of_some_columns_whose_packed_rows_are_as_long_as_those_of_x(dtype: str) -> None:
    """Such rows do not follow each other in x, though they look as if they did."""
    options: dict[str, Any] = {"dilation": (2, 3), "stride": (2, 1), "padding": ((0, 2), (4, -1)), "layout": "channels_last"}
    width = 24 if dtype == "float64" else 48
    plan = astride.plan("conv", (1, 25, width, 6), w_shape=(14, 6, 5, 2), dtype=dtype, **options)
    if not conv_few.takes(relation(plan, False), 1, False):
        pytest.skip("this machine has too few registers for sums of so many channels")
    rng = np.random.default_rng(9)
    x, w = whole(rng, 1, 25, width, 6, dtype=dtype), whole(rng, 14, 6, 5, 2, dtype=dtype)
    y = dispatch.forward(plan, x, w, backend="reference")[0]
    found = np.full_like(y, 77)
    conv_few.compute_last(relation(plan, False), x, w, None, found)
    assert np.array_equal(found, y)
