"""Intel's Caffe: engines of its own, pooling in N dimensions under other numbers, SSD and R-FCN."""

from __future__ import annotations

from . import _boxes
from ._fork import PRE_FIXED, ROI_POOLING, Fork

_ENGINES = "enum Engine DEFAULT=0 CAFFE=1 MKL2017=3 MKLDNN=4\n"
_ENGINES_GPU = "enum Engine DEFAULT=0 CAFFE=1 CUDNN=2 MKL2017=3 MKLDNN=4\n"

FORK = Fork(
    "Intel: MKL engines, BatchNorm with its own scale, N-dimensional pooling under other numbers, SSD, R-FCN",
    ("intel/caffe",),
    {
        **_boxes.MESSAGES,
        "TransformationParameter": f"""{_boxes.TRANSFORM}
            15 random_resize_param RandomResizeParameter
            16 random_aspect_ratio_param RandomAspectRatioParameter
            17 flow bool = false
        """,
        "RandomResizeParameter": """
            1 min_size uint32 = 0
            2 max_size uint32 = 0
            3 resize_param ResizeParameter
        """,
        "RandomAspectRatioParameter": """
            1 min_area_ratio float = 0.5
            2 max_area_ratio float = 1
            3 aspect_ratio_change float = 1
            4 max_attempt uint32 = 10
            5 resize_param ResizeParameter
        """,
        "FillerParameter": "9 scale float = 1",
        "LossParameter": f"{PRE_FIXED}\n5 label_smoothing float = 0",
        "ConcatParameter": f"{_ENGINES}3 engine Engine = DEFAULT",
        "SplitParameter": f"{_ENGINES}1 engine Engine = DEFAULT",
        "EltwiseParameter": f"{_ENGINES}4 engine Engine = DEFAULT",
        "ReLUParameter": f"{_ENGINES_GPU}2 engine Engine = DEFAULT",
        "LRNParameter": f"{_ENGINES_GPU}6 engine Engine = DEFAULT",
        "InnerProductParameter": "enum Engine DEFAULT=0 CAFFE=1 CUDNN=2 MKLDNN=3\n7 engine Engine = DEFAULT",
        "BatchNormParameter": f"""{_ENGINES}
            4 engine Engine = DEFAULT
            5 use_weight_bias bool = true
            6 bias_term bool = true
            7 filler FillerParameter
            8 bias_filler FillerParameter
            9 stats_batch_size uint32 = 0
            10 relu bool = false
        """,
        "ConvolutionParameter": f"""{_ENGINES_GPU}
            15 engine Engine = DEFAULT
            19 relu bool = false
            20 negative_slope float = 0
            21 conv_algorithm string = direct
        """,
        "PoolingParameter": f"""{_ENGINES_GPU}
            2 pad uint32*
            3 kernel_size uint32*
            4 stride uint32*
            5 pad_h uint32 = 0
            6 pad_w uint32 = 0
            7 kernel_h uint32
            8 kernel_w uint32
            9 stride_h uint32 = 1
            10 stride_w uint32 = 1
            11 engine Engine = DEFAULT
            13 avg_include_pad bool = true
            14 axis int32 = 1
        """,
        "DataParameter": "11 shuffle bool = false",
        "ImageDataParameter": "13 min_height uint32 = 0\n14 min_width uint32 = 0",
        "ROIPoolingParameter": ROI_POOLING,
        "SmoothL1LossParameter": "1 sigma float = 1",
        "SpatialDropoutParameter": "1 dropout_ratio float = 0.5",
        "BoxAnnotatorOHEMParameter": "1 roi_per_img uint32!\n2 ignore_label int32 = -1",
        "PSROIPoolingParameter": """
            1 spatial_scale float!
            2 output_dim int32!
            3 group_size int32!
        """,
        "QuantizationParameter": """
            enum Precision DYNAMIC_FIXED_POINT=0
            enum Rounding NEAREST=0
            1 precision Precision = DYNAMIC_FIXED_POINT
            2 rounding_scheme Rounding = NEAREST
            3 bw_layer_in uint32 = 32
            4 bw_layer_out uint32 = 32
            5 bw_params uint32 = 32
            6 fl_layer_in int32*
            7 fl_layer_out int32*
            8 fl_params int32*
            20 scale_in float*
            21 scale_out float*
            22 scale_params float*
        """,
        "MultinodeLayerParameter": "1 num_nodes uint32\n2 model_parts uint32 = 1",
        "MnActivationParameter": """
            1 num_nodes_in uint32
            2 num_nodes_out uint32
            3 model_parts_in uint32 = 1
            4 model_parts_out uint32 = 1
            5 need_reduce bool = true
        """,
        "MnParamGradCompressParameter": "1 param_grad_compress_enable bool*",
        "CompileNetState": """
            1 is_init bool = true
            2 bn_scale_remove bool = false
            3 bn_scale_merge bool = false
            4 kept_bn_layers string*
        """,
        "NetParameter": """
            9 engine string =
            10 compile_net_state CompileNetState
            11 bn_stats_batch_size uint32 = 0
        """,
        "SolverParameter": """
            41 eval_type string = classification
            42 ap_version string = Integral
            43 show_per_class_result bool = false
            44 plateau_winsize int32*
            46 disabled_update bool = false
            47 engine string =
            48 warmup_iter int32 = 0
            49 warmup_start_lr float = 0
            50 local_lr_auto bool = false
            51 local_gw_ratio float = 0.001
        """,
        "SolverState": "5 minimum_loss float = 1e38\n6 iter_last_event int32 = 0",
        "LayerParameter": f"""{_boxes.FIELDS}
            147 split_param SplitParameter
            148 smooth_l1_loss_param SmoothL1LossParameter
            149 engine string =
            150 multinode MultinodeLayerParameter
            151 mn_activation_param MnActivationParameter
            152 box_annotator_ohem_param BoxAnnotatorOHEMParameter
            153 psroi_pooling_param PSROIPoolingParameter
            154 roi_pooling_param ROIPoolingParameter
            155 spatial_dropout_param SpatialDropoutParameter
            156 mn_grad_compress_param MnParamGradCompressParameter
            158 quantization_param QuantizationParameter
            207 video_data_param VideoDataParameter
        """,
    },
    refused={
        "DataParameter.shuffle": "samples of a database in another order",
        "LossParameter.normalization=PRE_FIXED": "a loss divided by a number of its own",
        "ConvolutionParameter.relu": "a convolution with a ReLU in it",
        "BatchNormParameter.relu": "a BatchNorm with a ReLU in it",
        "BatchNormParameter.stats_batch_size": "statistics over a part of the batch",
        "NetParameter.bn_stats_batch_size": "statistics over a part of the batch",
        "PoolingParameter.avg_include_pad": "an average that leaves the padding out",
        "LossParameter.label_smoothing": "labels that are smoothed",
        "SolverParameter.warmup_iter": "a learning rate that warms up",
        "SolverParameter.local_lr_auto": "learning rates set layer by layer",
    },
)
