"""Caffe's current layer message and the parameters of every layer type. Notation: `schema.py`; source: as in `table_net.py`."""

from __future__ import annotations

_ENGINE = "enum Engine DEFAULT=0 CAFFE=1 CUDNN=2\n"
_POOL_METHOD = "enum PoolMethod MAX=0 AVE=1 STOCHASTIC=2\n"

LAYER = """
    1 name string
    2 type string
    3 bottom string*
    4 top string*
    5 loss_weight float*
    6 param ParamSpec*
    7 blobs BlobProto*
    8 include NetStateRule*
    9 exclude NetStateRule*
    10 phase Phase
    11 propagate_down bool*
    100 transform_param TransformationParameter
    101 loss_param LossParameter
    102 accuracy_param AccuracyParameter
    103 argmax_param ArgMaxParameter
    104 concat_param ConcatParameter
    105 contrastive_loss_param ContrastiveLossParameter
    106 convolution_param ConvolutionParameter
    107 data_param DataParameter
    108 dropout_param DropoutParameter
    109 dummy_data_param DummyDataParameter
    110 eltwise_param EltwiseParameter
    111 exp_param ExpParameter
    112 hdf5_data_param HDF5DataParameter
    113 hdf5_output_param HDF5OutputParameter
    114 hinge_loss_param HingeLossParameter
    115 image_data_param ImageDataParameter
    116 infogain_loss_param InfogainLossParameter
    117 inner_product_param InnerProductParameter
    118 lrn_param LRNParameter
    119 memory_data_param MemoryDataParameter
    120 mvn_param MVNParameter
    121 pooling_param PoolingParameter
    122 power_param PowerParameter
    123 relu_param ReLUParameter
    124 sigmoid_param SigmoidParameter
    125 softmax_param SoftmaxParameter
    126 slice_param SliceParameter
    127 tanh_param TanHParameter
    128 threshold_param ThresholdParameter
    129 window_data_param WindowDataParameter
    130 python_param PythonParameter
    131 prelu_param PReLUParameter
    132 spp_param SPPParameter
    133 reshape_param ReshapeParameter
    134 log_param LogParameter
    135 flatten_param FlattenParameter
    136 reduction_param ReductionParameter
    137 embed_param EmbedParameter
    138 tile_param TileParameter
    139 batch_norm_param BatchNormParameter
    140 elu_param ELUParameter
    141 bias_param BiasParameter
    142 scale_param ScaleParameter
    143 input_param InputParameter
    144 crop_param CropParameter
    145 parameter_param ParameterParameter
    146 recurrent_param RecurrentParameter
    147 swish_param SwishParameter
    148 clip_param ClipParameter
"""

WINDOWS: dict[str, str] = {
    "ConvolutionParameter": _ENGINE
    + """
        1 num_output uint32
        2 bias_term bool = true
        3 pad uint32*
        4 kernel_size uint32*
        5 group uint32 = 1
        6 stride uint32*
        7 weight_filler FillerParameter
        8 bias_filler FillerParameter
        9 pad_h uint32 = 0
        10 pad_w uint32 = 0
        11 kernel_h uint32
        12 kernel_w uint32
        13 stride_h uint32
        14 stride_w uint32
        15 engine Engine = DEFAULT
        16 axis int32 = 1
        17 force_nd_im2col bool = false
        18 dilation uint32*
    """,
    "PoolingParameter": _ENGINE
    + _POOL_METHOD
    + """
        enum RoundMode CEIL=0 FLOOR=1
        1 pool PoolMethod = MAX
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
        12 global_pooling bool = false
        13 round_mode RoundMode = CEIL
    """,
    "SPPParameter": _ENGINE
    + _POOL_METHOD
    + """
        1 pyramid_height uint32
        2 pool PoolMethod = MAX
        6 engine Engine = DEFAULT
    """,
    "LRNParameter": _ENGINE
    + """
        enum NormRegion ACROSS_CHANNELS=0 WITHIN_CHANNEL=1
        1 local_size uint32 = 5
        2 alpha float = 1
        3 beta float = 0.75
        4 norm_region NormRegion = ACROSS_CHANNELS
        5 k float = 1
        6 engine Engine = DEFAULT
    """,
}

DATA: dict[str, str] = {
    "DataParameter": """
        enum DB LEVELDB=0 LMDB=1
        1 source string
        2 scale float = 1
        3 mean_file string
        4 batch_size uint32
        5 crop_size uint32 = 0
        6 mirror bool = false
        7 rand_skip uint32 = 0
        8 backend DB = LEVELDB
        9 force_encoded_color bool = false
        10 prefetch uint32 = 4
    """,
    "DummyDataParameter": """
        1 data_filler FillerParameter*
        2 num uint32*
        3 channels uint32*
        4 height uint32*
        5 width uint32*
        6 shape BlobShape*
    """,
    "HDF5DataParameter": """
        1 source string
        2 batch_size uint32
        3 shuffle bool = false
    """,
    "HDF5OutputParameter": "1 file_name string",
    "ImageDataParameter": """
        1 source string
        2 scale float = 1
        3 mean_file string
        4 batch_size uint32 = 1
        5 crop_size uint32 = 0
        6 mirror bool = false
        7 rand_skip uint32 = 0
        8 shuffle bool = false
        9 new_height uint32 = 0
        10 new_width uint32 = 0
        11 is_color bool = true
        12 root_folder string =
    """,
    "InputParameter": "1 shape BlobShape*",
    "MemoryDataParameter": """
        1 batch_size uint32
        2 channels uint32
        3 height uint32
        4 width uint32
    """,
    "WindowDataParameter": """
        1 source string
        2 scale float = 1
        3 mean_file string
        4 batch_size uint32
        5 crop_size uint32 = 0
        6 mirror bool = false
        7 fg_threshold float = 0.5
        8 bg_threshold float = 0.5
        9 fg_fraction float = 0.25
        10 context_pad uint32 = 0
        11 crop_mode string = warp
        12 cache_images bool = false
        13 root_folder string =
    """,
}

OTHERS: dict[str, str] = {
    "AccuracyParameter": """
        1 top_k uint32 = 1
        2 axis int32 = 1
        3 ignore_label int32
    """,
    "ArgMaxParameter": """
        1 out_max_val bool = false
        2 top_k uint32 = 1
        3 axis int32
    """,
    "BatchNormParameter": """
        1 use_global_stats bool
        2 moving_average_fraction float = 0.999
        3 eps float = 1e-5
    """,
    "BiasParameter": """
        1 axis int32 = 1
        2 num_axes int32 = 1
        3 filler FillerParameter
    """,
    "ClipParameter": """
        1 min float!
        2 max float!
    """,
    "ConcatParameter": """
        1 concat_dim uint32 = 1
        2 axis int32 = 1
    """,
    "ContrastiveLossParameter": """
        1 margin float = 1.0
        2 legacy_version bool = false
    """,
    "CropParameter": """
        1 axis int32 = 2
        2 offset uint32*
    """,
    "DropoutParameter": "1 dropout_ratio float = 0.5",
    "ELUParameter": "1 alpha float = 1",
    "EltwiseParameter": """
        enum EltwiseOp PROD=0 SUM=1 MAX=2
        1 operation EltwiseOp = SUM
        2 coeff float*
        3 stable_prod_grad bool = true
    """,
    "EmbedParameter": """
        1 num_output uint32
        2 input_dim uint32
        3 bias_term bool = true
        4 weight_filler FillerParameter
        5 bias_filler FillerParameter
    """,
    "ExpParameter": """
        1 base float = -1.0
        2 scale float = 1.0
        3 shift float = 0.0
    """,
    "FlattenParameter": """
        1 axis int32 = 1
        2 end_axis int32 = -1
    """,
    "HingeLossParameter": """
        enum Norm L1=1 L2=2
        1 norm Norm = L1
    """,
    "InfogainLossParameter": """
        1 source string
        2 axis int32 = 1
    """,
    "InnerProductParameter": """
        1 num_output uint32
        2 bias_term bool = true
        3 weight_filler FillerParameter
        4 bias_filler FillerParameter
        5 axis int32 = 1
        6 transpose bool = false
    """,
    "LogParameter": """
        1 base float = -1.0
        2 scale float = 1.0
        3 shift float = 0.0
    """,
    "MVNParameter": """
        1 normalize_variance bool = true
        2 across_channels bool = false
        3 eps float = 1e-9
    """,
    "PReLUParameter": """
        1 filler FillerParameter
        2 channel_shared bool = false
    """,
    "ParameterParameter": "1 shape BlobShape",
    "PowerParameter": """
        1 power float = 1.0
        2 scale float = 1.0
        3 shift float = 0.0
    """,
    "PythonParameter": """
        1 module string
        2 layer string
        3 param_str string =
        4 share_in_parallel bool = false
    """,
    "ReLUParameter": _ENGINE
    + """
        1 negative_slope float = 0
        2 engine Engine = DEFAULT
    """,
    "RecurrentParameter": """
        1 num_output uint32 = 0
        2 weight_filler FillerParameter
        3 bias_filler FillerParameter
        4 debug_info bool = false
        5 expose_hidden bool = false
    """,
    "ReductionParameter": """
        enum ReductionOp SUM=1 ASUM=2 SUMSQ=3 MEAN=4
        1 operation ReductionOp = SUM
        2 axis int32 = 0
        3 coeff float = 1.0
    """,
    "ReshapeParameter": """
        1 shape BlobShape
        2 axis int32 = 0
        3 num_axes int32 = -1
    """,
    "ScaleParameter": """
        1 axis int32 = 1
        2 num_axes int32 = 1
        3 filler FillerParameter
        4 bias_term bool = false
        5 bias_filler FillerParameter
    """,
    "SigmoidParameter": _ENGINE + "1 engine Engine = DEFAULT",
    "SliceParameter": """
        1 slice_dim uint32 = 1
        2 slice_point uint32*
        3 axis int32 = 1
    """,
    "SoftmaxParameter": _ENGINE
    + """
        1 engine Engine = DEFAULT
        2 axis int32 = 1
    """,
    "SwishParameter": "1 beta float = 1",
    "TanHParameter": _ENGINE + "1 engine Engine = DEFAULT",
    "ThresholdParameter": "1 threshold float = 0",
    "TileParameter": """
        1 axis int32 = 1
        2 tiles int32
    """,
}

MESSAGES: dict[str, str] = {"LayerParameter": LAYER, **WINDOWS, **DATA, **OTHERS}
