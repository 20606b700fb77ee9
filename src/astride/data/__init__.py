"""Where batches come from: arrays in memory, image files, and the preparation of both.

arrays.py       ShuffledSource: arrays in memory, shuffled by a seed (ArraySource, in order, is the layers' own)
images.py       image files to float arrays and back to a wanted size (Pillow, imported when used)
transformer.py  Transformer: channel order, scales, mean, crop, mirror
mean.py         what a mean may be: numbers per channel, an array, a .binaryproto file
"""

from __future__ import annotations

from ..layers.source import ArraySource
from .arrays import ShuffledSource
from .images import load_image, resize
from .mean import load_mean
from .transformer import Transformer

__all__ = ["ArraySource", "ShuffledSource", "Transformer", "load_image", "load_mean", "resize"]
