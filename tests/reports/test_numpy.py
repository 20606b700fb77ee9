"""Field reports about NumPy and teaching code: what a right gradient is, and that the check finds wrong ones."""

from __future__ import annotations

import numpy as np
import pytest

import astride
from astride import dispatch
from astride.like import pytorch as F


def gradient(x: np.ndarray, kernel: int, stride: int) -> np.ndarray:
    y, pull = astride.vjp(F.max_pool2d, x[None, None], kernel, stride=stride)
    return np.asarray(pull(np.ones_like(y))[0][0, 0])


def test_numpy_01_overlapping_windows_add_up() -> None:
    dx = gradient(np.array([[1.0, 2, 3], [4, 9, 5], [6, 7, 8]]), 2, 1)
    assert dx[1, 1] == 4 and dx.sum() == 4


def test_numpy_03_the_gradient_sums_to_the_number_of_outputs() -> None:
    assert gradient(np.ones((10, 10)), 3, 2).sum() == 16
    x = np.arange(24.0).reshape(4, 6)
    x[1, 2] = 88
    assert gradient(x, 2, 1)[1, 2] == 4


@pytest.mark.parametrize("op", [astride.avg_pool, astride.max_pool])
def test_numpy_04_the_check_finds_a_gradient_of_the_first_window_alone(op: object, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(4).permutation(25).reshape(1, 1, 5, 5).astype(np.float64)
    assert astride.check_gradient(op, x, kernel=3, stride=1)
    right = dispatch.backward

    def only_first(plan: object, dy: np.ndarray, saved: object, **options: object) -> object:
        first = np.zeros_like(dy)
        first[..., 0, 0] = dy[..., 0, 0]
        return right(plan, first, saved, **options)

    monkeypatch.setattr(dispatch, "backward", only_first)
    assert not astride.check_gradient(op, x, kernel=3, stride=1)


def test_numpy_06_no_two_sizes_alike() -> None:
    rng = np.random.default_rng(6)
    x, w = rng.normal(size=(2, 3, 7, 10)), rng.normal(size=(4, 3, 2, 3))
    assert astride.check_gradient(F.conv2d, x, w, stride=(2, 3), padding=(1, 2))


def test_numpy_07_only_the_greatest_itself_has_the_gradient() -> None:
    x = np.array([[[[1.0, 1.0 - 1e-3], [0.5, 0.2]]]])
    assert astride.vjp(F.max_pool2d, x, 2)[1](np.ones((1, 1, 1, 1)))[0][0, 0].tolist() == [[1, 0], [0, 0]]
    report = astride.check_gradient(F.max_pool2d, np.array([[[[1.0, 1.0 - 1e-7], [0.5, 0.2]]]]), 2)
    assert report and report.differences[0].kinks == 2 and "kink" in str(report)
