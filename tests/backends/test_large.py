"""More than 2^31 elements, on geometry alone or in virtual arrays, and sums that do not fit a small type."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.backends.ladder import climb
from tests.backends.test_edges import RULED, plan_or_refusal
from tests.cases.records import HALF

import astride
from astride import dispatch
from astride.backends.protocol import Saved
from astride.ops.max_pool import indices_of, plane_indices
from astride.plan import ConvPlan, Plan, PoolPlan, UnpoolPlan, plan_from_dict
from astride.plan.kinds import IndexBase

SIDE = 70_000  # a plane of 4.9e9 pixels


def far_corners(op: str, **options: Any) -> PoolPlan:
    """Two windows along each axis of a huge plane, at its corners."""
    plan: PoolPlan = astride.plan(op, (3, 2, SIDE, SIDE), kernel=2, stride=SIDE - 2, **options)
    assert [axis.out for axis in plan.axes] == [2, 2]
    return plan


@pytest.mark.parametrize("base", list(IndexBase))
def test_indices_beyond_2_to_the_31(base: IndexBase) -> None:
    """On geometry alone: what indices the last window of a huge tensor has."""
    plan = far_corners("max_pool", index_base=base)
    saved = Saved(shapes=((3, 2, SIDE, SIDE), None), offsets=np.full((3, 2, 2, 2), 3, np.uint8))
    last = indices_of(plan, saved)[-1, -1, -1, -1]
    plane = SIDE * SIDE
    expected = {
        IndexBase.PLANE: plane - 1,
        IndexBase.TENSOR: 6 * plane - 1,
        IndexBase.TENSOR_COLUMN: 6 * plane - 1,
        IndexBase.IMAGE: 2 * plane - 1,
        IndexBase.WINDOW: 3,
    }
    assert last == expected[base]
    assert plane_indices(plan, saved)[0, 0].tolist() == [
        [SIDE + 1, 2 * SIDE - 1],
        [(SIDE - 1) * SIDE + 1, plane - 1],
    ]


def test_channels_last_indices_beyond_2_to_the_31() -> None:
    shape = (3, SIDE, SIDE, 2)
    plan = astride.plan("max_pool", shape, kernel=2, stride=SIDE - 2, layout="channels_last", index_base="tensor")
    saved = Saved(shapes=(shape, None), offsets=np.full((3, 2, 2, 2), 3, np.uint8))
    assert indices_of(plan, saved)[-1, -1, -1].tolist() == [6 * SIDE * SIDE - 2, 6 * SIDE * SIDE - 1]


def virtual(shape: tuple[int, ...]) -> Any:
    """An array of any shape in the memory of one row: its last two axes' strides are real for the last axis only."""
    row = np.arange(shape[-1], dtype=np.float32)
    return np.lib.stride_tricks.as_strided(row, shape, (*[0] * (len(shape) - 1), 4), writeable=False)


def in_place(plan: Plan) -> list[str]:
    """Kernels that read arrays where they lie, and the automatic choice, which ends with one of them."""
    return [*[kernel for kernel in climb(plan) if not kernel.startswith("cpu:")], "auto"]


@pytest.mark.parametrize("op", ["max_pool", "min_pool", "avg_pool", "lp_pool"])
@pytest.mark.parametrize("layout", ["channels_first", "channels_last"])
def test_a_virtual_plane_of_five_thousand_million_pixels(op: str, layout: str) -> None:
    x = virtual((1, 1, SIDE, SIDE)) if layout == "channels_first" else virtual((1, SIDE, SIDE))[..., None]
    plan = astride.plan(op, x.shape, kernel=2, stride=SIDE - 2, layout=layout)
    first, last = np.array([0, 1.0]), np.array([SIDE - 2.0, SIDE - 1])
    reduced = {
        "max_pool": lambda v: v[1],
        "min_pool": lambda v: v[0],
        "avg_pool": lambda v: v.mean(),
        "lp_pool": lambda v: np.sqrt(2 * (v**2).sum()),
    }[op]
    for kernel in in_place(plan):
        y = dispatch.forward(plan, x, backend=kernel)[0].reshape(2, 2)
        assert np.allclose(y, [[reduced(first), reduced(last)]] * 2), kernel


def test_a_copy_far_larger_than_what_it_shows_is_not_made() -> None:
    x = virtual((1, 1, SIDE, SIDE))
    plan = astride.plan("max_pool", x.shape, kernel=2, stride=SIDE - 2)
    with pytest.raises(astride.ArgumentError, match="needs more memory than there is") as raised:
        dispatch.forward(plan, x, backend="cpu")
    assert "in order" in str(raised.value.because)


def test_a_virtual_convolution() -> None:
    x, w = virtual((1, 1, SIDE, SIDE)), np.array([[[[1, 10], [100, 1000]]]], np.float32)
    plan = astride.plan("conv", x.shape, w_shape=w.shape, stride=SIDE - 2)
    end = SIDE - 2.0
    for kernel in climb(plan):
        y = dispatch.forward(plan, x, w, backend=kernel)[0]
        assert np.allclose(y[0, 0], [[1010, end * 101 + (end + 1) * 1010]] * 2), kernel


def test_every_rule_makes_plans_of_huge_planes() -> None:
    """Sizes are Python integers: nothing wraps around at 2^31 elements."""
    for name, op in RULED:
        arguments = dict(kernel=2, stride=2) if plan_or_refusal(name, op, dict(kernel=2, stride=2)) else dict(kernel=(SIDE, SIDE))
        plan = plan_or_refusal(name, op, arguments, (1, 1, SIDE, SIDE))
        if plan is None:
            continue
        shapes = [(1, 1, SIDE, SIDE)]
        if isinstance(plan, ConvPlan):
            shapes += [plan.weight_shape]
        if isinstance(plan, UnpoolPlan):
            shapes *= 2
        out = plan.output_shape(*shapes)[2:]
        sides = {1, SIDE // 2, SIDE * 2, SIDE, SIDE * 2 - 1}
        assert set(out) <= sides, (name, op, out)


@pytest.mark.parametrize("long", [2**31, 2**33, 2**40])
def test_an_axis_of_2_to_the_31_and_more_is_planned(long: int) -> None:
    """By geometry alone: every rule gives the sizes that it gives a short axis, moved by as much."""
    planned = set()
    for name, op in RULED:
        plans = [plan_or_refusal(name, op, dict(kernel=2, stride=2), (1, 1, n, 2)) for n in (8, long)]
        if plans[0] is None or plans[1] is None:
            continue
        shapes = [[(1, 1, n, 2)] for n in (8, long)]
        for plan, shape in zip(plans, shapes, strict=True):
            if isinstance(plan, ConvPlan):
                shape.append(plan.weight_shape)
            if isinstance(plan, UnpoolPlan):
                shape *= 2
        short, far = (plan.output_shape(*shape)[2] for plan, shape in zip(plans, shapes, strict=True))
        slope = 2 if isinstance(plans[0], UnpoolPlan) or getattr(plans[0], "direction", None) == "transposed" else Fraction(1, 2)
        assert far - short == (long - 8) * slope, (name, op)
        assert plan_from_dict(plans[1].to_dict()) == plans[1]
        planned.add((name, op))
    assert len(planned) > 60 and {name for name, _ in planned} > {"explicit", "caffe", "pytorch", "tensorflow", "onnx", "mps"}


@pytest.mark.parametrize("op", ["max_pool", "avg_pool", "lp_pool"])
def test_windows_at_both_ends_of_an_axis_of_2_to_the_33(op: str) -> None:
    """One pixel shown everywhere, so that no memory is needed."""
    long = 2**33
    x = np.lib.stride_tricks.as_strided(np.array([3.0]), (1, 1, long), (0, 0, 0), writeable=False)
    plan = astride.plan(op, x.shape, kernel=2, stride=long - 2, dtype="float64")
    for kernel in in_place(plan):
        y = dispatch.forward(plan, x, backend=kernel)[0]
        assert np.allclose(y, 3 * np.sqrt(2) if op == "lp_pool" else 3) and y.shape == (1, 1, 2), kernel
    if op == "max_pool":
        _, indices = astride.max_pool(x, kernel=2, stride=long - 2, return_indices=True)
        assert indices.tolist() == [[[0, long - 2]]]


def test_a_result_or_an_input_grown_beyond_memory_is_refused() -> None:
    x = np.lib.stride_tricks.as_strided(np.array([3.0]), (1, 1, 2**40), (0, 0, 0), writeable=False)
    with pytest.raises(astride.ArgumentError, match="the result"):
        astride.max_pool(x, kernel=2)
    for edge in ("clamp", "mirror", "constant"):
        with pytest.raises(astride.ArgumentError, match="the input with its padding"):
            astride.max_pool(x, kernel=2, stride=2**40, padding=((1, 1),), edge=edge)


@pytest.mark.parametrize("index", [2**32 + 3, 2**31, 2**63 - 1, -(2**32) + 3, -1])
def test_an_index_is_not_cut_to_32_bits(index: int) -> None:
    """pytorch #197409: read as int32, 2^32 + 3 writes element 3."""
    x, places = np.ones((1, 1, 1), np.float32), np.array([[[index]]])
    plan = astride.plan("max_unpool", x.shape, output_size=(8,))
    for kernel in climb(plan):
        with pytest.raises(astride.ArrayError, match=str(index)):
            dispatch.forward(plan, x, places, backend=kernel)


# Extents and sums that do not fit a small type


@pytest.mark.parametrize("dilation", [2**31, 2**33, 2**62])
def test_one_tap_has_no_dilation(dilation: int) -> None:
    """pytorch #191920: a huge dilation of a kernel of one read out of bounds."""
    x = np.arange(6, dtype=np.float32).reshape(1, 1, 6)
    plan = astride.plan("max_pool", x.shape, kernel=1, stride=2, dilation=dilation)
    for kernel in climb(plan):
        assert dispatch.forward(plan, x, backend=kernel)[0].tolist() == [[[0, 2, 4]]], kernel
    with pytest.raises(astride.ArgumentError):
        astride.plan("max_pool", x.shape, kernel=2, dilation=dilation)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_half_mean_of_a_great_window(dtype: str) -> None:
    """MIOpen #2109: 255 x 255 halves gave .031, and no gradient. T50: the sum is formed in float32."""
    kind = np.dtype(HALF.get(dtype, dtype))
    x = np.full((1, 1, 255, 255), 0.5, kind)
    plan = astride.plan("avg_pool", x.shape, kernel=255, dtype=dtype)
    for kernel in climb(plan)[2:]:
        y, saved = dispatch.forward(plan, x, save=True, backend=kernel)
        assert float(y.item()) == 0.5, kernel
        assert saved is not None
        (dx, _) = dispatch.backward(plan, np.full_like(y, 255 * 255), saved)
        assert dx is not None and np.allclose(dx.astype("float32"), 1, rtol=1e-2), kernel
