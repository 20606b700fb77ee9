"""The gradient of the weights of windows of one pixel as a product of matrices: whole numbers are exact whatever is cut, threads
change nothing, and what is not there is neither read nor written."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import astride
from astride import dispatch
from astride.backends.cpu import conv_choice, conv_weights_matrix
from astride.backends.cpu.conv_relation import Relation
from astride.plan import StridedAxis

Array = NDArray[Any]


def axis(out: int, stride: int = 1, more: int = 0) -> StridedAxis:
    """One whose windows are single pixels, with `more` pixels behind the last."""
    size = (out - 1) * stride + 1 + more
    return StridedAxis(size=size, kernel=1, stride=stride, dilation=1, pad_lo=0, pad_hi=0, out=out)


CASES = [
    (Relation("float32", (axis(14), axis(14)), 40, 300, 1, False, False), 3),
    (Relation("float32", (axis(7), axis(7)), 270, 33, 1, False, False), 9),
    (Relation("float32", (axis(600),), 64, 13, 1, True, False), 2),
    (Relation("float64", (axis(5, 2, 1), axis(30, 3)), 12, 50, 2, False, False), 2),
    (Relation("float32", (axis(3), axis(4, 2), axis(6)), 30, 6, 3, True, False), 1),
    (Relation("float32", (axis(1),), 1, 1, 1, False, False), 1),
    (Relation("float32", (axis(20), axis(20)), 512, 20, 1, False, False), 1),
    (Relation("float32", (axis(32), axis(32)), 160, 130, 1, False, False), 1),
    (Relation("float64", (axis(9),), 256, 256, 1, True, False), 40),
    (Relation("float64", (axis(9),), 256, 2, 1, True, False), 1),
    (Relation("float32", (axis(5), axis(6)), 3, 512, 1, False, False), 2),
]


def arrays(relation: Relation, images: int, first: bool) -> tuple[Array, Array, Array]:
    """x, the gradient of y, and that of the weights by a plain sum."""
    rng = np.random.default_rng(0)
    axes, groups = relation.axes, relation.groups
    x = rng.integers(-3, 4, (images, *[a.size for a in axes], relation.inputs)).astype(relation.dtype)
    dy = rng.integers(-3, 4, (images, *[a.out for a in axes], relation.outputs)).astype(relation.dtype)
    read = x[(slice(None), *[slice(0, (a.out - 1) * a.stride + 1, a.stride) for a in axes])]
    of_x, of_y = (a.reshape(-1, groups, a.shape[-1] // groups) for a in (read, dy))
    sums = np.einsum("pgi,pgo->gio" if relation.swapped else "pgi,pgo->goi", of_x, of_y, optimize=True)
    dw = sums.reshape(-1, sums.shape[-1], *[1] * len(axes))
    return (*(np.ascontiguousarray(np.moveaxis(a, -1, 1)) if first else a for a in (x, dy)), dw)


@pytest.mark.parametrize("first", [False, True], ids=["last", "first"])
@pytest.mark.parametrize(("relation", "images"), CASES, ids=str)
def test_whole_numbers_are_exact(relation: Relation, images: int, first: bool) -> None:
    x, dy, expected = arrays(relation, images, first)
    assert conv_weights_matrix.takes(relation)
    for threads in (1, 2, 3):
        with astride.use(threads=threads):
            got = conv_weights_matrix.weights_gradient(relation, x, dy, expected.shape, first)
        assert got.dtype == relation.dtype and np.array_equal(got, expected)


@pytest.mark.parametrize("first", [False, True], ids=["last", "first"])
def test_threads_do_not_show(first: bool) -> None:
    relation = Relation("float32", (axis(40), axis(40)), 70, 90, 1, False, False)
    rng = np.random.default_rng(1)
    x, dy = (rng.standard_normal((2, n, 40, 40) if first else (2, 40, 40, n), np.float32) for n in (70, 90))
    found = []
    for threads in (1, 2, 3):
        with astride.use(threads=threads):
            found.append(conv_weights_matrix.weights_gradient(relation, x, dy, (90, 70, 1, 1), first))
    assert np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2])
    columns = (a.swapaxes(0, 1).reshape(a.shape[1], -1) if first else a.reshape(-1, a.shape[-1]).T for a in (dy, x))
    a, b = (c.astype(np.float64) for c in columns)
    assert np.abs(found[0].reshape(90, 70) - a @ b.T).max() < 2e-4


def test_what_is_not_finite_stays_in_its_row_and_column() -> None:
    relation = Relation("float32", (axis(300),), 45, 30, 1, False, False)
    x, dy, expected = arrays(relation, 1, False)
    x[0, 7, 44], dy[0, 299, 29] = np.inf, np.nan
    dy[0, 7] = 1
    expected = np.einsum("po,pi->oi", np.nan_to_num(dy[0]), np.nan_to_num(x[0], posinf=0)).reshape(30, 45, 1)
    expected[:, 44], expected[29] = np.inf, np.nan
    got = conv_weights_matrix.weights_gradient(relation, x, dy, (30, 45, 1), False)
    assert np.array_equal(got, expected, equal_nan=True)


@pytest.mark.parametrize("layout", ["channels_first", "channels_last"])
def test_it_is_reached(layout: str) -> None:
    x_shape = (2, 24, 9, 9) if layout == "channels_first" else (2, 9, 9, 24)
    plan = astride.plan("conv", x_shape, w_shape=(40, 24, 1, 1), stride=2, layout=layout)
    rng = np.random.default_rng(2)
    x, w = rng.integers(-3, 4, x_shape).astype(np.float32), rng.integers(-3, 4, (40, 24, 1, 1)).astype(np.float32)
    found = {}
    for backend in ("cpu", "reference:im2col"):
        y, saved = dispatch.forward(plan, x, w, None, save=True, backend=backend)
        assert saved is not None
        with conv_choice.forced("matrix"):
            found[backend] = np.asarray(dispatch.backward(plan, np.ones_like(y), saved, want=(False, True, False))[1])
    assert np.array_equal(found["cpu"], found["reference:im2col"])


def test_other_windows_are_declined() -> None:
    relation = CASES[0][0]
    wide = dataclasses.replace(relation, axes=(axis(4), StridedAxis(9, 2, 1, 1, 0, 0, 8)))
    padded = dataclasses.replace(relation, axes=(StridedAxis(9, 1, 1, 1, 1, 1, 11),))
    depthwise = dataclasses.replace(relation, inputs=6, outputs=6, groups=6)
    assert not any(conv_weights_matrix.takes(r) for r in (wide, padded, depthwise))
    x = np.zeros((0, 40, 14, 14), np.float32)
    assert not conv_weights_matrix.weights_gradient(relation, x, x[:, :1], (300, 40, 1, 1), True).any()
