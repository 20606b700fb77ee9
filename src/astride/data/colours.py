"""Images changed by chance as SSD changes them in training: brightness, contrast, saturation, hue, more space around.

What is drawn has SSD's distributions; single pixels may differ by one from OpenCV's, whose conversions it uses.
Source: the SSD fork of Caffe, src/caffe/util/im_transforms.cpp
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .boxes import Box
from .pixels import Pixels

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Distortion:
    """Each with its probability: a brightness added, contrast and saturation multiplied, a hue added, channels in any order."""

    brightness: tuple[float, float] = (0.0, 0.0)
    contrast: tuple[float, float, float] = (0.0, 1.0, 1.0)
    saturation: tuple[float, float, float] = (0.0, 1.0, 1.0)
    hue: tuple[float, float] = (0.0, 0.0)
    order: float = 0.0

    def __call__(self, pixels: Pixels, random: np.random.Generator) -> Pixels:
        """The changed image (3, H, W); other numbers of channels stay as they are."""
        if len(pixels) != 3:
            return pixels
        first = random.random() > 0.5
        pixels = self._brightened(pixels, random)
        steps = [self._saturated, self._turned]
        steps.insert(0 if first else 2, self._contrasted)
        for step in steps:
            pixels = step(pixels, random)
        return pixels[random.permutation(3)] if random.random() < self.order else pixels

    def _brightened(self, pixels: Pixels, random: np.random.Generator) -> Pixels:
        probability, delta = self.brightness
        return _bytes(pixels + np.float32(random.uniform(-delta, delta))) if random.random() < probability else pixels

    def _contrasted(self, pixels: Pixels, random: np.random.Generator) -> Pixels:
        probability, low, high = self.contrast
        return _bytes(pixels * np.float32(random.uniform(low, high))) if random.random() < probability else pixels

    def _saturated(self, pixels: Pixels, random: np.random.Generator) -> Pixels:
        probability, low, high = self.saturation
        if random.random() >= probability:
            return pixels
        hue, saturation, value = hsv(pixels)
        return bgr(hue, np.clip(saturation * np.float32(random.uniform(low, high)), 0, 1), value)

    def _turned(self, pixels: Pixels, random: np.random.Generator) -> Pixels:
        probability, delta = self.hue
        if random.random() >= probability:
            return pixels
        hue, saturation, value = hsv(pixels)
        # OpenCV's bytes count two degrees as one.
        return bgr((hue + np.float32(2 * random.uniform(-delta, delta))) % 360, saturation, value)


def _bytes(values: Floats) -> Pixels:
    whole: Pixels = np.clip(np.rint(values), 0, 255).astype(np.uint8)
    return whole


def hsv(pixels: Pixels) -> tuple[Floats, Floats, Floats]:
    """Hue in degrees, saturation and value from 0 to 1, of (3, H, W), blue first."""
    b, g, r = pixels.astype(np.float32) / np.float32(255)
    value = np.maximum(np.maximum(r, g), b)
    spread = value - np.minimum(np.minimum(r, g), b)
    divisor = np.where(spread > 0, spread, 1)
    hue = np.where(value == r, (g - b) / divisor, np.where(value == g, 2 + (b - r) / divisor, 4 + (r - g) / divisor))
    return (hue * 60) % 360, np.where(value > 0, spread / np.where(value > 0, value, 1), 0), value


def bgr(hue: Floats, saturation: Floats, value: Floats) -> Pixels:
    """The other way round."""
    planes = []
    for n in (1, 3, 5):  # blue, green, red
        k = (n + hue / 60) % 6
        planes.append(value - value * saturation * np.clip(np.minimum(k, 4 - k), 0, 1))
    return _bytes(np.stack(planes) * np.float32(255))


def expanded(pixels: Pixels, ratio: float, fill: Floats, random: np.random.Generator) -> tuple[Pixels, Box]:
    """The image somewhere in one `ratio` times as large, and that image's edges as parts of the old one's size."""
    channels, height, width = pixels.shape
    rows, columns = int(height * ratio), int(width * ratio)
    down, right = int(random.uniform(0, rows - height)), int(random.uniform(0, columns - width))
    canvas = np.empty((channels, rows, columns), np.uint8)
    canvas[...] = _bytes(np.broadcast_to(fill, (channels, 1, 1)).astype(np.float32))
    canvas[:, down : down + height, right : right + width] = pixels
    return canvas, (-right / width, -down / height, (columns - right) / width, (rows - down) / height)
