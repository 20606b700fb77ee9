"""Bilinear resizing as OpenCV's `resize` does it: bytes in whole numbers, everything else in float32.

Source: OpenCV 4.14, modules/imgproc/src/resize.cpp. Bytes are equal to it. Floats differ by at most 1e-5 of the largest value:
its vector code rounds the places of the samples otherwise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

ONE = 1 << 11
"""A weight of one, for bytes."""


def bilinear(image: Array, width: int, height: int, growth: float | None = None) -> Array:
    """An image (H, W, C) at another size, of its own dtype. The sample points are those of pixel centres, the edges held.

    `growth` is the factor the size was rounded from, where there was one: samples are then so far apart.
    Halving both sides takes the mean of four pixels, as OpenCV does there.
    """
    rows, columns = image.shape[:2]
    # In this order: OpenCV takes the reciprocal of the growth, not the quotient of the sizes.
    step_y, step_x = 1 / (growth or height / rows), 1 / (growth or width / columns)
    if step_y == step_x == 2:
        return _halved(image[: 2 * height, : 2 * width])
    if image.dtype == np.uint8:
        return _bytes(image, _samples(columns, width, step_x, held=True), _samples(rows, height, step_y))
    mixed = _floats(image.astype(np.float32), _samples(columns, width, step_x, held=True), _samples(rows, height, step_y))
    return _as(mixed, image.dtype)


def _samples(size: int, count: int, step: float, *, held: bool = False) -> tuple[Array, Array, Array]:
    """For each output the two inputs it lies between and how near it is to the second (float32)."""
    place = ((np.arange(count) + 0.5) * step - 0.5).astype(np.float32)
    first = np.floor(place).astype(np.int64)
    near = place - first.astype(np.float32)
    if held:
        outside = (first < 0) | (first >= size - 1)
        near = np.where(outside, np.float32(0), near)
    return first.clip(0, size - 1), (first + 1).clip(0, size - 1), near


def _bytes(image: Array, x: tuple[Array, Array, Array], y: tuple[Array, Array, Array]) -> Array:
    (left, right, near_x), (upper, lower, near_y) = x, y
    whole = image.astype(np.int32)
    across = whole[:, left] * _whole(1 - near_x)[:, None] + whole[:, right] * _whole(near_x)[:, None]
    across >>= 4
    above, below = _whole(1 - near_y)[:, None, None], _whole(near_y)[:, None, None]
    # Each product keeps its upper 16 bits before the two are added: one unit in four is lost on purpose.
    down = ((across[upper] * above) >> 16) + ((across[lower] * below) >> 16)
    return ((down + 2) >> 2).clip(0, 255).astype(np.uint8)


def _whole(weights: Array) -> Array:
    return np.rint(weights * np.float32(ONE)).astype(np.int32)


def _floats(image: Array, x: tuple[Array, Array, Array], y: tuple[Array, Array, Array]) -> Array:
    (left, right, near_x), (upper, lower, near_y) = x, y
    across = image[:, left] * (1 - near_x)[:, None] + image[:, right] * near_x[:, None]
    mixed: Array = across[upper] * (1 - near_y)[:, None, None] + across[lower] * near_y[:, None, None]
    return mixed


def _halved(image: Array) -> Array:
    quarters = [image[down::2, right::2] for down in (0, 1) for right in (0, 1)]
    if image.dtype == np.uint8:
        return ((sum(quarter.astype(np.int32) for quarter in quarters) + 2) >> 2).astype(np.uint8)  # type: ignore[union-attr]
    mean = sum(quarter.astype(np.float32) for quarter in quarters) * np.float32(0.25)
    return _as(np.asarray(mean), image.dtype)


def _as(values: Array, dtype: np.dtype[Any]) -> Array:
    """Rounded and held in the dtype's range, where it is one of whole numbers."""
    if dtype.kind in "iu":
        bounds = np.iinfo(dtype)
        return np.rint(values).clip(bounds.min, bounds.max).astype(dtype)
    return values.astype(dtype)
