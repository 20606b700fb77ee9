"""Where batches come from: arrays, images, databases and files of them, and the preparation of each sample.

arrays.py         ShuffledSource: arrays in memory, shuffled by a seed (ArraySource, in order, is the layers' own)
samples.py        Samples: one sample at a time, from what the seed and the position say; the sources below are such
  records.py      RecordSource: Caffe's records in a database (databases.py: LMDB, LevelDB)
  annotated.py    AnnotatedSource: SSD's records of images with boxes (boxes.py: patches; colours.py: distortions)
  image_list.py   ImageListSource, PairListSource: image files named in a list, with a label or an image of labels each
  hdf5.py         HDF5Source: samples in datasets; and results written
  windows.py      WindowSource: R-CNN's windows
images.py         image files to float arrays and back to a wanted size (Pillow, imported when used)
pixels.py         image files and records to bytes as Caffe's data layers have them
opencv_resize.py  OpenCV's bilinear resizing, bit for bit
transformer.py    Transformer: channel order, scales, mean, crop, mirror
mean.py           what a mean may be: numbers per channel, an array, a .binaryproto file
optional.py       packages that only some of these need
"""

from __future__ import annotations

from ..layers.source import ArraySource
from .arrays import ShuffledSource
from .images import load_image, resize
from .mean import load_mean
from .transformer import Transformer

__all__ = ["ArraySource", "ShuffledSource", "Transformer", "load_image", "load_mean", "resize"]
