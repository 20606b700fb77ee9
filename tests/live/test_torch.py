"""Random calls of torch.nn.functional: the same results, indices and gradients as the installed torch, and the same refusals."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from tests.compare import assert_near, assert_same
from tests.live.torch_calls import OPS, Call, call_of

import astride
from astride.like import pytorch as F

torch = pytest.importorskip("torch", reason="torch is not installed: pip install astride[peers]")

pytestmark = pytest.mark.live

SAMPLE, SWEEP, BLOCK = 50, 4050, 50
"""A call's time is that of compiling its kernels; what rules decide is sampled again by the acceptance tests."""
TOLERANCE = {"float64": 1e-10, "float32": 2e-4}


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    """PyTorch's own answer for duplicates depends on its threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def torchs(call: Call, *, forward_only: bool = False) -> tuple[Any, Any] | Exception:
    """(results, gradients) of torch, or what it raised."""
    arrays = [torch.from_numpy(a.copy()).requires_grad_(a.dtype.kind == "f") for a in call.arrays]
    keywords = {k: torch.from_numpy(v.copy()) if isinstance(v, np.ndarray) else v for k, v in call.keywords.items()}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a copy that padding="same" may take
            result = getattr(torch.nn.functional, call.name)(*arrays, *call.values, **keywords)
    except Exception as error:
        return error
    results = result if isinstance(result, tuple) else (result,)
    # of an adaptive pooling without windows PyTorch's backward refuses what its forward gave
    if forward_only or (call.name.startswith("adaptive") and not results[0].numel()):
        return tuple(r.detach().numpy() for r in results), ()
    results[0].backward(torch.from_numpy(weights(tuple(results[0].shape), str(call.arrays[0].dtype))))
    return tuple(r.detach().numpy() for r in results), tuple(None if a.grad is None else a.grad.numpy() for a in arrays)


def ours(call: Call) -> tuple[Any, Any] | Exception:
    try:
        result, pull = astride.vjp(getattr(F, call.name), *call.arrays, *call.values, **call.keywords)
    except astride.AstrideError as error:
        return error
    results = result if isinstance(result, tuple) else (result,)
    return results, pull(weights(results[0].shape, str(call.arrays[0].dtype)))


def weights(shape: tuple[int, ...], dtype: str) -> Any:
    return np.random.default_rng(shape).normal(size=shape).astype(dtype)


def assert_alike(call: Call) -> bool:
    """Whether both accepted the call, with all parts equal."""
    got = ours(call)
    # in a dilated window over padding alone PyTorch's index points past the plane, and its backward writes there
    bare = call.name.startswith("max_pool") and not isinstance(got, Exception) and reads_nothing(call)
    want = torchs(call, forward_only=bare)
    if isinstance(got, Exception) and not isinstance(want, Exception) and want[0][0].size == 0:
        # an empty output is refused by PyTorch's own code, and accepted where oneDNN computes (float32)
        assert "the output is empty" in str(got), f"{call}\n  {got}"
        return False
    if isinstance(want, Exception) or isinstance(got, Exception):
        assert isinstance(want, Exception) and isinstance(got, Exception), f"{call}\n  torch {want}\n  astride {got}"
        return False
    tolerance = TOLERANCE[str(call.arrays[0].dtype)]
    assert len(want[0]) == len(got[0])
    if bare:
        assert_same(got[0][0], want[0][0], str(call))
        return True
    for w, g in zip(want[0], got[0], strict=True):
        compare = assert_same if call.name.startswith("max") else lambda a, b, where: assert_near(a, b, tolerance, where)
        compare(g, w, str(call))
        assert g.dtype == w.dtype
    for at, (w, g) in enumerate(zip(want[1], got[1], strict=False)):
        if w is not None:
            scale = float(np.abs(call.arrays[0]).max(initial=0.0, where=np.isfinite(call.arrays[0]))) if at else 1.0
            assert_near(g, w, tolerance, f"gradient {at} of {call}", scale=scale)
    return True


def reads_nothing(call: Call) -> bool:
    """Whether some window of the call has no tap inside the input."""
    keywords = {**call.keywords, "return_indices": True}
    return bool((getattr(F, call.name)(*call.arrays, *call.values, **keywords)[1] < 0).any())


@pytest.mark.parametrize("first", range(0, SAMPLE, BLOCK))
@pytest.mark.parametrize("op", OPS)
def test_sample(op: str, first: int) -> None:
    accepted = sum(assert_alike(call_of(op, seed)) for seed in range(first, first + BLOCK))
    assert accepted >= BLOCK // 4, "too few of the calls are good ones"


@pytest.mark.conformance
@pytest.mark.parametrize("first", range(SAMPLE, SWEEP, 10 * BLOCK))
@pytest.mark.parametrize("op", OPS)
def test_sweep(op: str, first: int) -> None:
    assert sum(assert_alike(call_of(op, seed)) for seed in range(first, first + 10 * BLOCK))


@pytest.mark.parametrize("part", ["value", "index", "gradient"])
def test_a_difference_is_found(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    call = Call("max_pool1d", (np.array([[[1.0, 3, 3, 2]]]),), (2,), {"stride": 1, "return_indices": True})
    assert assert_alike(call)
    right = astride.vjp

    def wrong(fn: Any, *args: Any, **kwargs: Any) -> Any:
        (y, indices), pull = right(fn, *args, **kwargs)
        off = {name: float(name == part) for name in ("value", "index", "gradient")}
        return (y + off["value"], indices + int(off["index"])), lambda g: (pull(g)[0] + off["gradient"],)

    monkeypatch.setattr(astride, "vjp", wrong)
    with pytest.raises(AssertionError):
        assert_alike(call)


def test_another_refusal_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = Call("avg_pool1d", (np.ones((1, 1, 4)),), (2,), {"padding": 2})
    assert not assert_alike(bad)
    monkeypatch.setattr(astride, "vjp", lambda fn, *a, **k: (np.ones((1, 1, 2)), lambda g: (a[0],)))
    with pytest.raises(AssertionError, match="torch"):
        assert_alike(bad)


@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_padding_modes_of_modules(mode: str, rank: int) -> None:
    rng = np.random.default_rng([rank, len(mode)])
    for _ in range(15):
        kernel, padding = tuple(map(int, rng.integers(1, 4, rank))), tuple(map(int, rng.integers(0, 4, rank)))
        stride, dilation = tuple(map(int, rng.integers(1, 3, rank))), tuple(map(int, rng.integers(1, 3, rank)))
        x = rng.normal(size=(2, 4, *rng.integers(3, 6, rank)))
        module = getattr(torch.nn, f"Conv{rank}d")(
            4, 6, kernel, stride, padding, dilation, groups=2, padding_mode=mode, dtype=torch.float64
        )
        w, b = module.weight.detach().numpy(), module.bias.detach().numpy()
        tensor = torch.from_numpy(x).requires_grad_()
        try:
            want = module(tensor)
        except (RuntimeError, ValueError):
            with pytest.raises(astride.AstrideError):
                astride.conv(
                    x, w, b, stride=stride, padding=padding, dilation=dilation, groups=2, padding_mode=mode, rules="pytorch"
                )
            continue
        y, pull = astride.vjp(
            astride.conv, x, w, b, stride=stride, padding=padding, dilation=dilation, groups=2, padding_mode=mode, rules="pytorch"
        )
        assert_near(y, want.detach().numpy(), 1e-12)
        dy = rng.normal(size=y.shape)
        want.backward(torch.from_numpy(dy))
        for got, expected in zip(pull(dy), (tensor.grad, module.weight.grad, module.bias.grad), strict=True):
            assert_near(got, expected.numpy(), 1e-11, f"{kernel} {stride} {padding} {dilation}")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_types(dtype: str) -> None:
    """Within one rounding of the type, however large the window."""
    import ml_dtypes

    own = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    x = np.random.default_rng(1).random((2, 3, 33, 31)).astype(own)
    tensor = torch.from_numpy(x.astype("float32")).to(getattr(torch, dtype))
    for name, args in (("max_pool2d", (3, 2)), ("avg_pool2d", (16,)), ("lp_pool2d", (2.0, 3))):
        got = getattr(F, name)(x, *args)
        want = getattr(torch.nn.functional, name)(tensor, *args).to(torch.float32).numpy()
        assert got.dtype == own
        eps = float(ml_dtypes.finfo(own).eps)
        assert_near(got.astype("float32"), want, {"max_pool2d": 0.0, "avg_pool2d": eps, "lp_pool2d": 4 * eps}[name], name)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_integers(dtype: str) -> None:
    limits = np.iinfo(dtype)
    x = np.random.default_rng(2).choice(np.array([limits.min, limits.max, 0, 1], dtype), (2, 3, 6, 5))
    want, places = torch.nn.functional.max_pool2d(torch.from_numpy(x), 3, 1, 1, return_indices=True)
    got, indices = F.max_pool2d(x, 3, 1, 1, return_indices=True)
    assert_same(got, want.numpy())
    assert_same(indices, places.numpy())


def test_the_sizes_of_a_thousand_windows() -> None:
    """Output sizes and refusals alone, on far larger numbers than arrays would allow."""
    rng = np.random.default_rng(3)
    for _ in range(1000):
        n, k, s, p, d = (int(v) for v in rng.integers((1, 1, 1, 0, 1), (4000, 60, 40, 31, 6)))
        ceil = bool(rng.random() < 0.5)
        meta = torch.empty((1, 1, n), device="meta")
        try:
            want: Any = torch.nn.functional.max_pool2d(meta[None], (1, k), (1, s), (0, p), (1, d), ceil).shape[-1]
        except RuntimeError:
            want = None
        try:
            got: Any = (
                astride.plan("max_pool", (1, 1, n), rules="pytorch", kernel=k, stride=s, padding=p, dilation=d, ceil_mode=ceil)
                .axes[0]
                .out
            )
        except astride.ArgumentError:
            got = None
        assert got == want, (n, k, s, p, d, ceil)
