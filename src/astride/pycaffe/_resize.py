"""Resizing as Caffe did it through scikit-image and SciPy, one axis after the other as a product with a small matrix.

Interpolation in two dimensions is the product of two in one: each new row is a weighted sum of a few old ones. The matrices
hold those weights, so the order of the axes does not matter and the border is a row that lacks weight.
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
    values = image.astype(np.float64)
    least = values.min() if centred else 0.0
    rows = _weights(image.shape[0], size[0], order, centred)
    columns = _weights(image.shape[1], size[1], order, centred)
    resized = np.tensordot(columns, np.tensordot(rows, values - least, (1, 0)), (1, 1)).transpose(1, 0, 2) + least
    if centred and order == 3:
        # scikit-image keeps to the range of the input, which a cubic would leave.
        resized = resized.clip(values.min(), values.max())
    return resized.astype(np.float32)


def _weights(old: int, new: int, order: int, centred: bool) -> Array:
    """(new, old): what each old sample contributes to each new one."""
    places = np.arange(new, dtype=np.float64)
    if centred:
        places = (places + 0.5) * old / new - 0.5
    else:
        places *= (old - 1) / max(new - 1, 1)
    first = np.floor(places + 0.5 if order == 0 else places).astype(int) - (_REACH[order] // 2 - 1 if order else 0)
    matrix = np.zeros((new, old))
    for k in range(_REACH[order]):
        source = first + k
        weight = _kernel(places - source, order)
        # Beyond the border there is nothing; where corners stay corners nothing beyond is ever asked for but by a cubic.
        inside = (source >= 0) & (source < old) if centred else np.ones(new, bool)
        np.add.at(matrix, (np.arange(new)[inside], source.clip(0, old - 1)[inside]), weight[inside])
    return matrix


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
