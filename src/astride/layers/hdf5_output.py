"""HDF5Output: blobs written to a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from ..backends.protocol import Array
from ..errors import ArgumentError
from .layer import Blobs, Layer

SOURCE = "Caffe, src/caffe/layers/hdf5_output_layer.cpp"


class HDF5Output(Layer):
    """Each pass writes its two bottoms as the datasets `data` and `label` of one file.

    write       takes the arrays by name

    Quirks      each pass writes the file anew, atomically, where Caffe ends at the second pass. Only a file that is there as
                HDF5 already is overwritten
    Source      Caffe, src/caffe/layers/hdf5_output_layer.cpp
    """

    type = "HDF5Output"
    bottoms: ClassVar[tuple[int, int | None]] = (2, 2)
    tops: ClassVar[tuple[int, int | None]] = (0, 0)

    def __init__(self, write: Callable[[Mapping[str, Array]], None]) -> None:
        super().__init__()
        self.write = write

    def reshape(self, bottom: Blobs, top: Blobs) -> None:
        data, label = bottom[0].shape, bottom[1].shape
        if data[:1] != label[:1] or not data:
            raise ArgumentError(
                "both bottoms need one entry for each sample",
                given={"data": data, "label": label},
                required=f"equal first sizes: {data[:1]} == {label[:1]}",
                because=SOURCE,
            )

    def forward(self, bottom: Blobs, top: Blobs) -> None:
        self.write({"data": bottom[0].data, "label": bottom[1].data})

    def backward(self, top: Blobs, want: Sequence[bool], bottom: Blobs) -> None:
        """Nothing comes from above."""
        for blob, w in zip(bottom, want, strict=True):
            if w:
                blob.diff[...] = 0
