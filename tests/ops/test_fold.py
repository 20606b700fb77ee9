"""Fold: by hand, and as the adjoint of unfold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.cases.dense import Array, DenseCase, DenseRefusal
from tests.cases.fold import CASES, REFUSALS

import astride
from astride import ops
from astride.like import pytorch as F
from astride.plan import UnfoldPlan
from astride.plan.kinds import Direction, Layout

from .dense import check_contract, check_gradient, check_refusal, check_wanted


def by_unfolding_every_pixel(plan: UnfoldPlan, columns: Array) -> Array:
    """y[p] = <unfold of an image with a one at p alone, columns>, image by image and channel by channel."""
    if plan.layout is Layout.CHANNELS_LAST:
        return np.moveaxis(
            by_unfolding_every_pixel(replace(plan, layout=Layout.CHANNELS_FIRST), np.moveaxis(columns, -1, 1)), 1, -1
        )
    unfold = replace(plan, direction=Direction.FORWARD, dtype="float64")
    y = np.zeros(plan.output_shape(columns.shape))
    rows = columns.astype(np.float64).reshape(*y.shape[:2], plan.taps, *columns.shape[2:])
    for place in np.ndindex(y.shape[2:]):
        image = np.zeros((1, 1, *y.shape[2:]))
        image[(0, 0, *place)] = 1
        y[(..., *place)] = (rows * ops.forward(unfold, image)[0]).sum(axis=tuple(range(2, rows.ndim)))
    return y


@pytest.mark.parametrize("case", CASES, ids=str)
def test_contract(case: DenseCase) -> None:
    check_contract(case, by_unfolding_every_pixel)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradient(case: DenseCase) -> None:
    check_gradient(case)
    check_wanted(case)


@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
def test_refusal(refusal: DenseRefusal) -> None:
    check_refusal(astride.fold, refusal)


def test_by_hand() -> None:
    #  1 2           1  2 .      . . .       1   12   20
    #  10 20    ->   . 10 20  +  . . .   ...
    x = np.array([[[1.0, 2], [10, 20]]])
    assert astride.fold(x, output_size=3, kernel=2).tolist() == [[[1, 12, 20]]]
    #  one row for each tap of 2 x 2, one column for each of two windows beside each other
    x = np.array([[[1.0, 2], [3, 4], [5, 6], [7, 8]]])
    assert astride.fold(x, output_size=(2, 3), kernel=2).tolist() == [[[[1, 5, 4], [5, 13, 8]]]]
    _, pull = astride.vjp(astride.fold, x, output_size=(2, 3), kernel=2)
    assert pull(np.arange(6.0).reshape(1, 1, 2, 3))[0].tolist() == [[[0, 1], [1, 2], [3, 4], [4, 5]]]  # type: ignore[union-attr]


def test_windows_side_by_side_come_back_whole(rng: np.random.Generator) -> None:
    x = rng.normal(size=(2, 3, 6, 4))
    columns = astride.unfold(x, kernel=2, stride=2)
    np.testing.assert_array_equal(astride.fold(columns, output_size=(6, 4), kernel=2, stride=2), x)
    flat = F.unfold(x, 2, stride=2)
    assert flat.shape == (2, 12, 6)
    np.testing.assert_array_equal(F.fold(flat, (6, 4), 2, stride=2), x)
    np.testing.assert_array_equal(F.fold(flat[0], (6, 4), 2, stride=2), x[0])


def test_channels_last(rng: np.random.Generator) -> None:
    x = rng.integers(-4, 5, (2, 3, 5, 4)).astype(np.float64)
    last = np.moveaxis(x, 1, -1)
    columns = astride.unfold(x, kernel=(3, 2), padding=1)
    same = astride.unfold(last, kernel=(3, 2), padding=1, layout="channels_last")
    np.testing.assert_array_equal(np.moveaxis(same, -1, 1), columns)
    y = astride.fold(same, output_size=(5, 4), kernel=(3, 2), padding=1, layout="channels_last")
    np.testing.assert_array_equal(np.moveaxis(y, -1, 1), astride.fold(columns, output_size=(5, 4), kernel=(3, 2), padding=1))
    flat = same.reshape(2, -1, same.shape[-1])
    np.testing.assert_array_equal(astride.fold(flat, output_size=(5, 4), kernel=(3, 2), padding=1, layout="NHWC"), y)
