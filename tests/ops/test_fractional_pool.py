"""Fractional max pooling: by hand, against loops, PyTorch's order of samples."""

from __future__ import annotations

import numpy as np
import pytest
from tests.cases.fractional_pool import CASES, REFUSALS, FractionalCase
from tests.cases.records import Refusal
from tests.compare import assert_same
from tests.rules.refusals import assert_refused

import astride
from astride import dispatch
from astride.backends import backend
from astride.like import pytorch as F
from astride.ops.fractional_pool import indices_of
from astride.plan import FractionalPlan, plan_from_dict

from .dense import check_contract


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_rungs_agree(case: FractionalCase) -> None:
    plan, arrays = case.plan, case.arrays()
    assert isinstance(plan, FractionalPlan) and plan_from_dict(plan.to_dict()) == plan
    before = [a.tobytes() for a in arrays if a is not None]
    results = []
    for kernel in backend("reference").kernels("fractional_pool"):
        y, saved = dispatch.forward(plan, *arrays, save=True, backend=f"reference:{kernel.name}")
        assert saved is not None
        dy = np.random.default_rng(1).integers(-4, 5, y.shape).astype(y.dtype)
        gradients = dispatch.backward(plan, dy, saved)
        assert gradients[1] is None and dispatch.backward(plan, dy, saved, want=(False,)) == (None, None)
        results.append((y, indices_of(plan, saved), gradients[0]))
    assert len(results) == 2
    for a, b in zip(*results, strict=True):
        assert_same(a, b, str(case))
    assert [a.tobytes() for a in arrays if a is not None] == before


@pytest.mark.parametrize("case", [case for case in CASES if case.plan.dtype not in ("float16", "bfloat16")], ids=str)
def test_arrays_as_they_come(case: FractionalCase) -> None:
    """Any strides, read-only, into `out`: as the loops have it."""
    check_contract(case, lambda plan, *arrays: dispatch.forward(plan, *arrays, backend="reference:loops4")[0])


@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
def test_refused(refusal: Refusal) -> None:
    assert_refused("fractional_pool", refusal)


def test_a_nan_of_several() -> None:
    """The explicit rules take the first, as in all their maxima; PyTorch the last."""
    x = np.array([1, np.nan, np.nan, 2]).reshape(1, 1, 1, 4)
    common = dict(kernel=(1, 4), output_size=1, samples=np.zeros((1, 1, 2)), return_indices=True)
    for chosen, index in ((dict(), 1), (dict(tie="last_nan"), 2), (dict(rules="pytorch"), 2)):
        y, indices = astride.fractional_pool(x, **common, **chosen)
        assert np.isnan(y).all() and indices.item() == index
        _, pull = astride.vjp(astride.fractional_pool, x, **common | dict(return_indices=False), **chosen)
        assert np.flatnonzero(pull(np.ones_like(y))[0]).tolist() == [index]
    assert astride.max_pool(x, kernel=(1, 4), return_indices=True)[1].item() == 1


def test_by_hand() -> None:
    """7 pixels, windows of 2, 4 outputs: a step of 5/3, from 1/2 of one: starts 0, 2, 4 - 0, and the last at 5."""
    x = np.array([[[3.0, 1, 4, 1, 5, 9, 2]]])
    samples = np.array([[[0.5]]])  # (i + 1/2) 5/3 = 0.83, 2.5, 4.17
    y, indices = astride.fractional_pool(x, kernel=2, output_size=4, samples=samples, return_indices=True)
    assert (y.tolist(), indices.tolist()) == ([[[3, 4, 9, 9]]], [[[0, 2, 5, 5]]])
    y, pull = astride.vjp(astride.fractional_pool, x, kernel=2, output_size=4, samples=samples)
    assert pull(np.ones_like(y))[0].tolist() == [[[1, 0, 1, 0, 0, 2, 0]]]  # type: ignore[union-attr]


def test_pytorch_takes_the_width_first_in_two_dimensions() -> None:
    x = np.arange(100.0).reshape(1, 1, 10, 10)
    samples = np.array([[[0.9, 0.1]]])
    y = F.fractional_max_pool2d(x, 2, output_size=4, _random_samples=samples)
    assert_same(y, astride.fractional_pool(x, kernel=2, output_size=4, samples=samples[..., ::-1]))
    assert not np.array_equal(y, astride.fractional_pool(x, kernel=2, output_size=4, samples=samples))
    x, samples = np.arange(216.0).reshape(1, 1, 6, 6, 6), np.array([[[0.9, 0.1, 0.5]]])
    y = F.fractional_max_pool3d(x, 2, output_size=4, _random_samples=samples)
    assert_same(y, astride.fractional_pool(x, kernel=2, output_size=4, samples=samples))


def test_every_window_lies_inside_and_the_last_ends_with_the_input() -> None:
    x = np.arange(40.0).reshape(1, 1, 40)
    for kernel in (1, 2, 3, 5):
        for out in range(1, 36):
            for u in (0.0, 0.25, 0.999):
                samples = np.array([[[u]]])
                y = astride.fractional_pool(x, kernel=kernel, output_size=out, samples=samples).ravel()
                assert y[-1] == 39 and y[0] >= kernel - 1 and (np.diff(y) >= 1).all()


def test_draws_are_the_seeds() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 12, 12))
    one, again, other = (astride.fractional_pool(x, kernel=2, output_ratio=0.6, seed=s) for s in (1, 1, 2))
    assert_same(one, again)
    assert not np.array_equal(one, other)
    assert F.fractional_max_pool2d(x[0], 2, output_ratio=(0.5, 0.5)).shape == (3, 6, 6)
    with pytest.raises(astride.ArgumentError, match="samples or seed, one of them"):
        astride.fractional_pool(x, kernel=2, output_size=3)


def test_gradient(rng: np.random.Generator) -> None:
    x, samples = rng.normal(size=(2, 3, 9, 7)), rng.uniform(size=(2, 3, 2))
    for layout, image in (("channels_first", x), ("channels_last", np.moveaxis(x, 1, -1))):
        assert astride.check_gradient(
            astride.fractional_pool, image, kernel=(3, 2), output_size=(4, 5), samples=samples, layout=layout
        )


def test_samples_that_are_none() -> None:
    x = np.zeros((1, 1, 6))
    for samples in (np.array([[[np.nan]]]), np.array([[[1e300]]])):
        with pytest.raises(astride.ArgumentError, match="samples are no numbers of ordinary size"):
            astride.fractional_pool(x, kernel=2, output_size=3, samples=samples)
    with pytest.raises(astride.ArrayError, match="samples need one number per plane and axis"):
        astride.fractional_pool(x, kernel=2, output_size=3, samples=np.zeros((1, 2, 1)))


def test_a_window_of_minus_infinity_stays_one_and_has_an_index() -> None:
    x = np.full((1, 1, 6), -np.inf)
    y, indices = astride.fractional_pool(x, kernel=2, output_size=3, samples=np.full((1, 1, 1), 0.5), return_indices=True)
    assert (y.tolist(), indices.tolist()) == ([[[-np.inf] * 3]], [[[0, 2, 4]]])
