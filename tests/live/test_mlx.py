"""Random calls of MLX's pooling layers and convolutions: the same results and gradients as installed, on its CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.compare import assert_near, assert_same

import astride
from astride.like import mlx as ours

mx = pytest.importorskip("mlx.core", reason='mlx is not installed: pip install "mlx[cpu]"')
nn = pytest.importorskip("mlx.nn", reason='mlx is not installed: pip install "mlx[cpu]"')

pytestmark = pytest.mark.live

SAMPLE, SWEEP, BLOCK = 40, 500, 50
NUMPY_SAYS = "ignore:(invalid value|overflow|divide by zero) encountered:RuntimeWarning"


@dataclass(frozen=True)
class Call:
    """`name(*arrays, *values, **keywords)`."""

    name: str
    arrays: tuple[Any, ...]
    values: tuple[Any, ...]
    keywords: dict[str, Any]

    def __str__(self) -> str:
        shapes = ", ".join(f"{a.dtype}{list(a.shape)}" for a in self.arrays)
        return f"{self.name}({shapes}, {self.values}, {self.keywords})\n{self.arrays[0].tolist()}"


def numbers(rng: np.random.Generator, size: int, low: int, high: int) -> tuple[int, ...]:
    return tuple(int(n) for n in rng.integers(low, high + 1, size))


def pool(rng: np.random.Generator) -> Call:
    """Kernels of every size that fits; NaN now and then for the maximum. Infinities share their ties with MLX's padding."""
    rank = int(rng.integers(1, 4))
    sizes, pads = numbers(rng, rank, 2, 6), numbers(rng, rank, 0, 1)
    kernel = tuple(int(rng.integers(max(p, 1), 3)) for p in pads)
    kind = str(rng.choice(["max", "avg"]))
    x = rng.integers(-3, 4, (2, *sizes, 2)).astype("float32")
    if kind == "max" and rng.random() < 0.3:
        x = np.where(rng.random(x.shape) < 0.2, np.float32(np.nan), x)
    kernel, strides, pads = (v if rank > 1 else v[0] for v in (kernel, numbers(rng, rank, 1, 3), pads))  # type: ignore[assignment]
    return Call(f"{kind}_pool{rank}d", (x,), (kernel, None if rng.random() < 0.2 else strides, pads), {})


def convolution(rng: np.random.Generator) -> Call:
    rank, groups = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    groups = groups if rank == 1 else 1
    sizes, kernel = numbers(rng, rank, 3, 6), numbers(rng, rank, 1, 3)
    inner, outer = numbers(rng, 2, 1, 2)
    x = rng.normal(size=(2, *sizes, inner * groups)).astype("float32")
    w = rng.normal(size=(outer * groups, *kernel, inner)).astype("float32")
    strides, pads = ((v if rank > 1 else v[0]) for v in (numbers(rng, rank, 1, 3), numbers(rng, rank, 0, 2)))
    return Call(f"conv{rank}d", (x, w), (strides, pads, 1, groups), {})


def general(rng: np.random.Generator) -> Call:
    rank = int(rng.integers(1, 3))
    sizes, kernel = numbers(rng, rank, 3, 6), numbers(rng, rank, 1, 3)
    inner, outer = numbers(rng, 2, 1, 2)
    x = rng.normal(size=(2, *sizes, inner)).astype("float32")
    w = rng.normal(size=(outer, *kernel, inner)).astype("float32")
    keywords: dict[str, Any] = dict(
        stride=list(numbers(rng, rank, 1, 3)),
        padding=(list(numbers(rng, rank, 0, 2)), list(numbers(rng, rank, 0, 2))),
        kernel_dilation=1,
        input_dilation=list(numbers(rng, rank, 1, 2)),
        flip=bool(rng.integers(0, 2)),
    )
    return Call("conv_general", (x, w), (), keywords)


def transposed(rng: np.random.Generator) -> Call:
    rank = int(rng.integers(1, 4))
    sizes, kernel = numbers(rng, rank, 1, 4), numbers(rng, rank, 2, 3)
    inner, outer = numbers(rng, 2, 1, 2)
    x = rng.normal(size=(2, *sizes, inner)).astype("float32")
    w = rng.normal(size=(outer, *kernel, inner)).astype("float32")
    strides = numbers(rng, rank, 1, 3)
    extra = tuple(int(rng.integers(0, s)) for s in strides)
    strides, pads, extra = ((v if rank > 1 else v[0]) for v in (strides, numbers(rng, rank, 0, 1), extra))  # type: ignore[assignment]
    return Call(f"conv_transpose{rank}d", (x, w), (strides, 0 if min(sizes) == 1 else pads, 1, extra), {})


MAKERS: dict[str, Callable[[np.random.Generator], Call]] = {
    "pool": pool,
    "conv": convolution,
    "conv_general": general,
    "conv_transpose": transposed,
}


def theirs(call: Call) -> tuple[Any, Any] | Exception:
    """(result, gradients) of MLX, or what it raised."""
    kind, _, rank = call.name.partition("_pool")

    def function(*arrays: Any) -> Any:
        if rank:
            return getattr(nn, f"{kind.capitalize()}Pool{rank[:-1]}d")(*call.values)(*arrays)
        return getattr(mx, call.name)(*arrays, *call.values, **call.keywords)

    arrays = [mx.array(a) for a in call.arrays]
    try:
        y = np.array(function(*arrays))
    except Exception as error:
        return error
    try:
        _, gradients = mx.vjp(function, arrays, [mx.array(weights(y.shape))])
        return y, tuple(np.array(g) for g in gradients)
    except ValueError:
        return y, None


def mine(call: Call) -> tuple[Any, Any] | Exception:
    try:
        y, pull = astride.vjp(getattr(ours, call.name), *call.arrays, *call.values, **call.keywords)
    except astride.AstrideError as error:
        return error
    return y, pull(weights(y.shape))[: len(call.arrays)]


def weights(shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(shape).integers(1, 9, shape).astype("float32")


def assert_alike(call: Call) -> bool:
    """Whether both accepted the call, with result and gradients equal."""
    want, got = theirs(call), mine(call)
    if isinstance(want, Exception) or isinstance(got, Exception):
        assert isinstance(want, Exception) and isinstance(got, Exception), f"{call}\n  mlx {want}\n  astride {got}"
        return False
    if call.name.startswith("max"):
        assert_same(got[0], want[0], str(call))
    else:
        assert_near(got[0], want[0], 2e-6, str(call), scale=10.0)
    if want[1] is None or any(w.shape != a.shape for w, a in zip(want[1], call.arrays, strict=True)):
        # MLX's fault: with output padding, or a stride over a dilated input, its gradients have another shape or fail
        assert call.name.startswith(("conv_transpose", "conv_general")), str(call)
        return True
    for g, w in zip(got[1], want[1], strict=True):
        assert_near(g, w, 2e-6, f"{call}, gradient", scale=10.0)  # of sums that may cancel
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
    for seed in range(SAMPLE + block * BLOCK, SAMPLE + (block + 1) * BLOCK):
        assert_alike(MAKERS[op](np.random.default_rng([seed, *op.encode()])))


def test_a_difference_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    call = Call("max_pool1d", (np.arange(6, dtype="float32").reshape(1, 6, 1),), (2,), {})
    assert assert_alike(call)
    y, gradients = theirs(call)  # type: ignore[misc]
    for wrong in ((y + 1, gradients), (y, (gradients[0] + 1,)), ValueError("refused")):
        monkeypatch.setitem(globals(), "theirs", lambda call, wrong=wrong: wrong)
        with pytest.raises(AssertionError):
            assert_alike(call)
