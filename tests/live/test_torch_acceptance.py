"""What torch.nn.functional takes and what it refuses, by dtype, rank and sizes of zero: the same here, with the same values."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from tests.compare import assert_near, assert_same
from tests.live.torch_acceptance_calls import DTYPES, OPS, calls
from tests.live.torch_calls import Call

import astride
from astride.like import pytorch as F

torch = pytest.importorskip("torch", reason="torch is not installed: pip install astride[peers]")

pytestmark = pytest.mark.live

SAMPLED = 23
"""Every so many calls are in the sample; a prime, so that all dtypes, shapes and windows come by."""
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-5, "float64": 1e-12}


def tensor(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.name == "bfloat16":
        return torch.from_numpy(value.astype(np.float32)).to(torch.bfloat16)
    return torch.from_numpy(value.copy())


def array(value: Any) -> Any:
    if value.dtype is not torch.bfloat16:
        return value.numpy()
    import ml_dtypes

    return value.to(torch.float32).numpy().astype(ml_dtypes.bfloat16)


def theirs(call: Call) -> tuple[Any, ...] | Exception:
    keywords = {name: tensor(value) for name, value in call.keywords.items()}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y = getattr(torch.nn.functional, call.name)(*map(tensor, call.arrays), *call.values, **keywords)
    except Exception as error:
        return error
    return tuple(array(part) for part in (y if isinstance(y, tuple) else (y,)))


def ours(call: Call) -> tuple[Any, ...] | Exception:
    """Anything but an error of astride's own is a failure of the test."""
    try:
        y = getattr(F, call.name)(*call.arrays, *call.values, **call.keywords)
    except astride.AstrideError as error:
        return error
    return y if isinstance(y, tuple) else (y,)


def assert_alike(call: Call) -> bool:
    """Whether both took the call, with results of equal dtype, shape and values."""
    want, got = theirs(call), ours(call)
    if isinstance(got, Exception) and not isinstance(want, Exception) and want[0].size == 0 and want[0].dtype == np.float32:
        # an output without pixels is refused by PyTorch's own code, and accepted where oneDNN computes (float32)
        assert "the output is empty" in str(got), f"{call}\n  {got}"
        return False
    if isinstance(want, Exception) or isinstance(got, Exception):
        assert isinstance(want, Exception) and isinstance(got, Exception), f"{call}\n  torch {want}\n  astride {got}"
        return False
    assert len(want) == len(got)
    for w, g in zip(want, got, strict=True):
        assert (g.dtype, g.shape) == (w.dtype, w.shape), str(call)
        if g.dtype.kind in "iub":
            assert_same(g, w, str(call))
        else:
            assert_near(g, w, TOLERANCE[g.dtype.name], str(call))
    return True


@pytest.mark.parametrize("op", OPS)
def test_a_sample(op: str) -> None:
    assert sum(assert_alike(call) for call in itertools.islice(calls(op), 0, None, SAMPLED))


@pytest.mark.conformance
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", OPS)
def test_every_combination(op: str, dtype: str) -> None:
    taken = sum(assert_alike(call) for call in calls(op) if str(call.arrays[0].dtype) == dtype)
    assert taken or dtype not in ("float32", "float64")


def test_the_calls_are_varied() -> None:
    for op in OPS:
        every = list(calls(op))
        assert {str(call.arrays[0].dtype) for call in every} == set(DTYPES)
        assert any(call.arrays[0].size == 0 for call in every) and any(call.arrays[0].size for call in every)


COMPLEX = (
    ("conv1d", ((2, 4, 6), (6, 2, 3), (6,)), (), {"groups": 2, "padding": 1, "stride": 2}),
    ("conv2d", ((2, 3, 5, 4), (4, 3, 2, 3), (4,)), (), {"dilation": 2, "padding": "same"}),
    ("conv3d", ((3, 3, 4, 4), (2, 3, 2, 1, 2)), (), {}),
    ("conv_transpose1d", ((2, 3, 4), (3, 2, 3), (2,)), (), {"stride": 2, "output_padding": 1}),
    ("conv_transpose2d", ((2, 4, 3, 3), (4, 2, 2, 2)), (), {"groups": 2, "padding": 1, "stride": 2}),
    ("conv_transpose3d", ((1, 2, 3, 3, 2), (2, 2, 2, 2, 2)), (), {"dilation": 2}),
    ("unfold", ((2, 3, 5, 4),), (2,), {"padding": 1, "stride": 2}),
    ("unfold", ((3, 5, 4),), ((2, 3),), {"dilation": 2, "padding": 1}),
    ("fold", ((2, 8, 9),), ((4, 4), 2), {}),
)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize(("name", "shapes", "values", "keywords"), COMPLEX)
def test_complex_numbers(name: str, shapes: Any, values: Any, keywords: Any, dtype: str) -> None:
    rng = np.random.default_rng(7)
    arrays = [(rng.normal(size=s) + 1j * rng.normal(size=s)).astype(dtype) for s in shapes]
    leaves = [torch.from_numpy(a.copy()).requires_grad_() for a in arrays]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = getattr(torch.nn.functional, name)(*leaves, *values, **keywords)
    dy = (rng.normal(size=want.shape) + 1j * rng.normal(size=want.shape)).astype(dtype)
    want.backward(torch.from_numpy(dy))
    y, pull = astride.vjp(getattr(F, name), *arrays, *values, **keywords)
    for got, expected in zip((y, *pull(dy)), (want.detach(), *(leaf.grad for leaf in leaves)), strict=False):
        assert got.dtype == np.dtype(dtype)
        for part in ("real", "imag"):
            assert_near(getattr(got, part), getattr(expected.numpy(), part), 1e-5 if dtype == "complex64" else 1e-12)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_are_refused_elsewhere(dtype: str) -> None:
    """PyTorch has the mean of complex numbers, and their greatest magnitude: what is left of differences by dtype."""
    x = np.ones((1, 2, 4, 4), dtype)
    for call in (Call("adaptive_avg_pool2d", (x,), (1,), {}), Call("lp_pool2d", (x,), (np.inf, 2), {})):
        assert not isinstance(theirs(call), Exception)
        with pytest.raises(astride.ArrayError, match="is not an array of real numbers"):
            getattr(F, call.name)(*call.arrays, *call.values)


@pytest.mark.parametrize("order", [0.5, 1.5, -1.0, -2.0, 3.0, -np.inf])
def test_gradients_of_norms_at_zeros(order: float) -> None:
    """Windows of zeros, sums of zero and pixels that no window reads."""
    rng = np.random.default_rng([4, int(10 * abs(order)) if np.isfinite(order) else 1])
    for _ in range(20):
        x = rng.choice(np.array([0.0, 0, 1, 2, -1]), (1, 2, int(rng.integers(3, 9))))
        kernel, stride = (int(n) for n in rng.integers(1, 4, 2))
        leaf = torch.from_numpy(x.copy()).requires_grad_()
        want = torch.nn.functional.lp_pool1d(leaf, order, kernel, stride)
        want.sum().backward()
        y, pull = astride.vjp(F.lp_pool1d, x, order, kernel, stride)
        assert_near(y, want.detach().numpy(), 1e-12, f"{order} {x}")
        assert_near(pull(np.ones_like(y))[0], leaf.grad.numpy(), 1e-12, f"gradient of {order} {kernel} {stride} {x}")


@pytest.mark.parametrize("wrong", ["value", "dtype", "refusal"])
def test_a_difference_is_found(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    call = Call("conv1d", (np.ones((1, 1, 4), np.int8), np.ones((1, 1, 2), np.int8)), (), {})
    assert assert_alike(call)
    (right,) = ours(call)  # type: ignore[misc]
    off = {"value": (right + np.int8(1),), "dtype": (right.astype(np.int16),), "refusal": astride.ArgumentError("no")}[wrong]
    monkeypatch.setitem(globals(), "ours", lambda call: off)
    with pytest.raises(AssertionError):
        assert_alike(call)
