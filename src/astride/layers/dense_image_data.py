"""DenseImageData: images, and a class for each of their pixels."""

from __future__ import annotations

from typing import ClassVar

from .memory_data import MemoryData


class DenseImageData(MemoryData):
    """Each pass draws the next `batch_size` pairs of a list: an image file, and one whose grey values are the pixels' classes.

    Images are blue, green, red, or grey without `is_color`; both are resized to new_height and new_width where those are set,
    the labels to the nearest pixel. Mean and scale are for the image only. Mirrors and crops are refused, as the fork does.

    Tops        images (batch_size, C, H, W), labels (batch_size, 1, H, W)
    Source      SegNet's Caffe, src/caffe/layers/dense_image_data_layer.cpp
    """

    type = "DenseImageData"
    tops: ClassVar[tuple[int, int | None]] = (1, 2)
    varies = True
