"""A numeric gradient check for layers, after Caffe's test_gradient_check_util: float64, every bottom and parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from astride.layers import Blob, Layer

Array = npt.NDArray[Any]


class Bench:
    """A layer between blobs of its own, outside any network."""

    def __init__(self, layer: Layer, bottoms: Sequence[Array], tops: int = 1, *, in_place: bool = False, seed: int = 0) -> None:
        self.random = np.random.RandomState(seed)
        self.layer = layer
        self.values = [np.array(b, np.float64) for b in bottoms]
        self.bottom = [Blob(b.shape, "float64") for b in self.values]
        self.top = list(self.bottom[:1]) if in_place else [Blob((), "float64") for _ in range(tops)]
        layer.name = "bench"
        layer.key = 1234
        layer.setup(self.bottom, self.top)
        layer.reshape(self.bottom, self.top)
        for parameter in layer.params:
            parameter.data[...] = self.random.normal(size=parameter.shape)

    def forward(self) -> list[Array]:
        """The tops for the present values; layers that draw draw the same again."""
        self.layer.draws = 0
        for blob, value in zip(self.bottom, self.values, strict=True):
            blob.reshape(*value.shape)
            blob.data[...] = value
        self.layer.reshape(self.bottom, self.top)
        self.layer.forward(self.bottom, self.top)
        return [t.data.copy() for t in self.top]

    def backward(self, weights: Sequence[Array], want: Sequence[bool]) -> None:
        """Gradients of sum(weights * tops): bottoms' are overwritten, so they are filled with rubbish first."""
        for blob in self.bottom:
            blob.diff[...] = 7e7
        for top, weight in zip(self.top, weights, strict=True):
            top.diff[...] = weight
        self.layer.backward(self.top, want, self.bottom)


def check_gradient(
    bench: Bench, want: Sequence[bool] | None = None, *, silent: Sequence[int] = (), step: float = 1e-6, params: bool = True
) -> None:
    """Compare every element's analytic gradient with a central difference, for a random weighting of the tops.

    `silent` tops pass no gradient and have no weight. Without `params` the parameters are left out: statistics, say.
    """
    want = [True] * len(bench.bottom) if want is None else list(want)
    tops = bench.forward()
    weights = [np.zeros(t.shape) if i in silent else bench.random.uniform(0.5, 1.5, t.shape) for i, t in enumerate(tops)]
    for parameter in bench.layer.params:
        parameter.diff[...] = 0
    bench.backward(weights, want)
    checked = [(v, b.diff.copy()) for v, b, w in zip(bench.values, bench.bottom, want, strict=True) if w]
    checked += [(p.data, p.diff.copy()) for p in bench.layer.params if params]
    assert checked, "nothing to check"

    def objective() -> float:
        return float(sum((w * t).sum() for w, t in zip(weights, bench.forward(), strict=True)))

    for values, gradient in checked:
        flat = values.reshape(-1)
        numeric = np.empty(flat.size)
        for i in range(flat.size):
            before = flat[i]
            flat[i] = before + step
            above = objective()
            flat[i] = before - step
            numeric[i] = (above - objective()) / (2 * step)
            flat[i] = before
        np.testing.assert_allclose(gradient.reshape(-1), numeric, rtol=1e-5, atol=1e-6 * max(1.0, np.abs(numeric).max()))


def away_from(values: Array, kink: float = 0.0, gap: float = 0.05) -> Array:
    """The values with those too near a kink moved off it."""
    near = np.abs(values - kink) < gap
    return np.where(near, kink + np.where(values < kink, -gap, gap), values)


def distinct(random: np.random.RandomState, shape: tuple[int, ...], low: float = -1.0, high: float = 1.0) -> Array:
    """Values no two of which are close, in random places: no ties within a window."""
    count = int(np.prod(shape))
    return random.permutation(np.linspace(low, high, count)).reshape(shape)
