"""Double backward of max and min pooling: where dy went, the cotangent comes back from.

The gradient is linear in dy and piecewise constant in x, so dy alone has a gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...plan import PoolPlan
from ..protocol import Array, Arrays, Saved, Twice
from ._windows import EVERY, as_channels_first, extension, places, taps


def twice_of(rows_gradient: Callable[..., Array]) -> Twice:
    """By the saved offsets; for rules that compare, by the shares a window gives to its taps, window by window."""

    def twice(plan: PoolPlan, dy: Array, saved: Saved, cotangents: Arrays, *, want: Sequence[bool]) -> tuple[Array, Arrays]:
        assert cotangents[0] is not None
        grown = extension(plan.axes, plan.edge)
        arriving = grown.grow(as_channels_first(cotangents[0], plan.layout), 0)
        gradient = np.zeros(dy.shape, dy.dtype)
        total = as_channels_first(gradient, plan.layout)
        if saved.offsets is not None:
            for tap in taps(grown.axes):
                won = tap.of(saved.offsets) == tap.offset
                tap.put(total, np.where(won, tap.read(arriving), tap.of(total)))
            return gradient, (None, None)
        assert saved.x is not None and saved.y is not None
        xv = grown.grow(as_channels_first(saved.x, plan.layout), plan.edge_value)
        yv = as_channels_first(saved.y, plan.layout)
        for place in places(grown.axes):
            if len(place.offsets):
                here, pixels = (..., *place.window), (EVERY, EVERY, *place.pixels)
                y = yv[here]
                shares = rows_gradient(plan, xv[pixels], place, y, None, np.ones_like(y, dy.dtype))
                total[here] = (shares * arriving[pixels]).sum(-1)
        return gradient, (None, None)

    return twice
