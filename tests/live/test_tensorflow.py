"""Random calls of tf.nn, keras.ops and TFLite: the same results, places and gradients as installed on the CPU, and the same
refusals. Where TensorFlow kills the process (a VALID maximum over an input smaller than its kernel) it is not asked."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.compare import assert_near, assert_same

import astride
from astride.like import keras as keras_like
from astride.like import tensorflow as ours

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow", reason="tensorflow is not installed: pip install tensorflow-cpu")
keras = pytest.importorskip("keras", reason="keras is not installed: pip install keras")

pytestmark = pytest.mark.live

SAMPLE, SWEEP, BLOCK = 60, 700, 50
LAYOUTS = {1: "NWC", 2: "NHWC", 3: "NDHWC"}


@dataclass(frozen=True)
class Call:
    """`name(*arrays, *values, **keywords)` of tf.nn, or of keras.ops where it says so."""

    name: str
    arrays: tuple[Any, ...]
    values: tuple[Any, ...]
    keywords: dict[str, Any]
    keras: bool = False

    def __str__(self) -> str:
        shapes = ", ".join(f"{a.dtype}{list(a.shape)}" for a in self.arrays)
        return f"{self.name}({shapes}, {self.values}, {self.keywords})\n{self.arrays[0].tolist()}"


def numbers(rng: np.random.Generator, size: int, low: int, high: int) -> tuple[int, ...]:
    return tuple(int(n) for n in rng.integers(low, high + 1, size))


def image(rng: np.random.Generator, shape: tuple[int, ...], *, odd: bool = True) -> Any:
    """Ties, now and then with infinities and NaN."""
    x = rng.integers(-3, 4, shape).astype("float32")
    if odd and rng.random() < 0.4:
        x = np.where(rng.random(shape) < 0.3, rng.choice(np.array([np.nan, np.inf, -np.inf]), shape), x).astype("float32")
    return x


def within(strides: tuple[int, ...], kernel: tuple[int, ...]) -> tuple[int, ...]:
    """In three axes TensorFlow's own kernels shift SAME windows whose stride is larger than the kernel: a negative pad is not
    cut off there. oneDNN's (float32) leave memory as it was where an output is one pixel wide, so float64 is asked."""
    return tuple(min(s, k) for s, k in zip(strides, kernel, strict=True))


def fits(sizes: tuple[int, ...], kernel: tuple[int, ...], padding: Any) -> bool:
    pads = [sum(pair) for pair in padding[1:-1]] if not isinstance(padding, str) else [0] * len(sizes)
    return padding == "SAME" or all(n + p >= k for n, p, k in zip(sizes, pads, kernel, strict=True))


def explicit(rng: np.random.Generator, rank: int, high: int) -> Any:
    return [[0, 0], *[list(numbers(rng, 2, 0, high)) for _ in range(rank)], [0, 0]]


def maximum(rng: np.random.Generator) -> Call:
    rank = int(rng.integers(1, 4))
    sizes, kernel = numbers(rng, rank, 1, 6), numbers(rng, rank, 1, 3)
    padding: Any = str(rng.choice(["SAME", "VALID"]))
    if rank < 3 and rng.random() < 0.4:
        padding = explicit(rng, rank, 2)
    if not fits(sizes, kernel, padding):
        padding = "SAME"
    x = image(rng, (2, *sizes, int(rng.integers(1, 3))))
    name = "max_pool" if rng.random() < 0.2 else f"max_pool{rank}d"
    return Call(name, (x,), (list(kernel), list(numbers(rng, rank, 1, 3)), padding), {})


def argmax(rng: np.random.Generator) -> Call:
    sizes, kernel = numbers(rng, 2, 1, 6), numbers(rng, 2, 1, 3)
    padding = str(rng.choice(["SAME", "VALID"])) if fits(sizes, kernel, "VALID") else "SAME"
    x = image(rng, (2, *sizes, 2))
    keywords = dict(include_batch_in_index=bool(rng.integers(0, 2)))
    return Call("max_pool_with_argmax", (x,), (list(kernel), list(numbers(rng, 2, 1, 3)), padding), keywords)


def average(rng: np.random.Generator) -> Call:
    rank = int(rng.integers(1, 4))
    sizes, kernel = numbers(rng, rank, 1, 6), numbers(rng, rank, 1, 3)
    padding = str(rng.choice(["SAME", "VALID"])) if fits(sizes, kernel, "VALID") else "SAME"
    x = rng.normal(size=(2, *sizes, 2)).astype("float32")
    return Call(f"avg_pool{rank}d", (x,), (list(kernel), list(numbers(rng, rank, 1, 3)), padding), {})


def erosion(rng: np.random.Generator) -> Call:
    sizes, kernel, dilations = numbers(rng, 2, 1, 6), numbers(rng, 2, 1, 3), numbers(rng, 2, 1, 2)
    if min(sizes) < 3:  # where no tap of a dilated window is inside, TensorFlow's gradient goes to the nearest pixel
        dilations = (1, 1)
    reach = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True))
    padding = str(rng.choice(["SAME", "VALID"])) if fits(sizes, reach, "VALID") else "SAME"
    x = image(rng, (2, *sizes, 2), odd=max(dilations) == 1)  # dilated, a window nothing won in sends it to no tap of its own
    filters = np.zeros((*kernel, 2), "float32")
    keywords = dict(strides=[1, *numbers(rng, 2, 1, 3), 1], padding=padding, data_format="NHWC", dilations=[1, *dilations, 1])
    return Call("erosion2d", (x, filters), (), keywords)


def convolution(rng: np.random.Generator) -> Call:
    rank = int(rng.integers(1, 4))
    sizes, kernel, dilation = numbers(rng, rank, 1, 6), numbers(rng, rank, 1, 3), numbers(rng, rank, 1, 2)
    if rank == 3 or rng.random() < 0.6:
        dilation = (1,) * rank
    reach = tuple((k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True))
    groups = 2 if rank < 3 and rng.random() < 0.3 else 1
    padding: Any = str(rng.choice(["SAME", "VALID"]))
    if rank == 2 and rng.random() < 0.4:
        padding = explicit(rng, rank, 3)
    if not fits(sizes, reach, padding):
        padding = "SAME"
    inner, outer = int(rng.integers(1, 3)), int(rng.integers(1, 3)) * groups
    x, w = rng.normal(size=(2, *sizes, inner * groups)), rng.normal(size=(*kernel, inner, outer))
    strides: Any = int(rng.integers(1, 4)) if rank < 3 else [1, *within(numbers(rng, 3, 1, 3), kernel), 1]
    dilations = [1, *dilation, 1] if max(dilation) > 1 else None
    if rank == 1 and dilations:
        dilations = dilation[0]
    return Call(f"conv{rank}d", (x, w), (strides, padding), dict(dilations=dilations))


def depthwise(rng: np.random.Generator) -> Call:
    sizes, kernel, s = numbers(rng, 2, 2, 6), numbers(rng, 2, 1, 3), int(rng.integers(1, 3))
    padding = str(rng.choice(["SAME", "VALID"])) if fits(sizes, kernel, "VALID") else "SAME"
    inner, times = numbers(rng, 2, 1, 3)
    x, w = rng.normal(size=(2, *sizes, inner)), rng.normal(size=(*kernel, inner, times))
    return Call("depthwise_conv2d", (x, w), ([1, s, s, 1], padding), {})


def transposed(rng: np.random.Generator) -> Call:
    """A right output size, now and then one beside it."""
    rank = int(rng.integers(1, 4))
    sizes, kernel, strides = numbers(rng, rank, 1, 4), numbers(rng, rank, 1, 4), numbers(rng, rank, 1, 3)
    if rank == 3:
        strides = within(strides, kernel)
    same = bool(rng.integers(0, 2))
    wanted = [
        (n - 1) * s + (int(rng.integers(1, s + 1)) if same else k + int(rng.integers(0, s)))
        for n, s, k in zip(sizes, strides, kernel, strict=True)
    ]
    if rng.random() < 0.1:
        wanted[0] += max(strides)
    inner, outer = numbers(rng, 2, 1, 3)
    x, w = rng.normal(size=(2, *sizes, inner)), rng.normal(size=(*kernel, outer, inner))
    return Call(f"conv{rank}d_transpose", (x, w), ([2, *wanted, outer], list(strides)), dict(padding="SAME" if same else "VALID"))


def of_keras(rng: np.random.Generator) -> Call:
    rank = int(rng.integers(1, 4))
    sizes, kernel = numbers(rng, rank, 2, 6), numbers(rng, rank, 1, 3)
    padding = str(rng.choice(["same", "valid"])) if fits(sizes, kernel, "VALID") else "same"
    kind = int(rng.integers(0, 4))
    strides = numbers(rng, rank, 1, 3)
    if kind < 2:
        name = ("max_pool", "average_pool")[kind]
        x = image(rng, (2, *sizes, 2)) if kind == 0 else rng.normal(size=(2, *sizes, 2)).astype("float32")
        return Call(name, (x,), (kernel, None if rng.random() < 0.3 else strides, padding), {}, True)
    if rank == 3:
        strides = within(strides, kernel)
    inner, outer = numbers(rng, 2, 1, 3)
    x = rng.normal(size=(2, *sizes, inner))
    dilation = numbers(rng, rank, 1, 2) if rank < 3 and rng.random() < 0.2 else 1
    if kind == 2:
        w = rng.normal(size=(*kernel, inner, outer))
        if dilation != 1:
            padding = "same"
        return Call("conv", (x, w), (strides, padding), dict(dilation_rate=dilation), True)
    w = rng.normal(size=(*kernel, outer, inner))
    extra = None if rng.random() < 0.5 else int(rng.integers(0, 2))
    return Call("conv_transpose", (x, w), (strides, padding), dict(output_padding=extra), True)


MAKERS: dict[str, Callable[[np.random.Generator], Call]] = {
    "max_pool": maximum,
    "argmax": argmax,
    "avg_pool": average,
    "erosion2d": erosion,
    "conv": convolution,
    "depthwise": depthwise,
    "conv_transpose": transposed,
    "keras": of_keras,
}


def theirs(call: Call) -> tuple[tuple[Any, ...], Any] | Exception:
    """(results, gradients) of TensorFlow, or what it raised; gradients None where only the gradient raised."""
    function = getattr(keras.ops if call.keras else tf.nn, call.name)
    arrays = [tf.constant(a) for a in call.arrays]
    with tf.GradientTape() as recorded:
        for a in arrays:
            recorded.watch(a)
        try:
            result = function(*arrays, *call.values, **call.keywords)
            results = tuple(result) if isinstance(result, tuple) else (result,)
            loss = tf.reduce_sum(results[0] * tf.constant(weights(results[0].shape, call)))
        except Exception as error:
            return error
    try:
        gradients = [None if g is None else g.numpy() for g in recorded.gradient(loss, arrays)]
    except Exception:
        return tuple(r.numpy() for r in results), None
    return tuple(r.numpy() for r in results), gradients


def mine(call: Call) -> tuple[tuple[Any, ...], Any] | Exception:
    try:
        result, pull = astride.vjp(
            getattr(keras_like if call.keras else ours, call.name), *call.arrays, *call.values, **call.keywords
        )
    except astride.AstrideError as error:
        return error
    results = result if isinstance(result, tuple) else (result,)
    return results, pull(weights(results[0].shape, call))[: len(call.arrays)]


def weights(shape: Any, call: Call) -> Any:
    return np.random.default_rng(tuple(shape)).integers(1, 9, tuple(shape)).astype(call.arrays[0].dtype)


def assert_alike(call: Call) -> bool:
    """Whether both accepted the call, with results and gradients equal."""
    want, got = theirs(call), mine(call)
    if isinstance(want, Exception) or isinstance(got, Exception):
        assert isinstance(want, Exception) and isinstance(got, Exception), f"{call}\n  tensorflow {want}\n  astride {got}"
        return False
    tolerance = 1e-12 if call.arrays[0].dtype == np.float64 else 2e-6
    exact = call.name.startswith(("max_pool", "erosion"))
    for g, w in zip(got[0], want[0], strict=True):
        if exact:
            assert_same(g, w, str(call))
        else:
            assert_near(g, w, tolerance, str(call))
    for i, (g, w) in enumerate(zip(got[1], want[1] or (None,) * len(got[1]), strict=True)):
        if w is not None and not (call.name == "erosion2d" and i == 1):
            assert_near(g, w, tolerance, f"{call}, gradient {i}")
    return True


@pytest.mark.parametrize("op", MAKERS)
def test_a_sample(op: str) -> None:
    accepted = sum(assert_alike(MAKERS[op](np.random.default_rng([seed, *op.encode()]))) for seed in range(SAMPLE))
    assert accepted > SAMPLE // 3


@pytest.mark.conformance
@pytest.mark.parametrize("block", range(SWEEP // BLOCK))
@pytest.mark.parametrize("op", MAKERS)
def test_the_sweep(op: str, block: int) -> None:
    for seed in range(SAMPLE + block * BLOCK, SAMPLE + (block + 1) * BLOCK):
        assert_alike(MAKERS[op](np.random.default_rng([seed, *op.encode()])))


def test_a_difference_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    call = Call("max_pool1d", (np.arange(6, dtype="float32").reshape(1, 6, 1),), (2, 2, "VALID"), {})
    assert assert_alike(call)
    results, gradients = theirs(call)  # type: ignore[misc]
    for wrong in (((results[0] + 1,), gradients), (results, [gradients[0] + 1]), ValueError("refused")):
        monkeypatch.setitem(globals(), "theirs", lambda call, wrong=wrong: wrong)
        with pytest.raises(AssertionError):
            assert_alike(call)
