"""Unfold: by hand, against loops, its adjoint, and the convolution it stands for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.cases.dense import Array, DenseCase, DenseRefusal
from tests.cases.unfold import CASES, REFUSALS

import astride
from astride.plan import UnfoldPlan
from astride.plan.kinds import Edge, Layout

from .dense import check_contract, check_gradient, check_refusal, check_wanted


def loops(plan: UnfoldPlan, x: Array) -> Array:
    if plan.layout is Layout.CHANNELS_LAST:
        first = replace(plan, layout=Layout.CHANNELS_FIRST)
        return np.moveaxis(loops(first, np.moveaxis(x, -1, 1)), 1, -1)
    y = np.zeros(plan.output_shape(x.shape))
    kernel = tuple(axis.kernel for axis in plan.axes)
    for n, c in np.ndindex(x.shape[:2]):
        for i in np.ndindex(*(axis.out for axis in plan.axes)):
            for j, tap in enumerate(np.ndindex(*kernel)):
                at = [o * a.stride - a.pad_lo + k * a.dilation for o, k, a in zip(i, tap, plan.axes, strict=True)]
                if plan.edge is Edge.MIRROR:
                    at = [s - abs(s - abs(p)) for p, s in zip(at, (m - 1 for m in x.shape[2:]), strict=True)]
                if plan.edge is Edge.CLAMP:
                    at = [min(max(p, 0), m - 1) for p, m in zip(at, x.shape[2:], strict=True)]
                if all(0 <= p < m for p, m in zip(at, x.shape[2:], strict=True)):
                    y[(n, c * plan.taps + j, *i)] = x[(n, c, *at)]
    return y


@pytest.mark.parametrize("case", CASES, ids=str)
def test_contract(case: DenseCase) -> None:
    check_contract(case, loops)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradient(case: DenseCase) -> None:
    check_gradient(case)
    check_wanted(case)


@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
def test_refusal(refusal: DenseRefusal) -> None:
    check_refusal(astride.unfold, refusal)


def test_by_hand() -> None:
    #  1 2 3                  windows  1 2 4 5   2 3 5 6
    #  4 5 6                  of 2 x 2
    x = np.array([[[[1.0, 2, 3], [4, 5, 6]]]])
    assert astride.unfold(x, kernel=2).tolist() == [[[[1, 2]], [[2, 3]], [[4, 5]], [[5, 6]]]]
    assert astride.unfold(x, kernel=(1, 2), padding=(0, 1), stride=2).tolist() == [[[[0, 2]], [[1, 3]]]]


def test_columns_make_a_convolution_one_product() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(-4, 5, (2, 3, 7, 6)).astype(np.float64)
    w = rng.integers(-4, 5, (4, 3, 3, 2)).astype(np.float64)
    columns = astride.unfold(x, kernel=(3, 2), stride=2, padding=1)
    y = np.einsum("ok,nkhw->nohw", w.reshape(4, -1), columns)
    np.testing.assert_array_equal(y, astride.conv(x, w, stride=2, padding=1))


def test_pixels_gather_from_every_window_that_reads_them() -> None:
    y, pull = astride.vjp(astride.unfold, np.zeros((1, 1, 4)), kernel=2)
    assert pull(np.ones_like(y))[0].tolist() == [[[1, 2, 2, 1]]]  # type: ignore[union-attr]
