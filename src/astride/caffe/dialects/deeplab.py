"""DeepLab, version 2; and what version 1 called dilation."""

from __future__ import annotations

from ._fork import INTERP, Fork

HOLES = """
    17 hole uint32 = 1
    18 hole_h uint32 = 1
    19 hole_w uint32 = 1
"""
"""ConvolutionParameter's, before Caffe itself had dilation."""

V1 = Fork("DeepLab, version 1: holes in convolutions", ("pathak22/ccnn", "hszhao/PSPNet"), {"ConvolutionParameter": HOLES})

FORK = Fork(
    "DeepLab, version 2: Interp, DenseCRF, DomainTransform, SegAccuracy, MatRead and MatWrite",
    ("xmyqsh/deeplab-v2",),
    {
        "InterpParameter": INTERP,
        "AdaptiveBiasChannelParameter": """
            1 num_iter int32 = 1
            2 bg_portion float = 0.2
            3 fg_portion float = 0.2
            4 suppress_others bool = true
            5 margin_others float = 1e-5
        """,
        "BiasChannelParameter": """
            enum LabelType IMAGE=1 PIXEL=2
            1 bg_bias float = 1
            2 fg_bias float = 2
            3 ignore_label int32*
            4 label_type LabelType = IMAGE
            6 background_label int32 = 0
        """,
        "DenseCRFParameter": """
            1 max_iter int32 = 10
            2 pos_xy_std float*
            3 pos_w float*
            4 bi_xy_std float*
            5 bi_rgb_std float*
            6 bi_w float*
            7 output_probability bool = true
        """,
        "DomainTransformParameter": """
            1 num_iter int32 = 3
            2 spatial_sigma float = 50
            3 range_sigma float = 5
            4 min_weight float = 0
        """,
        "MatReadParameter": """
            1 prefix string!
            2 source string =
            3 strip int32 = 0
            4 batch_size int32 = 1
        """,
        "MatWriteParameter": """
            1 prefix string!
            2 source string =
            3 strip int32 = 0
            4 period int32 = 1
        """,
        "SegAccuracyParameter": """
            enum AccuracyMetric PixelAccuracy=0 ClassAccuracy=1 PixelIOU=2
            1 metric AccuracyMetric = PixelAccuracy
            2 ignore_label int32*
            3 reset bool = true
        """,
        "UniqueLabelParameter": """
            1 max_labels int32!
            2 ignore_label int32*
            3 force_label float*
        """,
        "BatchNormParameter": "4 update_global_stats bool = false",
        "ImageDataParameter": """
            enum LabelType NONE=0 IMAGE=1 PIXEL=2
            15 ignore_label int32 = 255
            16 label_type LabelType = IMAGE
        """,
        "TransformationParameter": """
            8 scale_factors float*
            9 crop_width uint32 = 0
            10 crop_height uint32 = 0
        """,
        "LayerParameter": """
            147 domain_transform_param DomainTransformParameter
            148 adaptive_bias_channel_param AdaptiveBiasChannelParameter
            149 bias_channel_param BiasChannelParameter
            150 unique_label_param UniqueLabelParameter
            151 mat_read_param MatReadParameter
            152 dense_crf_param DenseCRFParameter
            153 interp_param InterpParameter
            154 seg_accuracy_param SegAccuracyParameter
            155 mat_write_param MatWriteParameter
        """,
    },
    refused={"BatchNormParameter.update_global_stats": "running sums that change outside of training"},
)
