"""PSPNet and ICNet, on the Caffe of yjxiong: BN with running statistics, Interp, videos."""

from __future__ import annotations

from ._fork import ENGINE, INTERP, ROI_POOLING, Fork
from .deeplab import HOLES

FORK = Fork(
    "PSPNet and ICNet: BN with running statistics, Interp, SegAccuracy",
    ("hszhao/PSPNet", "yjxiong/caffe"),
    {
        "BNParameter": ENGINE
        + """
            1 scale_filler FillerParameter
            2 shift_filler FillerParameter
            3 var_eps float = 1e-10
            4 moving_average bool = false
            5 decay float = 0.05
            6 axis int32 = 1
            7 momentum float = 0.9
            8 eps float = 1e-5
            9 frozen bool = false
            12 engine Engine = DEFAULT
        """,
        "InterpParameter": f"{INTERP}\n7 interp_type string = bilinear",
        "SegAccuracyParameter": "1 output_label int32*\n2 ignore_label int32*",
        "ROIPoolingParameter": ROI_POOLING,
        "BatchReductionParameter": """
            1 level int32*
            2 reduction_param ReductionParameter
            3 pos bool = false
        """,
        "VideoDataParameter": """
            enum Modality RGB=0 FLOW=1
            1 source string
            2 scale float = 1
            3 mean_file string
            4 batch_size uint32
            5 crop_size uint32 = 0
            6 mirror bool = false
            7 rand_skip uint32 = 0
            8 shuffle bool = false
            9 new_height uint32 = 0
            10 new_width uint32 = 0
            11 new_length uint32 = 1
            12 num_segments uint32 = 1
            13 modality Modality = FLOW
            14 name_pattern string
            15 encoded bool = false
        """,
        "ConvolutionParameter": HOLES,
        "LossParameter": "2 normalize bool = true",
        "DataParameter": "10 shuffle bool = false",
        "ImageDataParameter": """
            enum LabelType NONE=0 IMAGE=1 PIXEL=2
            15 ignore_label int32 = 255
            16 label_type LabelType = IMAGE
        """,
        "TransformationParameter": """
            8 rand_resize float*
            9 rand_rotate float*
            10 gaussian_blur bool = false
            11 rand_aspect_ratio float*
            12 label_scalefactor float*
            13 label_offset float*
            14 rotate90n bool = false
            15 crop_w uint32 = 0
            16 crop_h uint32 = 0
        """,
        "LayerParameter": """
            137 bn_param BNParameter
            140 video_data_param VideoDataParameter
            150 roi_pooling_param ROIPoolingParameter
            160 scale_param ScaleParameter
            161 bias_param BiasParameter
            162 batch_reduction_param BatchReductionParameter
            163 interp_param InterpParameter
            164 seg_accuracy_param SegAccuracyParameter
        """,
    },
    refused={"DataParameter.shuffle": "samples of a database in another order"},
)
