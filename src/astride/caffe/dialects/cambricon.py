"""Cambricon's Caffe: both halves of a ReLU."""

from __future__ import annotations

from ._fork import Fork

FORK = Fork(
    "Cambricon: CReLU",
    ("Cambricon/caffe",),
    {
        "CReLUParameter": """
            enum Engine DEFAULT=0 CAFFE=1 MLU=2
            1 negative_slope float = 0
            2 concat_axis int32 = 1
            3 engine Engine = DEFAULT
        """,
        "LayerParameter": "100022 crelu_param CReLUParameter",
    },
)
