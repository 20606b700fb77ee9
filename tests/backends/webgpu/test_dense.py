"""The dense operators on a device, every case of theirs, against the reference."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from tests.cases.dense import DenseCase
from tests.compare import assert_close

from astride import dispatch
from astride.backends.webgpu import dense_recipe as recipes
from astride.backends.webgpu.commands import CommandBuffer
from astride.backends.webgpu.device import Device
from astride.backends.webgpu.recipe import MOST_TERMS, encode
from astride.errors import ArrayError, UnsupportedError
from astride.plan import ElementwisePlan, LrnPlan, MatmulPlan, SoftmaxLossPlan, SoftmaxPlan
from astride.plan.dense import Function

OPERATORS = ("broadcast", "elementwise", "lrn", "matmul", "reduce", "softmax", "softmax_loss")
ALL = [
    (op, case)
    for op in OPERATORS
    for case in import_module(f"tests.cases.{op}").CASES
    if case.plan.dtype == "float32" and not (op == "softmax_loss" and case.shapes[2] is not None)
]
CLOSE = 3e-6


def both(plan: Any, arrays: Any) -> list[tuple[str, Any, Any]]:
    """(what, on the device, by the reference) of the result and of every gradient."""
    found: list[list[Any]] = []
    for backend in ("webgpu", "reference"):
        y, saved = dispatch.forward(plan, *arrays, save=True, backend=backend)
        dy = np.random.default_rng(5).integers(-3, 4, y.shape).astype(y.dtype)
        assert saved is not None
        found.append([y, *dispatch.backward(plan, dy, saved)])
    return list(zip(("y", *plan.roles), *found, strict=False))


@pytest.mark.parametrize(("op", "case"), ALL, ids=[f"{op}: {case}" for op, case in ALL])
def test_equals_the_reference(device: Device, op: str, case: DenseCase) -> None:
    for what, here, there in both(case.plan, case.arrays()):
        assert (here is None) == (there is None), what
        if there is not None:
            # slopes at a kink that the reference has in one type and the device in another are numbers all the same
            assert_close(here, there, CLOSE, what, scale=1.0)


@pytest.mark.parametrize("function", [f for f in Function if not f.binary])
def test_non_finite_numbers(device: Device, function: Function) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, 1e-6, -1e-6, 90.0, -90.0, 3e38, 0.3, -0.3, -1.5], np.float32)
    fields: dict[str, float] = {"slope": 0.5} if function in (Function.RELU, Function.ELU) else {}
    plan = ElementwisePlan(dtype="float32", function=function, **fields)  # type: ignore[arg-type]
    here, there = (dispatch.forward(plan, x, backend=b)[0] for b in ("webgpu", "reference"))
    # results too small for a normal number may be flushed to zero
    there = np.where(np.abs(there) < 1.2e-38, 0, there)
    here = np.where(np.abs(here) < 1.2e-38, 0, here)
    np.testing.assert_allclose(here, there, rtol=2e-5, atol=1e-7)


def test_relu_of_an_infinity_and_of_nan(device: Device) -> None:
    x = np.array([np.nan, np.inf, -np.inf, -0.0], np.float32)
    plan = ElementwisePlan(dtype="float32", function=Function.RELU)
    np.testing.assert_array_equal(dispatch.forward(plan, x, backend="webgpu")[0], [np.nan, np.inf, 0, 0])


def test_softmax_of_rows_with_no_answer(device: Device) -> None:
    x = np.array([[1, np.nan, 2], [np.inf, 1, 2], [-np.inf, 1, 2], [1e4, 0, -1e4]], np.float32)
    plan = SoftmaxPlan(dtype="float32")
    here, there = (dispatch.forward(plan, x, backend=b)[0] for b in ("webgpu", "reference"))
    np.testing.assert_allclose(here, there, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("rows", [3, 4096])
def test_a_product_in_tiles(device: Device, rows: int) -> None:
    """Products larger than a tile, whose sums are exact; the gradient of the weights is a long sum, split."""
    plan = MatmulPlan(dtype="float32", inner=52, columns=36, transposed=True)
    rng = np.random.default_rng(1)
    arrays = [rng.integers(-2, 3, shape).astype("float32") for shape in ((rows, 52), (36, 52), (36,))]
    for what, here, there in both(plan, arrays):
        np.testing.assert_array_equal(here, there, err_msg=what)


def test_a_long_total(device: Device) -> None:
    """More terms than one invocation may add up."""
    x = np.ones((2, 3, 70000), np.float32)
    commands = CommandBuffer(device)
    up, out = device.tensor(x), device.empty((3,))
    encode(recipes.totals("x", "out", lead=2, kept=3, inner=70000, strides=(210000, 70000, 1)), commands, {"x": up, "out": out})
    commands.commit()
    np.testing.assert_array_equal(out.numpy(), [140000] * 3)


def test_refusals(device: Device) -> None:
    x = np.zeros((2, 3), np.float32)
    plan = SoftmaxLossPlan(dtype="float32")
    with pytest.raises(ArrayError, match="names no class"):
        dispatch.forward(plan, x, np.array([0, 3]), backend="webgpu")
    with pytest.raises(UnsupportedError, match="gain"):
        dispatch.forward(plan, x, np.array([0, 1]), np.eye(3, dtype=np.float32), backend="webgpu")
    with pytest.raises(UnsupportedError, match="no float64"):
        dispatch.forward(SoftmaxPlan(dtype="float64"), x.astype("float64"), backend="webgpu")
    with pytest.raises(UnsupportedError, match="so many classes"):
        dispatch.forward(SoftmaxPlan(dtype="float32"), np.zeros((1, MOST_TERMS + 1), np.float32), backend="webgpu")
    wide = replace(LrnPlan(dtype="float32"), axes=(1, 2), before=100, after=100)
    with pytest.raises(UnsupportedError, match="places"):
        dispatch.forward(wide, np.zeros((1, 2, 2), np.float32), backend="webgpu")


def test_ignored_labels_beyond_32_bits(device: Device) -> None:
    plan = SoftmaxLossPlan(dtype="float32", ignore_label=255)
    x = np.random.default_rng(0).standard_normal((3, 4)).astype("float32")
    for what, here, there in both(plan, (x, np.array([0, 255, 3], np.int64))):
        if there is not None:
            assert_close(here, there, CLOSE, what)
