"""Resizing as Caffe did it through scikit-image and SciPy: one axis after the other, each new row a weighted sum of a few old.

Interpolation in two dimensions is the product of two in one, so the order of the axes does not matter. A tap beyond the border
has the weight 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import UnsupportedError

Array = npt.NDArray[Any]
_REACH = {0: 1, 1: 2, 3: 4}
"""How many old samples a new one is made of."""


def resize(image: Array, size: tuple[int, int], order: int, *, centred: bool) -> Array:
    """The image (H, W, K) at `size`, float32. `centred`: pixel centres at halves, the least value beyond the border."""
    if order not in _REACH:
        raise UnsupportedError(
            "no such interpolation here",
            given={"interp_order": order},
            required="0 nearest, 1 bilinear, 3 bicubic",
            hint="interp_order=1",
        )
    taps = [_taps(image.shape[axis], size[axis], order, centred) for axis in (0, 1)]
    resized = image
    # The axis that shrinks more goes first: it leaves less to do for the other.
    for axis in sorted((0, 1), key=lambda axis: size[axis] / image.shape[axis]):
        resized = _along(resized, axis, *taps[axis])
    if centred:
        rows, columns = (weights.sum(0) for _, weights in taps)
        resized += float(image.min()) * (1 - rows[:, None, None] * columns[:, None])
        if order == 3:
            # scikit-image keeps to the range of the input, which a cubic would leave.
            resized = resized.clip(image.min(), image.max())
    return resized.astype(np.float32)


def _along(values: Array, axis: int, sources: Array, weights: Array) -> Array:
    """One axis at another size, in float64."""
    shape = [1] * values.ndim
    shape[axis] = sources.shape[1]
    return np.asarray(
        sum(values.take(source, axis) * weight.reshape(shape) for source, weight in zip(sources, weights, strict=True))
    )


def _taps(old: int, new: int, order: int, centred: bool) -> tuple[Array, Array]:
    """(reach, new) each: which old samples a new one is made of, and how much of each."""
    places = np.arange(new, dtype=np.float64)
    if centred:
        places = (places + 0.5) * old / new - 0.5
    else:
        places *= (old - 1) / max(new - 1, 1)
    first = np.floor(places + 0.5 if order == 0 else places).astype(int) - (_REACH[order] // 2 - 1 if order else 0)
    sources = first + np.arange(_REACH[order])[:, None]
    weights = _kernel(places - sources, order)
    if centred:
        # Beyond the border there is nothing; where corners stay corners only a cubic asks for it, and gets the last sample.
        weights = np.where((sources >= 0) & (sources < old), weights, 0.0)
    return sources.clip(0, old - 1), weights


def _kernel(distance: Array, order: int) -> Array:
    """The weight of a sample at this distance: nearest, linear, or Keys' cubic with -0.5."""
    d = np.abs(distance)
    if order == 0:
        return np.ones_like(d)
    if order == 1:
        return np.asarray(np.clip(1 - d, 0, None))
    near = (1.5 * d - 2.5) * d * d + 1
    far = ((-0.5 * d + 2.5) * d - 4) * d + 2
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))


__all__ = ["resize"]
