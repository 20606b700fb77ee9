"""Deformable convolution: by hand, against loops and differences, and where it must equal a plain convolution."""

from __future__ import annotations

import numpy as np
import pytest
from tests.cases.deform_conv import CASES, REFUSALS, DeformCase
from tests.cases.records import Refusal
from tests.compare import assert_close, assert_near, assert_same
from tests.rules.refusals import assert_refused

import astride
from astride import dispatch
from astride.plan import DeformPlan, plan_from_dict

from .dense import check_contract


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_rungs_agree(case: DeformCase) -> None:
    plan, arrays = case.plan, case.arrays()
    assert isinstance(plan, DeformPlan) and plan_from_dict(plan.to_dict()) == plan
    before = [None if a is None else a.tobytes() for a in arrays]
    results = []
    for rung in ("columns", "loops4"):
        y, saved = dispatch.forward(plan, *arrays, save=True, backend=f"reference:{rung}")
        assert saved is not None
        dy = np.random.default_rng(1).integers(-4, 5, y.shape).astype(y.dtype)
        gradients = dispatch.backward(plan, dy, saved)
        for i, gradient in enumerate(gradients):
            alone = dispatch.backward(plan, dy, saved, want=[i == j for j in range(5)])
            assert all(g is None for j, g in enumerate(alone) if j != i)
            if gradient is not None:
                assert_same(alone[i], gradient)
        results.append((y, *gradients))
    tolerance = 1e-6 if plan.dtype.startswith("float") and plan.dtype != "float16" else 1e-2
    for a, b, array in zip(*results, (results[0][0], *arrays), strict=True):
        assert (a is None) == (array is None)
        if a is not None:
            assert_close(a, b, tolerance, str(case))
    assert [None if a is None else a.tobytes() for a in arrays] == before


@pytest.mark.parametrize("case", [case for case in CASES if case.plan.dtype not in ("float16", "bfloat16")], ids=str)
def test_arrays_as_they_come(case: DeformCase) -> None:
    """Any strides, read-only, into `out`: as the loops have it."""
    check_contract(case, lambda plan, *arrays: dispatch.forward(plan, *arrays, backend="reference:loops4")[0])


@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
def test_refused(refusal: Refusal) -> None:
    assert_refused("deform_conv", refusal)


def test_by_hand() -> None:
    #   0 10 20 40, every tap a quarter of a pixel further: 2.5, 12.5, 25, and of the last 3/4
    x, w = np.array([[[0.0, 10, 20, 40]]]), np.ones((1, 1, 1))
    offset = np.full((1, 1, 4), 0.25)
    y, pull = astride.vjp(astride.deform_conv, x, offset, w)
    assert y.tolist() == [[[2.5, 12.5, 25, 30]]]
    dx, doffset, dw = pull(np.ones_like(y))
    assert dx is not None and doffset is not None and dw is not None
    assert dx.tolist() == [[[0.75, 1, 1, 1]]]  # of the last tap's quarter nothing lies inside
    assert doffset.tolist() == [[[10, 10, 20, -40]]]  # slopes between the pixels, and down to 0 behind the last
    assert dw.tolist() == [[[70]]]
    half = astride.deform_conv(x, offset, w, mask=np.full((1, 1, 4), 0.5))
    assert half.tolist() == [[[1.25, 6.25, 12.5, 15]]]


def test_height_comes_before_width() -> None:
    x = np.arange(12.0).reshape(1, 1, 3, 4)
    offset = np.zeros((1, 2, 3, 4))
    offset[:, 0] = 1  # down
    assert astride.deform_conv(x, offset, np.ones((1, 1, 1, 1)))[0, 0].tolist() == [[4, 5, 6, 7], [8, 9, 10, 11], [0, 0, 0, 0]]


def test_taps_outside_read_nothing() -> None:
    """From a whole pixel outside on; up to there a share of the edge pixel. Infinity beside a whole position adds nothing."""
    x, w = np.array([[[8.0, 1, np.inf]]]), np.ones((1, 1, 1))
    for move, expected in ((-0.75, 2.0), (-1.0, 0.0), (-9.0, 0.0), (9.0, 0.0), (np.inf, 0.0), (1.0, 1.0)):
        assert astride.deform_conv(x, np.array([[[move, 0, 0]]]), w)[0, 0, 0] == expected
    assert np.isnan(astride.deform_conv(x, np.array([[[np.nan, 0, 0]]]), w)[0, 0]).tolist() == [True, False, False]


@pytest.mark.parametrize("shape", [(2, 4, 9), (2, 4, 6, 5), (1, 4, 4, 3, 4)])
def test_unmoved_it_is_a_convolution(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    rank = len(shape) - 2
    x, w, b = rng.normal(size=shape), rng.normal(size=(6, 2, *(2, 3, 2)[:rank])), rng.normal(size=6)
    plain = astride.conv(x, w, b, stride=2, padding=1, groups=2)
    offset = np.zeros((shape[0], 2 * w[0, 0].size * rank, *plain.shape[2:]))
    mask = np.ones((shape[0], 2 * w[0, 0].size, *plain.shape[2:]))
    assert_near(astride.deform_conv(x, offset, w, b, mask=mask, stride=2, padding=1, groups=2), plain, 1e-12)
    g = rng.normal(size=plain.shape)
    moved = astride.vjp(astride.deform_conv, x, offset, w, b, stride=2, padding=1, groups=2)[1](g)
    for a, e in zip((moved[0], *moved[2:]), astride.vjp(astride.conv, x, w, b, stride=2, padding=1, groups=2)[1](g), strict=True):
        assert_near(a, e, 1e-12)


def test_moved_by_whole_pixels_it_reads_elsewhere(rng: np.random.Generator) -> None:
    x, w = rng.normal(size=(1, 2, 5, 6)), rng.normal(size=(3, 2, 2, 2))
    shape = (1, 8, 4, 5)
    offset = np.tile(np.array([1.0, -2.0]), 4).reshape(1, 8, 1, 1) * np.ones(shape)
    shifted = np.zeros_like(x)
    shifted[:, :, :-1, 2:] = x[:, :, 1:, :-2]
    assert_near(astride.deform_conv(x, offset, w), astride.conv(shifted, w), 1e-12)


@pytest.mark.parametrize("layout", ["channels_first", "channels_last"])
@pytest.mark.parametrize("groups", [1, 2])
def test_gradients_against_differences(layout: str, groups: int, rng: np.random.Generator) -> None:
    for shape, kernel in (((1, 4, 5), (3,)), ((1, 4, 3, 3), (2, 3)), ((1, 2, 2, 2, 3), (2, 1, 2))):
        rank = len(kernel)
        w, b = rng.normal(size=(2 * groups, shape[1] // groups, *kernel)), rng.normal(size=2 * groups)
        plan = astride.plan("deform_conv", shape, w_shape=w.shape, groups=groups, offset_groups=2, padding=1)
        rows, outs = 2 * plan.taps, tuple(axis.out for axis in plan.axes)
        x, mask = rng.normal(size=shape), rng.normal(size=(1, rows, *outs))
        offset = rng.integers(-2, 3, (1, rows * rank, *outs)) + rng.uniform(0.1, 0.9, (1, rows * rank, *outs))
        arrays = [a if layout == "channels_first" else np.ascontiguousarray(np.moveaxis(a, 1, -1)) for a in (x, offset, mask)]
        keywords = dict(padding=1, groups=groups, layout=layout)
        x, offset, mask = arrays
        assert astride.check_gradient(astride.deform_conv, x, offset, w, b, mask, tolerance=1e-5, **keywords)


def test_arrays_that_do_not_fit() -> None:
    x, w = np.zeros((1, 2, 4, 4)), np.zeros((3, 2, 2, 2))
    with pytest.raises(astride.ArrayError, match=r"offset does not fit the plan"):
        astride.deform_conv(x, np.zeros((1, 9, 3, 3)), w)
    with pytest.raises(astride.ArrayError, match=r"mask does not fit the plan"):
        astride.deform_conv(x, np.zeros((1, 8, 3, 3)), w, mask=np.zeros((1, 8, 3, 3)))
    with pytest.raises(astride.ArrayError, match=r"offset has another dtype"):
        astride.deform_conv(x, np.zeros((1, 8, 3, 3), "float32"), w)
