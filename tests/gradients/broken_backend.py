"""A backend with the mistakes people make in backward passes, to show that the gradient check finds each of them.

`broken:assigned` writes where it should add, `broken:first_window` stops after one window, `broken:mirrored` is shifted by a
pixel, as by swapped pads, `broken:scaled` is a thousandth off, `broken:not_a_number` has one NaN at its first place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from astride.backends.protocol import Kernel, Saved
from astride.backends.reference import BACKEND as REFERENCE


def _assigned(plan: Any, dy: Any, saved: Saved, want: Any, right: Kernel) -> Any:
    """Every window's own gradient, the last of overlapping ones staying."""
    dx: Any = np.zeros(saved.shapes[0] or (), dy.dtype)
    for place in np.ndindex(*dy.shape):
        one = np.zeros_like(dy)
        one[place] = dy[place]
        share = right.backward(plan, one, saved, want=want)[0]
        assert share is not None
        dx = np.where(share != 0, share, dx)
    return dx


def _first_window(plan: Any, dy: Any, saved: Saved, want: Any, right: Kernel) -> Any:
    one = np.zeros_like(dy)
    one[:, :, :1, :1] = dy[:, :, :1, :1]
    return right.backward(plan, one, saved, want=want)[0]


def _mirrored(plan: Any, dy: Any, saved: Saved, want: Any, right: Kernel) -> Any:
    dx = right.backward(plan, dy, saved, want=want)[0]
    assert dx is not None
    return np.roll(dx, (1, -1), axis=(2, 3))


def _scaled(plan: Any, dy: Any, saved: Saved, want: Any, right: Kernel) -> Any:
    dx = right.backward(plan, dy, saved, want=want)[0]
    assert dx is not None
    return dx * 1.001


def _not_a_number(plan: Any, dy: Any, saved: Saved, want: Any, right: Kernel) -> Any:
    dx = right.backward(plan, dy, saved, want=want)[0]
    assert dx is not None
    dx[0, 0, 0, 0] = np.nan
    return dx


MISTAKES = {
    "assigned": _assigned,
    "first_window": _first_window,
    "mirrored": _mirrored,
    "scaled": _scaled,
    "not_a_number": _not_a_number,
}


def _with(right: Kernel, name: str, mistake: Callable[..., Any]) -> Kernel:
    def backward(plan: Any, dy: Any, saved: Saved, *, want: Any) -> Any:
        return (mistake(plan, dy, saved, want, right), *right.backward(plan, dy, saved, want=want)[1:])

    return replace(right, name=name, backward=backward)


class Broken:
    """The reference's best kernel, forward right and backward wrong."""

    name = "broken"

    def kernels(self, op: str) -> tuple[Kernel, ...]:
        return tuple(_with(REFERENCE.kernels(op)[0], name, mistake) for name, mistake in MISTAKES.items())


BACKEND = Broken()
