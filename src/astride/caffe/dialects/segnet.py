"""SegNet, and ENet after it: pooling masks that upsampling follows, and a batch normalization of their own."""

from __future__ import annotations

from ._fork import Fork

MESSAGES = {
    "UpsampleParameter": """
        1 scale uint32 = 2
        2 scale_h uint32
        3 scale_w uint32
        4 pad_out_h bool = false
        5 pad_out_w bool = false
        6 upsample_h uint32
        7 upsample_w uint32
    """,
    "BNParameter": """
        enum BNMode LEARN=0 INFERENCE=1
        1 scale_filler FillerParameter
        2 shift_filler FillerParameter
        3 bn_mode BNMode = LEARN
    """,
    "DenseImageDataParameter": """
        1 source string
        2 batch_size uint32
        3 rand_skip uint32 = 0
        4 shuffle bool = false
        5 new_height uint32 = 0
        6 new_width uint32 = 0
        7 is_color bool = true
        8 mean_file string
        9 root_folder string =
    """,
}

FORK = Fork(
    "SegNet: Upsample by pooling masks, BN, DenseImageData",
    ("alexgkendall/caffe-segnet",),
    {
        **MESSAGES,
        "LossParameter": """
            2 normalize bool = true
            3 weight_by_label_freqs bool = false
            4 class_weighting float*
        """,
        "V1LayerParameter": "enum LayerType BN=43",
        "LayerParameter": """
            45 bn_param BNParameter
            137 upsample_param UpsampleParameter
            138 dense_image_data_param DenseImageDataParameter
        """,
    },
)
