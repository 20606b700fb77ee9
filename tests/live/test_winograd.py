"""Errors of Winograd's convolution on layers of real networks, against float64 and beside those of the installed torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import astride

torch = pytest.importorskip("torch", reason="torch is not installed: pip install astride[peers]")

pytestmark = pytest.mark.live

LAYERS = [(1, 64, 56, 64), (1, 128, 28, 128), (2, 256, 14, 256), (1, 512, 14, 512), (1, 64, 112, 64), (1, 192, 28, 96)]
"""Images, input channels, size, output channels: ResNet, VGG and GoogLeNet."""

STATED = {0: 6e-7, 2: 6e-7, 4: 1e-5}
"""The largest error over the largest |y|, |dx| or |dw|, by the setting: docs/cpu.md."""


def errors(found: Any, exact: Any) -> list[float]:
    return [float(np.abs(a - e).max() / np.abs(e).max()) for a, e in zip(found, exact, strict=True)]


def torchs(x: NDArray[Any], w: NDArray[Any], dy: NDArray[Any]) -> list[NDArray[Any]]:
    """y, dx and dw of torch."""
    leaves = [torch.from_numpy(a).requires_grad_() for a in (x, w)]
    y = torch.nn.functional.conv2d(*leaves, None, 1, 1)
    y.backward(torch.from_numpy(dy))
    return [a.detach().numpy() for a in (y, *(leaf.grad for leaf in leaves))]


@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_errors_are_those_that_are_stated(layer: tuple[int, int, int, int]) -> None:
    """With tiles of 2x2 no more than twice torch's own, which computes directly."""
    n, inputs, size, outputs = layer
    rng = np.random.default_rng(0)
    x = np.maximum(rng.standard_normal((n, inputs, size, size)), 0).astype("float32")
    w = (rng.standard_normal((outputs, inputs, 3, 3)) * (2 / (9 * inputs)) ** 0.5).astype("float32")
    dy = rng.standard_normal((n, outputs, size, size)).astype("float32")
    exact = torchs(*(a.astype("float64") for a in (x, w, dy)))
    theirs = errors(torchs(x, w, dy), exact)
    for most, stated in STATED.items():
        with astride.use(backend="cpu", winograd=most):
            y, pull = astride.vjp(astride.conv, x, w, padding=1)
            ours = errors((y, *pull(dy)[:2]), exact)
        assert max(ours) < stated, (most, ours)
        if most == 2:
            assert all(a < 2 * b for a, b in zip(ours, theirs, strict=True)), (ours, theirs)
