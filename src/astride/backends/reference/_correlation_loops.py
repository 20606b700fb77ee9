"""The same three relations as in _correlation, as a textbook writes them: channels last, every loop spelled out.

    loops4   for each image, row, column and channel, in Python numbers
    loops3   for each row, column and channel, all images at once

"Row and column" stand for every spatial axis. Arrays are (N, C, *size) views as in _correlation;
gather and scatter write the whole of `out`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..protocol import Array
from ._correlation import Link, oriented
from ._windows import EVERY, places


def gather_loops4(lk: Link, a: Array, w: Array, out: Array) -> None:
    """b[n, i, o] = sum over the group's channels and the window's taps of a times w."""
    al, kernel = np.moveaxis(a, 1, -1), oriented(lk, w).reshape(lk.kernel)
    b, number = np.moveaxis(out, 1, -1), {"f": float, "c": complex}.get(a.dtype.kind, int)
    for n in range(a.shape[0]):
        for place in places(lk.axes):
            for o in range(lk.b_channels):
                group, row = divmod(o, lk.b_channels // lk.groups)
                total: Any = number(0)
                for i, channel in enumerate(_group_channels(lk, group)):
                    for tap, offset in enumerate(place.offsets):
                        pixel = tuple(axis[tap] for axis in place.pixels)
                        total += number(al[(n, *pixel, channel)]) * number(kernel[group, row, i, offset])
                b[(n, *place.window, o)] = total if a.dtype.kind in "fc" else wrapped(total, a.dtype)


def wrapped(total: int, dtype: np.dtype[Any]) -> Any:
    """What is left of a whole number in an integer type; of a count of bools, whether there is any."""
    if dtype.kind == "b":
        return bool(total)
    bits = 8 * dtype.itemsize
    rest = total % (1 << bits)
    return rest - (1 << bits) if dtype.kind == "i" and rest >> (bits - 1) else rest


def scatter_loops4(lk: Link, b: Array, w: Array, out: Array) -> None:
    """a[n, i*s - p + j*d, c] += b[n, i, o] * w[o, c, j]."""
    bl, kernel = np.moveaxis(b, 1, -1), oriented(lk, w).reshape(lk.kernel)
    a = np.moveaxis(lk.start(out), 1, -1)
    for n in range(b.shape[0]):
        for place in places(lk.axes):
            for o in range(lk.b_channels):
                group, row = divmod(o, lk.b_channels // lk.groups)
                value = bl[(n, *place.window, o)]
                for i, channel in enumerate(_group_channels(lk, group)):
                    for tap, offset in enumerate(place.offsets):
                        pixel = tuple(axis[tap] for axis in place.pixels)
                        a[(n, *pixel, channel)] += value * kernel[group, row, i, offset]


def weights_loops4(lk: Link, a: Array, b: Array) -> Array:
    """w[o, c, j] += a[n, i*s - p + j*d, c] * b[n, i, o]."""
    al, bl = np.moveaxis(a, 1, -1), np.moveaxis(b, 1, -1)
    total = np.zeros(lk.kernel, a.dtype)
    for n in range(a.shape[0]):
        for place in places(lk.axes):
            for o in range(lk.b_channels):
                group, row = divmod(o, lk.b_channels // lk.groups)
                value = bl[(n, *place.window, o)]
                for i, channel in enumerate(_group_channels(lk, group)):
                    for tap, offset in enumerate(place.offsets):
                        pixel = tuple(axis[tap] for axis in place.pixels)
                        total[group, row, i, offset] += al[(n, *pixel, channel)] * value
    return oriented(lk, total.reshape(lk.weight_shape))


def gather_loops3(lk: Link, a: Array, w: Array, out: Array) -> None:
    """b[:, i, o] = the window of all images times the filter o, summed."""
    al, kernel = np.moveaxis(a, 1, -1), oriented(lk, w).reshape(lk.kernel)
    b = np.moveaxis(out, 1, -1)
    for place in places(lk.axes):
        window = al[(EVERY, *place.pixels, EVERY)]  # (N, taps, I)
        for o in range(lk.b_channels):
            group, row = divmod(o, lk.b_channels // lk.groups)
            seen = window[:, :, _group_slice(lk, group)]
            b[(EVERY, *place.window, o)] = (seen * kernel[group, row][:, place.offsets].T).sum(axis=(1, 2))


def scatter_loops3(lk: Link, b: Array, w: Array, out: Array) -> None:
    """Under each window, add the filter o times its value, for all images."""
    bl, kernel = np.moveaxis(b, 1, -1), oriented(lk, w).reshape(lk.kernel)
    a = np.moveaxis(lk.start(out), 1, -1)
    for place in places(lk.axes):
        under = (EVERY, *place.pixels)
        for o in range(lk.b_channels):
            group, row = divmod(o, lk.b_channels // lk.groups)
            value = bl[(EVERY, *place.window, o)]
            share = value[:, None, None] * kernel[group, row][:, place.offsets].T
            a[(*under, _group_slice(lk, group))] += share


def weights_loops3(lk: Link, a: Array, b: Array) -> Array:
    """Each window times the value it gave, summed over images."""
    al, bl = np.moveaxis(a, 1, -1), np.moveaxis(b, 1, -1)
    total = np.zeros(lk.kernel, a.dtype)
    for place in places(lk.axes):
        window = al[(EVERY, *place.pixels, EVERY)]
        for o in range(lk.b_channels):
            group, row = divmod(o, lk.b_channels // lk.groups)
            value = bl[(EVERY, *place.window, o)]
            seen = window[:, :, _group_slice(lk, group)] * value[:, None, None]
            total[group, row][:, place.offsets] += seen.sum(axis=0).T
    return oriented(lk, total.reshape(lk.weight_shape))


def _group_channels(lk: Link, group: int) -> range:
    """The channels of a that a group reads."""
    width = lk.a_channels // lk.groups
    return range(group * width, (group + 1) * width)


def _group_slice(lk: Link, group: int) -> slice:
    channels = _group_channels(lk, group)
    return slice(channels.start, channels.stop)
