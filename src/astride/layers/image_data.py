"""ImageData: images from files named in a list."""

from __future__ import annotations

from typing import ClassVar

from .memory_data import MemoryData


class ImageData(MemoryData):
    """Each pass draws the next `batch_size` lines of a list, each an image file and its label, in their order or shuffled.

    Images are blue, green, red, or grey without `is_color`; resized to new_height and new_width where those are set, and
    prepared as Data's. `root_folder` is put in front of the names as it is.

    Tops        images (batch_size, C, H, W), labels (batch_size,)
    Quirks      images are resized as OpenCV does it, which does not average; the orders of a shuffle are not Caffe's
    Source      Caffe, src/caffe/layers/image_data_layer.cpp
    """

    type = "ImageData"
    tops: ClassVar[tuple[int, int | None]] = (1, 2)
    varies = True
