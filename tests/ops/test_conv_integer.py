"""Integer convolution: by hand, against exact integers, its rounding and saturation."""

from __future__ import annotations

import numpy as np
import pytest
from tests.cases.conv_integer import CASES, REFUSALS, IntegerCase
from tests.cases.records import Refusal
from tests.compare import assert_same
from tests.rules.refusals import assert_refused

import astride
from astride import dispatch
from astride.backends import backend
from astride.plan import IntegerConvPlan, plan_from_dict
from astride.plan.kinds import Layout

from .dense import check_contract


def exact(plan: IntegerConvPlan, *arrays: np.ndarray | None) -> np.ndarray:
    """Python's integers, window by window; scales are powers of two, so fractions are exact."""
    x, w, x_zero, w_zero, b, *scales, y_zero = arrays
    assert x is not None and w is not None
    xv = (x if plan.layout is Layout.CHANNELS_FIRST else np.moveaxis(x, -1, 1)).astype(object)
    wv = w.astype(object)
    xv = xv - (0 if x_zero is None else int(x_zero.ravel()[0]))
    zeros = [0] if w_zero is None else [int(z) for z in w_zero.ravel()]
    y = np.zeros((x.shape[0], plan.out_channels, *(axis.out for axis in plan.axes)), object)
    inner, outer = plan.in_channels // plan.groups, plan.out_channels // plan.groups
    for n, o, *window in np.ndindex(*y.shape):
        total = 0 if b is None else int(b[o])
        for c, *tap in np.ndindex(*w.shape[1:]):
            at = [a.taps(i)[k] for a, i, k in zip(plan.axes, window, tap, strict=True)]
            if all(0 <= p < a.size for p, a in zip(at, plan.axes, strict=True)):
                total += xv[(n, o // outer * inner + c, *at)] * (wv[(o, c, *tap)] - zeros[o % len(zeros)])
        if plan.quantised:
            x_scale, w_scale, y_scale = (s.ravel() for s in scales if s is not None)
            scale = float(x_scale[0]) * float(w_scale[o % len(w_scale)]) / float(y_scale[0])
            limits = np.iinfo(plan.y_dtype)
            total = min(max(round(total * scale) + int(y_zero.ravel()[0]), limits.min), limits.max)  # type: ignore[union-attr]
        y[(n, o, *window)] = total
    return (y if plan.layout is Layout.CHANNELS_FIRST else np.moveaxis(y, 1, -1)).astype(plan.y_dtype)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_rung_is_exact(case: IntegerCase) -> None:
    plan, arrays = case.plan, case.arrays()
    assert isinstance(plan, IntegerConvPlan) and plan_from_dict(plan.to_dict()) == plan
    expected = exact(plan, *arrays)
    before = [None if a is None else a.tobytes() for a in arrays]
    for kernel in backend("reference").kernels("conv_integer"):
        y, saved = dispatch.forward(plan, *arrays, save=True, backend=f"reference:{kernel.name}")
        assert_same(y, expected, f"{case}, {kernel.name}")
    assert saved is not None
    with pytest.raises(astride.UnsupportedError, match="integers have no gradient"):
        dispatch.backward(plan, np.ones_like(y), saved)
    assert [None if a is None else a.tobytes() for a in arrays] == before


@pytest.mark.parametrize("case", CASES, ids=str)
def test_arrays_as_they_come(case: IntegerCase) -> None:
    """Any strides, read-only, into `out`: as the loops have it."""
    check_contract(case, lambda plan, *arrays: dispatch.forward(plan, *arrays, backend="reference:loops4")[0])


@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
def test_refused(refusal: Refusal) -> None:
    assert_refused("conv_integer", refusal)


def test_by_hand() -> None:
    #   3 4 5 less the zero point 3:  . 0 1 2 .   times  1 -1
    x, w = np.array([[[3, 4, 5]]], "uint8"), np.array([[[1, -1]]], "int8")
    y = astride.conv_integer(x, w, x_zero_point=3, padding=1)
    assert (y.tolist(), y.dtype) == ([[[0, -1, -1, 2]]], np.int32)
    #   scaled by 1/2: 0 -0.5 -0.5 1, halves to even, plus 10
    y = astride.conv_integer(x, w, x_zero_point=3, padding=1, x_scale=0.5, w_scale=1, y_scale=1, y_zero_point=np.uint8(10))
    assert (y.tolist(), y.dtype) == ([[[10, 10, 10, 11]]], np.uint8)


def test_halves_go_to_the_even_number_before_the_zero_point_is_added() -> None:
    x, w = np.array([[[1, 3, 5, 7]]], "uint8"), np.array([[[1]]], "int8")
    for zero in (0, 1):  # 0.5 1.5 2.5 3.5
        y = astride.conv_integer(x, w, x_scale=0.5, w_scale=1, y_scale=1, y_zero_point=np.uint8(zero))
        assert y.tolist() == [[[0 + zero, 2 + zero, 2 + zero, 4 + zero]]]


def test_results_saturate_and_sums_wrap() -> None:
    x, w = np.array([[[0, 255]]], "uint8"), np.array([[[127]], [[-128]]], "int8")
    y = astride.conv_integer(x, w, x_scale=1, w_scale=1, y_scale=1, y_zero_point=np.int8(-3))
    assert y.tolist() == [[[-3, 127], [-3, -128]]]
    x = np.full((1, 40000, 1), 255, "uint8")
    w = np.full((1, 40000, 1), 255, "uint8")
    assert astride.conv_integer(x, w).item() == 40000 * 255 * 255 - 2**32


def test_arrays_that_do_not_fit() -> None:
    x, w = np.zeros((1, 2, 4), "uint8"), np.zeros((3, 2, 2), "int8")
    with pytest.raises(astride.ArrayError, match=r"y_scale is missing"):
        astride.conv_integer(x, w, x_scale=1, w_scale=1)
    with pytest.raises(astride.ArrayError, match=r"x_zero_point has another dtype"):
        astride.conv_integer(x, w, x_zero_point=np.int8(0))
    with pytest.raises(astride.ArrayError, match=r"x_zero_point does not fit its dtype"):
        astride.conv_integer(x, w, x_zero_point=-1)
    with pytest.raises(astride.ArrayError, match=r"x_zero_point is not one number"):
        astride.conv_integer(x, w, x_zero_point=np.zeros(2, "uint8"))
    with pytest.raises(astride.ArrayError, match=r"b has another dtype"):
        astride.conv_integer(x, w, np.zeros(3, "int64"))
    assert astride.vjp(astride.conv_integer, x, w)[1](np.zeros((1, 3, 3), "int32")) == (None, None)
