"""DeconvNet: Unpooling by pooling masks and SegNet's batch normalization, in texts of Caffe's middle format."""

from __future__ import annotations

from . import segnet
from ._fork import Fork

_PARTS = """
    44 unpooling_param UnpoolingParameter
    45 bn_param BNParameter
"""

FORK = Fork(
    "DeconvNet: Unpooling, BN, layers in the middle format",
    ("HyeonwooNoh/caffe",),
    {
        "UnpoolingParameter": """
            enum UnpoolMethod MAX=0
            enum Engine DEFAULT=0 CAFFE=1
            1 unpool UnpoolMethod = MAX
            2 kernel_size uint32
            3 stride uint32 = 1
            4 pad uint32 = 0
            5 kernel_h uint32
            6 kernel_w uint32
            7 stride_h uint32
            8 stride_w uint32
            9 pad_h uint32 = 0
            10 pad_w uint32 = 0
            11 engine Engine = DEFAULT
            12 unpool_size uint32
            13 unpool_h uint32
            14 unpool_w uint32
        """,
        "BNParameter": segnet.MESSAGES["BNParameter"],
        "V1LayerParameter": "enum LayerType UNPOOLING=42 BN=43" + _PARTS,
        "LayerParameter": _PARTS,
    },
)
