"""HED's and FCN's first Caffe, whose Crop layers find their offsets themselves. It has no fields: see ../autocrop.py."""

from __future__ import annotations

from ._fork import Fork

FORK = Fork(
    "HED and FCN before 2016: a Crop without offsets aligns its bottoms; to be asked for, as no field shows it",
    ("longjon/caffe", "s9xie/hed"),
    {},
)
