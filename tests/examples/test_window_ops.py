"""The example of operators of one's own: median, mode and log-sum-exp, plain and compiled, values and gradients."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import astride

ROOT = Path(__file__).resolve().parents[2]
X = np.random.default_rng(0).permutation(np.linspace(-2, 2, 2 * 2 * 7 * 6)).reshape(2, 2, 7, 6)


def numba_is_missing() -> bool:
    return importlib.util.find_spec("numba") is None


COMPILE = [
    False,
    pytest.param(True, marks=[pytest.mark.live, pytest.mark.skipif(numba_is_missing(), reason="Numba is not installed")]),
]


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("window_ops_example", ROOT / "examples" / "window_ops.py")
    assert spec and spec.loader
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def row(*values: float) -> Any:
    return np.array(values, np.float64)[None, None]


@pytest.mark.parametrize("compile", COMPILE)
@pytest.mark.parametrize(
    ("values", "expected"),
    [((3, 1, 2), 2), ((4, 1, 3, 2), 2.5), ((7,), 7), ((1, 1, 9), 1), ((-np.inf, 0, np.inf), 0), ((1, np.nan, 2), np.nan)],
)
def test_median(example: ModuleType, compile: bool, values: tuple[float, ...], expected: float) -> None:
    y = example.median(row(*values), kernel=len(values), compile=compile)
    np.testing.assert_array_equal(y.item(), expected)


@pytest.mark.parametrize("compile", COMPILE)
def test_median_against_numpy(example: ModuleType, compile: bool) -> None:
    for kernel in ((3, 3), (2, 2), (2, 3)):
        y = example.median(X, kernel=kernel, stride=1, compile=compile)
        windows = np.lib.stride_tricks.sliding_window_view(X, kernel, axis=(2, 3))
        np.testing.assert_array_equal(y, np.median(windows, axis=(-2, -1)))


@pytest.mark.parametrize("compile", COMPILE)
@pytest.mark.parametrize(
    ("values", "expected"), [((2, 1, 2), 2), ((2, 1, 1, 2), 1), ((3, 2, 1), 1), ((5,), 5), ((-1, 7, 7, -1, 7), 7)]
)
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
def test_mode(example: ModuleType, compile: bool, values: tuple[float, ...], expected: float, dtype: str) -> None:
    x = row(*values).astype(dtype)
    if dtype == "uint8" and min(values) < 0:
        expected = 7
    y = example.mode(x, kernel=len(values), compile=compile)
    assert y.item() == expected and y.dtype == dtype


@pytest.mark.parametrize("compile", COMPILE)
def test_mode_has_no_gradient(example: ModuleType, compile: bool) -> None:
    y, pull = astride.vjp(example.mode, X, kernel=2, compile=compile)
    with pytest.raises(astride.UnsupportedError, match="mode was given no gradient"):
        pull(y)


@pytest.mark.parametrize("compile", COMPILE)
def test_log_sum_exp(example: ModuleType, compile: bool) -> None:
    y = example.log_sum_exp(X, kernel=3, stride=2, rules="caffe", compile=compile)
    total = astride.avg_pool(np.exp(X), kernel=3, stride=2, rules="caffe")
    counts = astride.avg_pool(np.ones_like(X), kernel=3, stride=2, rules="caffe")
    taps = astride.window_reduce(X, len, kernel=3, stride=2, rules="caffe", compile=False)
    np.testing.assert_allclose(y, np.log(total / counts * taps), rtol=1e-12)
    assert example.log_sum_exp(row(1e4, 1e4), kernel=2, compile=compile).item() == pytest.approx(1e4 + np.log(2))
    assert example.log_sum_exp(row(-np.inf, -np.inf), kernel=2, compile=compile).item() == -np.inf
    assert np.isnan(example.log_sum_exp(row(1, np.nan), kernel=2, compile=compile).item())


@pytest.mark.parametrize("compile", COMPILE)
@pytest.mark.parametrize("kernel", [2, 3])
def test_gradients(example: ModuleType, compile: bool, kernel: int) -> None:
    for operator in (example.median, example.log_sum_exp):
        report = astride.check_gradient(operator, X, kernel=kernel, stride=1, padding=1, compile=compile)
        assert report, str(report)


@pytest.mark.parametrize("compile", COMPILE)
def test_equal_middles_share(example: ModuleType, compile: bool) -> None:
    y, pull = astride.vjp(example.median, row(1, 5, 5, 9), kernel=4, compile=compile)
    assert pull(np.ones_like(y))[0].ravel().tolist() == [0, 0.5, 0.5, 0]  # type: ignore[union-attr]
    y, pull = astride.vjp(example.median, row(5, 1, 5, 5, 9), kernel=5, compile=compile)
    np.testing.assert_allclose(pull(np.ones_like(y))[0].ravel(), [1 / 3, 0, 1 / 3, 1 / 3, 0])  # type: ignore[union-attr]


def test_the_command(example: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["window_ops.py", "--plain"])
    example.main()
    printed = capsys.readouterr().out
    assert "median\n [[1. 2.]\n [3. 4.]]" in printed and "gradient of log_sum_exp" in printed
