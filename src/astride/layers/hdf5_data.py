"""HDF5Data: arrays from HDF5 files."""

from __future__ import annotations

from .memory_data import MemoryData


class HDF5Data(MemoryData):
    """Each pass draws the next `batch_size` rows of the datasets that have the tops' names, file after file of a list.

    Files are named in the text file `source`. With `shuffle` the files of each epoch come in an order of its own, and the rows
    of each file too. Values become the network's dtype and nothing else is done to them.

    Tops        (batch_size, ...) as the datasets' rows
    Source      Caffe, src/caffe/layers/hdf5_data_layer.cpp
    """

    type = "HDF5Data"
