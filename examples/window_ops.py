"""Pooling that nobody's framework has, in a few lines each: the median, the commonest value, and a soft maximum.

    python examples/window_ops.py            compiled by Numba: pip install "astride[window]"
    python examples/window_ops.py --plain    as plain Python

Each is a function of one window, the taps that lie inside the input. Where windows lie, and what happens at edges, is any
framework's rule: median(x, kernel=3, stride=2, rules="caffe").
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import astride

Array = Any


def median_gradient(window: Array, y: float) -> Array:
    """The middle tap gets all; of an even number the two middle ones half each; equal taps share."""
    order = np.argsort(window)
    low, high = order[(len(window) - 1) // 2], order[len(window) // 2]
    slopes = np.zeros_like(window)
    for middle in (low, high):
        equal = window == window[middle]
        slopes += equal / (2 * equal.sum())
    return slopes


@astride.window_op(gradient=median_gradient)
def median(window: Array) -> Any:
    """The value in the middle: noise that hits less than half of a window leaves no trace. A NaN gives NaN."""
    ordered = np.sort(window)
    if np.isnan(ordered).any():
        return np.nan
    middle = len(window) // 2
    return ordered[middle] if len(window) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


@astride.window_op
def mode(window: Array) -> Any:
    """The commonest value, the smallest of those that are equally common: makes maps of labels smaller. It has no gradient."""
    ordered = np.sort(window)
    best, longest, run = ordered[0], 0, 0
    for i in range(len(ordered)):
        run = run + 1 if i > 0 and ordered[i] == ordered[i - 1] else 1
        if run > longest:
            best, longest = ordered[i], run
    return best


def softmax(window: Array, y: float) -> Array:
    """Each tap gets its part of the sum of exponentials."""
    return np.exp(window - y)


@astride.window_op(gradient=softmax)
def log_sum_exp(window: Array) -> Any:
    """log(sum(exp(x))), a maximum without kinks: all taps have a part, the greatest the largest."""
    greatest = window.max()
    return greatest if np.isinf(greatest) else greatest + np.log(np.exp(window - greatest).sum())


def main() -> None:
    """Each on a small image."""
    compile = "--plain" not in sys.argv[1:]
    image = np.array([[1, 1, 2, 2], [1, 99, 2, 2], [3, 3, 4, 4], [3, 3, 4, -99]], np.float64)[None, None]
    print("image\n", image[0, 0])
    for operator in (median, mode, log_sum_exp):
        y = operator(image, kernel=2, compile=compile)
        print(f"{operator.__name__}\n", y[0, 0].round(3))
    _, pull = astride.vjp(log_sum_exp, image, kernel=2, compile=compile)
    print("gradient of log_sum_exp\n", pull(np.ones((1, 1, 2, 2)))[0][0, 0].round(3))


if __name__ == "__main__":
    main()
