"""Global pooling against NumPy's own reductions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.cases.global_pool import CASES, GlobalCase
from tests.compare import assert_close, assert_same

import astride

REDUCTIONS: dict[str, Any] = {
    "average": np.mean,
    "max": np.max,
    "min": np.min,
    "lp": lambda x, axis, keepdims: np.sqrt((x * x).sum(axis=axis, keepdims=keepdims)),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_is_a_reduction_over_the_plane(case: GlobalCase, rng: np.random.Generator) -> None:
    x = rng.normal(size=case.shape)
    first = case.options["layout"] == "channels_first"
    axes = tuple(range(2, x.ndim)) if first else tuple(range(1, x.ndim - 1))
    expected = REDUCTIONS[case.options["reduce"]](x, axis=axes, keepdims=True)
    assert_close(astride.global_pool(x, **case.options), expected, 1e-14)
    assert astride.check_gradient(astride.global_pool, x, **case.options)


def test_by_hand() -> None:
    #   1 2 3        mean 3.5   greatest 6   least 1
    #   4 5 6
    x = np.array([[[[1.0, 2, 3], [4, 5, 6]]]])
    assert [astride.global_pool(x, reduce=r).item() for r in ("average", "max", "min")] == [3.5, 6, 1]
    y, pull = astride.vjp(astride.global_pool, x, reduce="max")
    assert_same(pull(np.ones_like(y))[0], np.array([[[[0.0, 0, 0], [0, 0, 1]]]]))


def test_the_rules_keep_their_own_edges() -> None:
    """Of a plane with a NaN first, Caffe's maximum is 3 and PyTorch's NaN."""
    x = np.array([[[np.nan, 1, 2, 3]]], "float32")
    assert astride.global_pool(x, reduce="max", rules="caffe").item() == 3
    assert math.isnan(astride.global_pool(x, reduce="max", rules="pytorch").item())


def test_refusals() -> None:
    x = np.zeros((1, 1, 4))
    with pytest.raises(astride.ArgumentError, match=r"global_pool \[explicit\]: reduce has no such value"):
        astride.global_pool(x, reduce="median")
    with pytest.raises(astride.ArrayError, match="global_pool: x has no spatial axes"):
        astride.global_pool(np.zeros((1, 1)))
    with pytest.raises(astride.ArgumentError, match="the window is not the whole plane"):
        astride.global_pool(x, padding=1)
    with pytest.raises(astride.UnsupportedError, match="global_pool"):
        astride.global_pool(x, reduce="lp", rules="caffe")
    with pytest.raises(astride.ArgumentError, match="no layout of that name"):
        astride.global_pool(x, layout="channels_middle")
