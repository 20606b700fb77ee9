"""Data: images and labels from a database."""

from __future__ import annotations

from typing import ClassVar

from .memory_data import MemoryData


class Data(MemoryData):
    """Each pass draws the next `batch_size` records of an LMDB or LevelDB, in the order of their keys, round and round.

    Records are Datum messages: bytes or floats (C, H, W), or an encoded image, which becomes blue, green, red. From each value
    the mean is subtracted (mean_file, or mean_value once or once a channel), a crop_size square is cut out, by chance in
    training and from the middle in use, mirrored by a coin where `mirror` is set, and multiplied by `scale`. The source is
    looked for in the working directory. `load_caffe(..., sources={"data": source})` feeds anything else.

    Tops        images (batch_size, C, H, W), and labels (batch_size,) if there is a second
    Chance      crops, coins, `rand_skip` and, in dialects that have it, `shuffle` follow from the network's seed and the
                sample's place, so that a restored run sees what the unbroken one sees
    Quirks      a batch of one may have another size than the batch before, where nothing is cropped. Newer Caffe does not
                read rand_skip. Nothing is read ahead
    Source      Caffe, src/caffe/layers/data_layer.cpp and src/caffe/data_transformer.cpp
    """

    type = "Data"
    tops: ClassVar[tuple[int, int | None]] = (1, 2)
    varies = True
