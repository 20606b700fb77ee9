"""Random calls of jax.lax: the same results and gradients as the installed JAX on the CPU, and the same refusals."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.compare import assert_near, assert_same

import astride
from astride.like import jax as ours

os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")  # every call is compiled once and run once
jax = pytest.importorskip("jax", reason="jax is not installed: pip install jax")
lax = jax.lax

pytestmark = pytest.mark.live

SAMPLE, SWEEP, BLOCK = 25, 825, 25
NUMPY_SAYS = "ignore:(invalid value|overflow|divide by zero) encountered:RuntimeWarning"


@pytest.fixture(autouse=True)
def in_float64() -> Any:
    """JAX makes float32 of everything unless told otherwise."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@dataclass(frozen=True)
class Call:
    """`name(*arrays, *values, **keywords)`; a computation is written by its name."""

    name: str
    arrays: tuple[Any, ...]
    values: tuple[Any, ...]
    keywords: dict[str, Any]

    def __str__(self) -> str:
        shapes = ", ".join(f"{a.dtype}{list(a.shape)}" for a in self.arrays)
        return f"{self.name}({shapes}, {self.values}, {self.keywords})\n{self.arrays[0].tolist()}"


def numbers(rng: np.random.Generator, size: int, low: int, high: int) -> tuple[int, ...]:
    return tuple(int(n) for n in rng.integers(low, high + 1, size))


def padding(rng: np.random.Generator, size: int, words: tuple[str, ...], low: int) -> Any:
    if rng.random() < 0.6:
        return str(rng.choice(words))
    return tuple(numbers(rng, 2, low, 2) for _ in range(size))


def image(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Ties, now and then with infinities and NaN."""
    x = rng.integers(-3, 4, shape).astype("float64")
    if rng.random() < 0.4:
        x = np.where(rng.random(shape) < 0.3, rng.choice(np.array([np.nan, np.inf, -np.inf]), shape), x)
    return x


def reduction(rng: np.random.Generator) -> Call:
    """An array of one to four axes, windows along any of them but one of four."""
    nd = int(rng.integers(1, 5))
    name = str(rng.choice(["max", "max", "min", "add"]))
    still = int(rng.integers(0, nd)) if nd == 4 else -1
    window = [1 if a == still else n for a, n in enumerate(numbers(rng, nd, 1, 3))]
    strides = [1 if a == still else n for a, n in enumerate(numbers(rng, nd, 1, 3))]
    pads = padding(rng, nd, ("VALID", "SAME", "SAME_LOWER"), -1 if rng.random() < 0.3 else 0)
    if not isinstance(pads, str):
        # XLA aborts the process where a window of one tap meets negative pads
        pads = tuple(tuple(max(p, 0) for p in pair) if window[a] == 1 else pair for a, pair in enumerate(pads))
        pads = tuple((0, 0) if a == still else pair for a, pair in enumerate(pads))
    keywords: dict[str, Any] = {}
    # holes of a dilated input take part as padding does, which astride leaves out: no NaN or infinity there
    x = image(rng, numbers(rng, nd, 1, 5))
    if rng.random() < 0.2:
        keywords["base_dilation"] = tuple(1 if a == still else n for a, n in enumerate(numbers(rng, nd, 1, 2)))
        x = np.nan_to_num(x, posinf=4, neginf=-4)
    if rng.random() < 0.2:
        keywords["window_dilation"] = numbers(rng, nd, 1, 2)
    start = {"max": -np.inf, "min": np.inf, "add": 0.0}[name]
    return Call("reduce_window", (x,), (start, name, tuple(window), tuple(strides), pads), keywords)


def convolution(rng: np.random.Generator) -> Call:
    rank = int(rng.integers(1, 4))
    groups, batch_groups = [(1, 1), (1, 1), (2, 1), (1, 2), (2, 2)][int(rng.integers(0, 5))]
    inner = int(rng.integers(1, 3))
    shape = {"N": 2 * batch_groups, "C": inner * groups} | dict(zip("DHW", numbers(rng, 3, 1, 5), strict=True))
    kernel = {"O": 2 * int(rng.integers(1, 3)), "I": inner} | dict(zip("DHW", numbers(rng, 3, 1, 3), strict=True))
    letters = "DHW"[:rank]
    lhs, out = ("".join(rng.permutation(list("NC" + letters))) for _ in range(2))
    rhs = "".join(rng.permutation(list("OI" + letters)))
    if rng.random() < 0.5:
        lhs, rhs, out = f"N{letters}C", f"{letters}IO", f"N{letters}C"
    x, w = (rng.normal(size=[sizes[c] for c in word]) for sizes, word in ((shape, lhs), (kernel, rhs)))
    keywords: dict[str, Any] = dict(dimension_numbers=(lhs, rhs, out), feature_group_count=groups, batch_group_count=batch_groups)
    if rng.random() < 0.3:
        keywords["lhs_dilation"] = numbers(rng, rank, 1, 3)
    if rng.random() < 0.3:
        keywords["rhs_dilation"] = numbers(rng, rank, 1, 2)
    strides = numbers(rng, rank, 1, 3)
    return Call("conv_general_dilated", (x, w), (strides, padding(rng, rank, ("VALID", "SAME", "SAME_LOWER"), -1)), keywords)


def transposed(rng: np.random.Generator) -> Call:
    rank = int(rng.integers(1, 4))
    swap = bool(rng.integers(0, 2))
    inner, outer = numbers(rng, 2, 1, 3)
    x = rng.normal(size=(2, *numbers(rng, rank, 1, 4), inner))
    channels = (outer, inner) if swap else (inner, outer)
    w = rng.normal(size=(*numbers(rng, rank, 1, 4), *channels))
    pads = padding(rng, rank, ("VALID", "SAME"), 0)
    if not isinstance(pads, str):  # XLA aborts the process on some transposed convolutions of a single padded pixel
        x = rng.normal(size=(2, *numbers(rng, rank, 2, 4), inner))
    keywords: dict[str, Any] = dict(transpose_kernel=swap)
    if rng.random() < 0.3:
        keywords["rhs_dilation"] = numbers(rng, rank, 1, 2)
    if rng.random() < 0.3:
        keywords["use_consistent_padding"] = True
    return Call("conv_transpose", (x, w), (numbers(rng, rank, 1, 4), pads), keywords)


MAKERS: dict[str, Callable[[np.random.Generator], Call]] = {
    "reduce_window": reduction,
    "conv_general_dilated": convolution,
    "conv_transpose": transposed,
}


def theirs(call: Call) -> tuple[Any, Any] | Exception:
    """(result, gradients) of JAX, or what it raised; gradients None where only the gradient raised."""
    function = getattr(lax, call.name)
    values = tuple(getattr(lax, v) if v in ("max", "min", "add") else v for v in call.values)
    arrays = [jax.numpy.asarray(a) for a in call.arrays]
    try:
        y, pull = jax.vjp(lambda *a: function(*a, *values, **call.keywords), *arrays)
        gradients = pull(jax.numpy.asarray(weights(y.shape)))
    except Exception:
        try:
            return np.asarray(function(*arrays, *values, **call.keywords)), None
        except Exception as error:
            return error
    return np.asarray(y), tuple(np.asarray(g) for g in gradients)


def mine(call: Call, *, differentiate: bool) -> tuple[Any, Any] | Exception:
    function = getattr(ours, call.name)
    try:
        if not differentiate:
            return function(*call.arrays, *call.values, **call.keywords), None
        y, pull = astride.vjp(function, *call.arrays, *call.values, **call.keywords)
    except astride.AstrideError as error:
        return error
    return y, pull(weights(y.shape))[: len(call.arrays)]


def weights(shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(shape).normal(size=shape)


def assert_alike(call: Call) -> bool:
    """Whether both accepted the call, with result and gradients equal."""
    want = theirs(call)
    got = mine(call, differentiate=isinstance(want, Exception) or want[1] is not None)
    if isinstance(got, Exception) and not isinstance(want, Exception) and want[0].size == 0:
        assert "the output is empty" in str(got), f"{call}\n  {got}"  # a transposed convolution of nothing
        return False
    if isinstance(want, Exception) or isinstance(got, Exception):
        assert isinstance(want, Exception) and isinstance(got, Exception), f"{call}\n  jax {want}\n  astride {got}"
        return False
    near = call.name != "reduce_window" or call.values[1] == "add"
    if near:
        assert_near(got[0], want[0], 1e-12, str(call))
    else:
        assert_same(got[0], want[0], str(call))
    for g, w in zip(got[1] or (), want[1] or (), strict=True):
        assert_near(g, w, 1e-12, f"{call}, gradient")
    if want[1] is None:  # what JAX cannot differentiate is refused here too
        assert isinstance(mine(call, differentiate=True), astride.UnsupportedError), str(call)
    return True


@pytest.mark.parametrize("op", MAKERS)
@pytest.mark.filterwarnings(NUMPY_SAYS)
def test_a_sample(op: str) -> None:
    accepted = sum(assert_alike(MAKERS[op](np.random.default_rng([seed, *op.encode()]))) for seed in range(SAMPLE))
    assert accepted > SAMPLE // 3


@pytest.mark.conformance
@pytest.mark.parametrize("block", range(SWEEP // BLOCK))
@pytest.mark.parametrize("op", MAKERS)
@pytest.mark.filterwarnings(NUMPY_SAYS)
def test_the_sweep(op: str, block: int) -> None:
    seeds = range(SAMPLE + block * BLOCK, SAMPLE + (block + 1) * BLOCK)
    assert sum(assert_alike(MAKERS[op](np.random.default_rng([seed, *op.encode()]))) for seed in seeds) >= BLOCK // 3


def test_a_difference_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    call = Call("reduce_window", (np.arange(6.0),), (-np.inf, "max", (2,), (2,), "VALID"), {})
    assert assert_alike(call)
    y, gradients = theirs(call)  # type: ignore[misc]
    for wrong in ((y + 1, gradients), (y, (gradients[0] + 1,)), ValueError("refused")):
        monkeypatch.setitem(globals(), "theirs", lambda call, wrong=wrong: wrong)
        with pytest.raises(AssertionError):
            assert_alike(call)
