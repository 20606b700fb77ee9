"""What a network found, drawn on the image it looked at: boxes with their names, maps of labels, the best classes."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Box = tuple[float, float, float, float]

OPAQUE = 0.55
"""How much of a label's colour covers the image."""
LEGEND = 12
"""Entries of a legend at most."""
SMALLEST = 48
"""Pixels of the shorter side of an image that has room for a legend."""


def color(label: int) -> tuple[int, int, int]:
    """A colour a label, unlike its neighbours'; black for 0, the background."""
    if label == 0:
        return 0, 0, 0
    hue = (label * 0.61803398875) % 1  # the golden section spreads hues evenly, however many there are
    red, green, blue = colorsys.hsv_to_rgb(hue, 0.85 if label % 2 else 0.6, 0.95)
    return round(255 * red), round(255 * green), round(255 * blue)


def draw_boxes(image: Any, boxes: Sequence[Box], labels: Sequence[int], names: Sequence[str]) -> Any:
    """A copy of a Pillow image with a frame for each box (x0, y0, x1, y1 in pixels) and its name above, or inside at the edge."""
    from PIL import ImageDraw

    drawn = image.convert("RGB")
    paint = ImageDraw.Draw(drawn)
    line = max(2, round(min(drawn.size) / 200))
    font = _font(drawn)
    # The last is drawn uppermost: begin with the least sure.
    for (x0, y0, x1, y1), label, name in reversed(list(zip(boxes, labels, names, strict=True))):
        ends = _within(x0, y0, x1, y1, drawn.size)
        paint.rectangle(ends, outline=color(label or 1), width=line)
        _tag(paint, (ends[0], ends[1]), name, color(label or 1), font, drawn.size)
    return drawn


def draw_labels(image: Any, labels: Array, names: Sequence[str]) -> Any:
    """A copy of a Pillow image under the colours of a map (H, W) of labels, each pixel with its nearest label, and a legend."""
    from PIL import Image, ImageDraw

    drawn = image.convert("RGB")
    present = np.unique(labels)
    palette = np.zeros((int(present.max(initial=0)) + 1, 3), np.uint8)
    for label in present:
        palette[label] = color(int(label))
    tinted = Image.fromarray(palette[labels]).resize(drawn.size, Image.Resampling.NEAREST)
    drawn = Image.blend(drawn, tinted, OPAQUE)
    paint = ImageDraw.Draw(drawn)
    font = _font(drawn)
    y = 4.0
    for label in [n for n in present if n and min(drawn.size) >= SMALLEST][:LEGEND]:
        name = names[label] if label < len(names) and names[label] else str(label)
        y += _tag(paint, (4.0, y), name, color(int(label)), font, drawn.size, below=True) + 2
    return drawn


def draw_map(values: Array, size: tuple[int, int]) -> Any:
    """A map (H, W) of numbers as a grey picture of a size (width, height), its least black and its greatest white."""
    from PIL import Image

    low, high = float(values.min()), float(values.max())
    grey = np.zeros(values.shape) if high == low else (values - low) / (high - low)
    return Image.fromarray(np.rint(255 * grey).astype(np.uint8)).resize(size, Image.Resampling.BILINEAR)


def draw_classes(image: Any, words: Sequence[str]) -> Any:
    """A copy of a Pillow image with lines of text in its upper left corner."""
    from PIL import ImageDraw

    drawn = image.convert("RGB")
    paint = ImageDraw.Draw(drawn)
    font = _font(drawn)
    y = 4.0
    for line in words:
        y += _tag(paint, (4.0, y), line, (31, 41, 51), font, drawn.size, below=True) + 1
    return drawn


def _font(image: Any) -> Any:
    from PIL import ImageFont

    return ImageFont.load_default(max(11.0, min(image.size) / 28))


def _within(x0: float, y0: float, x1: float, y1: float, size: tuple[int, int]) -> tuple[float, float, float, float]:
    """The part of a box inside an image, at least a pixel."""
    width, height = size
    left, top = min(max(x0, 0), width - 1), min(max(y0, 0), height - 1)
    return left, top, max(min(x1, width - 1), left), max(min(y1, height - 1), top)


def _tag(
    paint: Any,
    at: tuple[float, float],
    text: str,
    fill: tuple[int, int, int],
    font: Any,
    size: tuple[int, int],
    *,
    below: bool = False,
) -> float:
    """Text on a coloured ground above a point, or below it where there is no room. Returns its height."""
    plain = text.encode("latin-1", "replace").decode("latin-1")
    left, top, right, bottom = paint.textbbox((0, 0), plain, font=font)
    width, height = right - left + 6, bottom - top + 6
    x = min(at[0], max(size[0] - width, 0))
    y = at[1] if below or at[1] < height else at[1] - height
    paint.rectangle((x, y, x + width, y + height), fill=fill)
    bright = 0.299 * fill[0] + 0.587 * fill[1] + 0.114 * fill[2] > 140
    paint.text((x + 3 - left, y + 3 - top), plain, fill=(0, 0, 0) if bright else (255, 255, 255), font=font)
    return float(height)


__all__ = ["color", "draw_boxes", "draw_classes", "draw_labels", "draw_map"]
