"""What the CPU backend does at the limits of its rules: norms beyond float64's range, hostile indices, gradients of gradients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.backends.cpu.compiled import skip_unread
from tests.compare import assert_near, assert_same

import astride
from astride import dispatch
from astride.backends.cpu import powers
from astride.plan import PoolPlan, StridedAxis, UnpoolPlan
from astride.plan.kinds import Edge, IndexBase, Layout, LpForm, Reduce

WINDOWS = (StridedAxis(size=8, kernel=2, stride=2, out=4),)


def norm(p: float, dtype: str = "float64", **changes: Any) -> PoolPlan:
    return PoolPlan(dtype=dtype, accumulate=dtype, axes=WINDOWS, reduce=Reduce.LP, p=p, **changes)


# Norms


@pytest.mark.parametrize(
    ("p", "form", "channels"),
    [
        (1.0, LpForm.ABSOLUTE, 1),
        (2.0, LpForm.ABSOLUTE, 40),
        (2.0, LpForm.SIGNED, 1),
        (3.0, LpForm.SIGNED_ROOT, 40),
        (0.5, LpForm.ABSOLUTE, 1),
        (7.0, LpForm.ABSOLUTE, 40),
    ],
)
def test_norms_keep_float64s_range(p: float, form: LpForm, channels: int) -> None:
    """Beside usual windows those whose powers overflow, vanish or are subnormal, and one of zeros."""
    row = np.array([3.0, 4.0, 3e200, 4e200, 3e-200, 4e-200, 0.0, 0.0])
    x = np.stack([row, row * 2.0**-400, row[::-1], np.array([5e-324, 1e-323, 1e308, 1e307, 2.0, 0.0, 1e-310, 0.0])])
    for layout in Layout:
        plan = norm(p, lp_form=form, layout=layout)
        shaped = np.repeat(x[:, None], channels, axis=1)
        shaped = shaped if layout is Layout.CHANNELS_FIRST else np.moveaxis(shaped, 1, -1)
        y, expected = (dispatch.forward(plan, shaped, backend=name)[0] for name in ("cpu", "reference:im2col"))
        assert (np.isfinite(expected) | (p < 1)).all()  # 1e308 and 1e307 have a greater root of sum than float64 holds
        with np.errstate(invalid="ignore", divide="ignore"):
            off = np.where(y == expected, 0, np.abs(y / expected - 1))
        subnormal = np.abs(expected) < 1e-300
        assert (np.where(subnormal, 0, off) < 1e-12).all()
        assert (np.abs(y - expected)[subnormal] <= 1e-322).all()


def test_powers_float32_does_not_hold() -> None:
    x = np.array([[[3e30, 4e30, 3e-30, 4e-30, 1.0, 2.0, 0.0, 0.0]]], "float32")
    y, expected = (dispatch.forward(norm(12.0, "float32"), x, backend=name)[0] for name in ("cpu", "reference:im2col"))
    assert (y > 0).tolist() == [[[True, True, True, False]]]
    assert_near(y / np.maximum(expected, 1e-38), expected / np.maximum(expected, 1e-38), 1e-5)


def test_only_plans_that_may_leave_the_range_are_looked_at_again() -> None:
    assert powers.may_leave(norm(2.0)) and powers.may_leave(norm(7.0, "float32"))
    assert not powers.may_leave(norm(2.0, "float32")) and not powers.may_leave(norm(2.0, lp_scaled=False))
    assert not powers.suspicious(norm(2.0), np.array([1.0, 1e100])) and powers.suspicious(norm(2.0), np.array([1.0, 0.0]))


def test_negative_orders() -> None:
    """1 / (1/3 + 1/6) = 2; a zero makes the sum infinite and the norm 0, which sends no gradient but 0 times infinity."""
    plan = norm(-1.0, lp_form=LpForm.SIGNED, lp_scaled=False)
    x = np.array([[[3.0, 6.0, 0.0, 5.0, 2.0, 2.0, -1.0, 1.0]]])
    dy = np.ones((1, 1, 4))
    for name in ("cpu", "reference:im2col"):
        y, saved = dispatch.forward(plan, x, save=True, backend=name)
        assert saved is not None
        assert_near(y, [[[2, 0, 1, np.inf]]], 1e-12)
        (dx, _) = dispatch.backward(plan, dy, saved)
        assert_near(dx, dispatch.backward(plan, dy, saved, backend="reference:loops2")[0], 1e-12)


# Edges


def test_padding_beyond_memory_is_refused() -> None:
    axis = StridedAxis(size=4, kernel=2, pad_lo=2**40, pad_hi=0, out=2**40 + 3, stride=1)
    plan = PoolPlan(dtype="float32", axes=(replace(axis, stride=2**20, out=2**20 + 1),), reduce=Reduce.MAX, edge=Edge.WRAP)
    with pytest.raises(astride.ArgumentError, match="padding"):
        dispatch.forward(plan, np.zeros((1, 1, 4), "float32"), backend="cpu")


# Unpooling


@pytest.mark.parametrize(
    ("index", "dtype"),
    [
        ("int8", "float32"),
        ("uint8", "float64"),
        ("int32", "float16"),
        ("uint32", "int8"),
        ("int64", "float32"),
        ("uint64", "float64"),
    ],
)
def test_unpooling_by_any_index(index: str, dtype: str) -> None:
    skip_unread(dtype)
    rng = np.random.default_rng(0)
    for layout in Layout:
        for base in (IndexBase.PLANE, IndexBase.TENSOR):
            plan = UnpoolPlan(dtype=dtype, size=(2, 3), out=(5, 4), index_size=(3, 4), layout=layout, index_base=base)
            shape = (2, 3, 2, 3) if layout is Layout.CHANNELS_FIRST else (2, 2, 3, 3)
            x = rng.integers(1, 100, shape).astype(dtype)[::-1]
            places = rng.integers(0, 12 if base is IndexBase.PLANE else 72, shape).astype(index)
            expected, judged = dispatch.forward(plan, x, places, save=True, backend="reference:scatter")
            dy = rng.integers(0, 9, expected.shape).astype(dtype)
            assert judged is not None
            for threads in (1, 3):
                with astride.use(threads=threads):
                    y, saved = dispatch.forward(plan, x, places, save=True, backend="cpu")
                    assert saved is not None
                    assert_same(y, expected)
                    assert_same(dispatch.backward(plan, dy, saved)[0], dispatch.backward(plan, dy, judged)[0])


@pytest.mark.parametrize("wrong", [-1, 16, 2**40])
def test_an_index_outside_is_never_written(wrong: int) -> None:
    """The reference's error, before a byte of `out` has changed."""
    x, places = np.ones((1, 2, 2, 2), "float32"), np.zeros((1, 2, 2, 2), "int64")
    places[0, 1, 1, 0] = wrong
    messages = []
    for backend in ("reference", "cpu"):
        out = np.full((1, 2, 4, 4), 7, "float32")
        with pytest.raises(astride.ArrayError) as error:
            astride.max_unpool(x, places, kernel=2, out=out, backend=backend)
        messages.append(str(error.value))
        assert backend == "reference" or (out == 7).all()
    assert messages[0] == messages[1] and str(wrong) in messages[0]


# Gradients of gradients


@pytest.mark.parametrize(
    ("op", "options"),
    [
        ("max_pool", dict(rules="pytorch")),
        ("max_pool", dict(tie="equal_share")),
        ("min_pool", {}),
        ("avg_pool", dict(rules="caffe")),
        ("lp_pool", dict(p=2.0)),
        ("lp_pool", dict(p=2.5)),
        ("stochastic_pool", dict(training=True, seed=3)),
        ("stochastic_pool", {}),
    ],
)
@pytest.mark.parametrize("layout", ["channels_first", "channels_last"])
def test_gradients_of_gradients(op: str, options: dict[str, Any], layout: str) -> None:
    """What kernels saved is what the reference's double backward reads."""
    rng = np.random.default_rng(1)
    x = rng.random((2, 7, 6, 5)) + 0.5
    results = []
    for backend in ("reference", "cpu"):
        with astride.use(backend=backend):
            y, pull = astride.vjp(getattr(astride, op), x, kernel=3, stride=2, layout=layout, **options)
            generator = np.random.default_rng(2)
            g = generator.normal(size=y.shape)
            (dx,), pull2 = astride.vjp(pull, g)
            seconds = pull2((generator.normal(size=x.shape),))
        results.append((y, dx, *[np.zeros(()) if s is None else s for s in seconds]))
    for ours, judged in zip(results[1], results[0], strict=True):
        assert_near(ours, judged, 1e-12)
