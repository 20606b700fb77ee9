"""AnnotatedData: images and the boxes in them."""

from __future__ import annotations

from typing import ClassVar

from ..backends.protocol import Array
from ..plan import Shape
from .layer import Blobs
from .memory_data import MemoryData


class AnnotatedData(MemoryData):
    """Each pass draws the next `batch_size` records of a database, each an image with its objects, prepared as SSD does it.

    In training an image may be distorted in its colours, put somewhere in a larger one, and cut to a patch that stands in a
    given relation to an object (batch_sampler); then it is resized to the network's size, mirrored by a coin, and the mean is
    subtracted. The boxes follow; those whose middle is cut off are dropped, or as emit_constraint has it.

    Tops        images (batch_size, C, H, W); if there is a second, all boxes of the batch (1, 1, boxes, 8): image, label,
                instance, xmin, ymin, xmax, ymax, difficult; one row of -1 where there are none
    Chance      follows from the network's seed and the sample's place
    Quirks      of the ways to resize LINEAR and NEAREST give OpenCV's numbers, AREA, CUBIC and LANCZOS4 Pillow's. Other modes
                than WARP and noise_param are refused
    Source      SSD's Caffe, src/caffe/layers/annotated_data_layer.cpp and src/caffe/util/sampler.cpp
    """

    type = "AnnotatedData"
    tops: ClassVar[tuple[int, int | None]] = (1, 2)

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        super().reshape(bottom, top)
        for boxes, shape in zip(top[1:], self.shapes[1:], strict=True):
            if len(shape) == 3:  # a table of boxes, not a label for each image
                boxes.reshape(1, *shape)

    def fits(self, index: int, values: Array, shape: Shape) -> bool:
        """A batch has as many boxes as it has."""
        return super().fits(index, values, shape) or (
            index == 1 and values.shape[:2] + values.shape[3:] == (*shape[:2], *shape[3:])
        )
