"""What jax.lax takes and what it refuses, by dtype, start value, type of the result and sizes of zero: the same here."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.compare import assert_near, assert_same
from tests.live.torch_acceptance_calls import filled

import astride
from astride.like import jax as ours

os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")  # every call is compiled once and run once
jax = pytest.importorskip("jax", reason="jax is not installed: pip install jax")
ml_dtypes = pytest.importorskip("ml_dtypes")
lax = jax.lax

pytestmark = pytest.mark.live

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
DTYPES = ("bool", *INTEGERS, "float16", "bfloat16", "float32", "float64")
TOLERANCE = {"float16": 4e-3, "bfloat16": 4e-2, "float32": 1e-5, "float64": 1e-12, "complex64": 1e-5, "complex128": 1e-12}
SAMPLED = 11
STARTS = (
    0, 7, -1, 300, -(2**31), 2**31 - 1, -(2**63), 2**63 - 1, 2**64, 0.0, 1.5, -0.0, -np.inf, np.inf, np.nan, 1e40, True, False,
    None, [1.0], np.float32(1.5), np.float64(1.5), np.float16(2), np.int32(2), np.int64(2), np.uint8(2), np.uint64(3),
    np.bool_(True), np.zeros((), np.float32), np.zeros(1), np.int8(-128), np.uint8(255), np.float64(-np.inf),
    ml_dtypes.bfloat16(2),
)  # fmt: skip
Call = tuple[str, tuple[Any, ...], tuple[Any, ...], dict[str, Any]]


def starts() -> Iterator[Call]:
    """Every start value for a window of every dtype."""
    for dtype, start, name in itertools.product(DTYPES, STARTS, ("max", "min", "add")):
        yield "reduce_window", (filled((2, 5), dtype),), (start, name, (1, 2), (1, 2), ((0, 0), (1, 2))), {}
        if start in (7, 1.5) and not isinstance(start, np.generic):
            x = filled((3, 4), dtype)
            yield "reduce_window", (x,), (start, name, (2, 3), (1, 1), "SAME", (2, 1), (1, 1)), {}


def types() -> Iterator[Call]:
    """Every dtype of the arrays with every one of the result."""
    for dtype, preferred in itertools.product((*DTYPES, "complex64", "complex128"), (None, *DTYPES, "complex64", "complex128")):
        x, w = (shrunk(filled(s, dtype, wide=True), preferred) for s in ((2, 2, 5), (3, 2, 2)))
        yield "conv_general_dilated", (x, w), ((1,), "SAME"), {"preferred_element_type": preferred}
        x, w = x.transpose(0, 2, 1), w.transpose(2, 1, 0)
        yield "conv_transpose", (x, w), ((2,), "VALID"), {"preferred_element_type": preferred}


def shrunk(x: Any, preferred: str | None) -> Any:
    """Integers that floating sums hold exactly, where they are to be floating."""
    return x % 4 if preferred is not None and "int" not in preferred and x.dtype.kind in "iu" else x


def sizes() -> Iterator[Call]:
    """Nothing in one place or another, of one dtype of each kind."""
    for dtype, rank in itertools.product(("bool", "int8", "float32", "float64"), (1, 2, 3)):
        for n, inner, outer, size, kernel in itertools.product((2, 0), (2, 0), (2, 0), (3, 0), (2, 1)):
            x = filled((n, inner, *(3,) * (rank - 1), size), dtype, wide=True)
            w = filled((outer, inner, *(kernel,) * rank), dtype, wide=True)
            yield "conv_general_dilated", (x, w), ((1,) * rank, "VALID"), {}
            yield "conv_general_dilated", (x, w), ((2,) * rank, ((1, 1),) * rank), {"rhs_dilation": (2,) * rank}


def precisions() -> Iterator[Call]:
    x = np.arange(6, dtype=np.float32).reshape(1, 1, 6)
    presets = tuple(lax.DotAlgorithmPreset.__members__)
    words = (None, "default", "high", "highest", "fastest", "float32", "bfloat16", "tensorfloat32", "bfloat16_3x", "tf32", "")
    pairs = (("high", "default"), ["high", "highest"], ("high",), ("high",) * 3, ("high", "no"), ("high", None), (), 0, 1.0)
    enums = (lax.Precision.HIGH, (lax.Precision.HIGH, lax.Precision.DEFAULT), lax.DotAlgorithmPreset.F32_F32_F32)
    for precision in (*words, *pairs, *enums, *presets):
        yield "conv_general_dilated", (x, x[..., :2]), ((1,), "VALID"), {"precision": precision}


CALLS = {"starts": starts, "types": types, "sizes": sizes, "precisions": precisions}


def text(call: Call) -> str:
    name, arrays, values, keywords = call
    return f"{name}({', '.join(f'{a.dtype}{list(a.shape)}' for a in arrays)}, {values}, {keywords})"


def theirs(call: Call) -> Any:
    """JAX's result or refusal; of arrays at most 32 bits wide also what it takes by default, when 64 bits are off."""
    name, arrays, values, keywords = call
    given = tuple(getattr(lax, v) if isinstance(v, str) and v in ("max", "min", "add") else v for v in values)
    result: Any = None
    for wide in (True, False):
        if not wide and any(a.dtype.itemsize >= 8 for a in arrays):
            break
        if not wide and keywords.get("preferred_element_type") in ("int64", "uint64", "float64", "complex128"):
            break
        with jax.enable_x64(wide):
            try:
                return np.asarray(getattr(lax, name)(*map(jax.numpy.asarray, arrays), *given, **keywords))
            except Exception as error:
                result = error
    return result


def mine(call: Call) -> Any:
    name, arrays, values, keywords = call
    try:
        return getattr(ours, name)(*arrays, *values, **keywords)
    except astride.AstrideError as error:
        return error


def assert_alike(call: Call) -> bool:
    """Whether both took the call, with results of equal dtype, shape and values."""
    want, got = theirs(call), mine(call)
    if isinstance(want, Exception) or isinstance(got, Exception):
        assert isinstance(want, Exception) and isinstance(got, Exception), f"{text(call)}\n  jax {want}\n  astride {got}"
        return False
    assert (got.dtype, got.shape) == (want.dtype, want.shape), text(call)
    if got.dtype.kind in "iub":
        assert_same(got, want, text(call))
    for part in ("real", "imag") if got.dtype.kind == "c" else ("real",):
        if got.dtype.kind not in "iub":
            assert_near(getattr(got, part), getattr(want, part), TOLERANCE[got.dtype.name], text(call))
    return True


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", CALLS)
def test_a_sample(kind: str) -> None:
    assert sum(assert_alike(call) for call in itertools.islice(CALLS[kind](), 0, None, SAMPLED))


@pytest.mark.conformance
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", CALLS)
def test_every_combination(kind: str) -> None:
    assert sum(assert_alike(call) for call in CALLS[kind]()) > 20


def test_gradients_of_complex_numbers_take_no_conjugates() -> None:
    rng = np.random.default_rng(3)
    with jax.enable_x64(True):
        x, w = (rng.normal(size=s) + 1j * rng.normal(size=s) for s in ((2, 4, 5), (6, 2, 3)))
        function = lambda m, *a: m.conv_general_dilated(*a, (2,), ((1, 1),), feature_group_count=2)  # noqa: E731
        want, back = jax.vjp(lambda *a: function(lax, *a), x, w)
        y, pull = astride.vjp(ours.conv_general_dilated, x, w, (2,), ((1, 1),), feature_group_count=2)
        dy = rng.normal(size=y.shape) + 1j * rng.normal(size=y.shape)
        for got, expected in zip((y, *pull(dy)), (want, *back(jax.numpy.asarray(dy))), strict=False):
            assert_near(got.real, np.asarray(expected).real, 1e-12)
            assert_near(got.imag, np.asarray(expected).imag, 1e-12)


@pytest.mark.parametrize("wrong", ["value", "dtype", "refusal"])
def test_a_difference_is_found(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    call = ("reduce_window", (np.arange(4, dtype=np.int32),), (7, "add", (2,)), {})
    assert assert_alike(call)
    right = mine(call)
    off = {"value": right + 1, "dtype": right.astype(np.int16), "refusal": astride.ArgumentError("no")}[wrong]
    monkeypatch.setitem(globals(), "mine", lambda call: off)
    with pytest.raises(AssertionError):
        assert_alike(call)
