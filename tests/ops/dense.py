"""What every dense operator must keep to, checked case by case."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.cases.dense import DenseCase, DenseRefusal

import astride
from astride import ops
from astride.plan import plan_from_dict

Array = NDArray[Any]


def check_contract(case: DenseCase, expected: Callable[..., Any]) -> None:
    """The value, for arrays of any strides and read-only ones; inputs unchanged; `out` written in full; the plan as data."""
    arrays = case.arrays()
    before = [None if a is None else a.copy() for a in arrays]
    wanted = np.asarray(expected(case.plan, *arrays))
    y, saved = ops.forward(case.plan, *arrays)
    assert saved is None and y.dtype == case.plan.output_dtype and y.flags.c_contiguous
    np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-6)
    strided = [_strided(a) for a in arrays]
    np.testing.assert_allclose(ops.forward(case.plan, *strided)[0], y, rtol=1e-6, atol=1e-6)
    out = np.full(y.shape, 7, y.dtype)
    assert ops.forward(case.plan, *arrays, out=out)[0] is out
    np.testing.assert_array_equal(out, y)
    wide = np.full((*y.shape, 2), 7, y.dtype)[..., 0]
    np.testing.assert_allclose(ops.forward(case.plan, *arrays, out=wide)[0], y, rtol=1e-6, atol=1e-6)
    for array, copy in zip(arrays, before, strict=True):
        assert (array is None) == (copy is None)
        if array is not None and copy is not None:
            np.testing.assert_array_equal(array, copy)
    assert plan_from_dict(case.plan.to_dict()) == case.plan


def check_gradient(case: DenseCase, *, shift: float = 0.25) -> None:
    """Central differences in float64; inputs are moved off whole numbers, where a function may have a kink."""
    case = case.double()
    arrays = [np.asarray(a + shift) if a is not None and a.dtype.kind == "f" else a for a in case.arrays()]
    y, saved = ops.forward(case.plan, *arrays, save=True)
    assert saved is not None
    dy = np.asarray(np.random.default_rng(1).normal(size=y.shape))
    gradients = ops.backward(case.plan, dy, saved)
    for array, gradient in zip(arrays, gradients, strict=True):
        if array is None or array.dtype.kind != "f":
            assert gradient is None
            continue
        assert isinstance(gradient, np.ndarray) and gradient.shape == array.shape and gradient.dtype == np.float64
        numeric = np.zeros(array.shape)
        for place in np.ndindex(array.shape):
            value = array[place]
            for sign in (1, -1):
                array[place] = value + sign * 1e-6
                numeric[place] += sign * float((dy * ops.forward(case.plan, *arrays)[0]).sum()) / 2e-6
            array[place] = value
        np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-7)


def check_refusal(operator: Callable[..., Any], refusal: DenseRefusal) -> None:
    with pytest.raises(getattr(astride, refusal.error)) as caught:
        operator(*refusal.made(), **refusal.keywords)
    for text in refusal.says:
        assert text in str(caught.value)
    assert str(caught.value).startswith(operator.__name__)


def check_wanted(case: DenseCase) -> None:
    """Gradients that nobody wants are not there; those wanted do not depend on the others."""
    y, saved = ops.forward(case.plan, *case.arrays(), save=True)
    assert saved is not None
    dy = np.ones_like(y)
    everything = ops.backward(case.plan, dy, saved)
    for i, gradient in enumerate(everything):
        alone = ops.backward(case.plan, dy, saved, want=[i == j for j in range(len(everything))])
        assert all(g is None for j, g in enumerate(alone) if j != i)
        if gradient is not None:
            np.testing.assert_array_equal(alone[i], gradient)  # type: ignore[arg-type]


def _strided(array: Array | None) -> Array | None:
    """The same numbers at every second place of a larger array, in reverse, not writeable."""
    if array is None:
        return None
    spread = np.full((*array.shape, 2), 99, array.dtype)[..., ::-1]
    spread[..., 0] = array
    view = spread[..., 0]
    view.flags.writeable = False
    return view
