"""The panel that shows where each pooled value's gradient returns to: three grids with their numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .sheet import ASPECT, DARK, GREY, RING, SMALL, TEXT, section
from .story import Floats, Routing


def draw_routing(figure: Any, routing: Routing) -> None:
    """Feature map with its winners, pooled map, gradient of the pooled map, gradient of the feature map."""
    section(
        figure,
        0.04,
        0.392,
        "4  And the way back: each pooled value's gradient returns to the place that won",
        "Learning sends numbers back along the same way: by how much the loss would change with each value (its gradient). Of "
        "the four places in a 2x2 window only the one with the largest value, ringed, went on. So only it gets the gradient; "
        "the other three had no influence and get 0.",
    )
    winners = _winners(routing.values)
    size, (unit, unit_name) = len(routing.values), _unit(routing.pooled_gradient)
    large, small, bottom = 0.23, 0.140, 0.147
    raised = bottom + (large - small) / 2 * ASPECT
    limits = (float(routing.values.min()), float(routing.values.max()))
    strongest = float(np.abs(routing.pooled_gradient).max()) / unit or 1.0
    signed = (-strongest, strongest)
    first = _grid(figure, (0.04, bottom, large), routing.values, "magma", limits, windows=2)
    second = _grid(figure, (0.3175, raised, small), routing.pooled, "magma", limits, windows=1)
    third = _grid(figure, (0.5225, raised, small), routing.pooled_gradient / unit, "PuOr", signed, windows=1)
    last = _grid(figure, (0.73, bottom, large), routing.gradient / unit, "PuOr", signed, windows=2)
    _ring(first, winners)
    _ring(last, winners)
    _caption(first, "values", f"part of map {routing.channel + 1} of convolution 1, {size}x{size} places")
    _caption(second, "pooled values", "the largest of each window")
    _caption(third, "their gradient", f"in {unit_name}")
    _caption(last, "gradient of the values", "each number at its winner, 0 elsewhere")
    for x, word in ((0.29375, "pooling"), (0.49, "to the loss\nand back"), (0.69625, "pooling,\nbackward")):
        y = bottom + large / 2 * ASPECT
        figure.text(x, y, "→", fontsize=24, color=GREY, ha="center", va="center")
        figure.text(x, y + 0.010, word, fontsize=SMALL, color=GREY, ha="center", va="bottom")


def _winners(values: Floats) -> list[tuple[int, int]]:
    """The first largest value of each 2x2 window, as Caffe chooses."""
    places = []
    for top in range(0, values.shape[0], 2):
        for left in range(0, values.shape[1], 2):
            y, x = divmod(int(np.argmax(values[top : top + 2, left : left + 2])), 2)
            places.append((top + y, left + x))
    return places


def _unit(values: Floats) -> tuple[float, str]:
    """A unit in which the largest number has one or two digits before the point, and its name."""
    names = ("ones", "tenths", "hundredths", "thousandths", "ten-thousandths", "hundred-thousandths", "millionths")
    largest = float(np.abs(values).max()) or 1.0
    power = min(max(0, math.ceil(-math.log10(largest))), len(names) - 1)
    return 10.0**-power, names[power]


def _grid(
    figure: Any, box: tuple[float, float, float], values: Floats, colors: str, limits: tuple[float, float], *, windows: int
) -> Any:
    """An image with its numbers written in, and lines between windows. Limits of both signs make a scale around 0."""
    left, bottom, size = box
    axes = figure.add_axes((left, bottom, size, size * ASPECT))
    low, high = limits
    axes.imshow(values, cmap=colors, vmin=low, vmax=high)
    signed = low == -high
    for (y, x), value in np.ndenumerate(values):
        dark = abs(value) < 0.55 * high if signed else value > low + 0.6 * (high - low)
        text = "0" if value == 0 else f"{value:+.1f}" if signed else f"{value:.2f}"
        font = 9.5 if len(values) > 4 else 11.5
        axes.text(x, y, text, ha="center", va="center", fontsize=font, color=DARK if dark else "white")
    for edge in np.arange(0, len(values) + 1, windows) - 0.5:
        axes.axhline(edge, color="#8b949e" if signed else "white", linewidth=2)
        axes.axvline(edge, color="#8b949e" if signed else "white", linewidth=2)
    axes.set_xticks([])
    axes.set_yticks([])
    return axes


def _ring(axes: Any, places: list[tuple[int, int]]) -> None:
    from matplotlib.patches import Rectangle

    for y, x in places:
        axes.add_patch(Rectangle((x - 0.43, y - 0.43), 0.86, 0.86, fill=False, edgecolor=RING, linewidth=2.5))


def _caption(axes: Any, name: str, detail: str) -> None:
    box = axes.get_position()
    x, y = box.x0 + box.width / 2, box.y0 - 0.006
    axes.figure.text(x, y, name, fontsize=TEXT + 1, weight="bold", color=DARK, ha="center", va="top")
    axes.figure.text(x, y - 0.013, detail, fontsize=SMALL, color=GREY, ha="center", va="top")
