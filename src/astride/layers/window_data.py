"""WindowData: windows cut out of images."""

from __future__ import annotations

from typing import ClassVar

from .memory_data import MemoryData


class WindowData(MemoryData):
    """Each pass draws `batch_size` windows by chance: first background, then a share fg_fraction of objects.

    The text file `source` lists images with their windows and each window's overlap with an object: fg_threshold or more makes
    it an object, less than bg_threshold background. A window is widened so that context_pad pixels of its surroundings lie
    around it, made square with crop_mode "square", and warped to crop_size; what lies outside the image is 0.

    Tops        windows (batch_size, C, crop_size, crop_size), labels (batch_size,), 0 for background
    Source      Caffe, src/caffe/layers/window_data_layer.cpp
    """

    type = "WindowData"
    tops: ClassVar[tuple[int, int | None]] = (2, 2)
