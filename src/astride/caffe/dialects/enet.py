"""ENet: SegNet's layers on a later Caffe, under other numbers."""

from __future__ import annotations

from . import segnet
from ._fork import Fork

FORK = Fork(
    "ENet: SegNet's Upsample, BN and DenseImageData on a later Caffe",
    ("TimoSaemann/caffe-enet",),
    {
        **segnet.MESSAGES,
        "LossParameter": """
            enum NormalizationMode FULL=0 VALID=1 BATCH_SIZE=2 NONE=3
            2 normalize bool = true
            3 weight_by_label_freqs bool = false
            4 class_weighting float*
            5 normalization NormalizationMode = VALID
        """,
        "LayerParameter": """
            45 bn_param BNParameter
            46 dense_image_data_param DenseImageDataParameter
            147 upsample_param UpsampleParameter
        """,
    },
)
