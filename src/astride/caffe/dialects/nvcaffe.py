"""NVIDIA's Caffe, 0.16 and 0.17: types for each layer, blobs as raw bytes, DetectNet."""

from __future__ import annotations

from ._fork import ENGINE, Fork

FORK = Fork(
    "NVCaffe: half precision, raw blobs, BatchNorm with its own scale, DetectNet",
    ("borisgin/nvcaffe", "NVIDIA/caffe"),
    {
        "BlobProto": """
            10 raw_data_type Type
            11 raw_diff_type Type
            12 raw_data bytes
            13 raw_diff bytes
        """,
        "Datum": "8 record_id uint32 = 0",
        "NetParameter": """
            11 default_forward_type Type = FLOAT
            12 default_backward_type Type = FLOAT
            13 default_forward_math Type = FLOAT
            14 default_backward_math Type = FLOAT
            15 global_grad_scale float = 1
            17 default_conv_algos_override string = -1,-1,-1
            18 reduce_buckets int32 = 6
            19 default_cudnn_math_override int32 = -1
        """,
        "SolverParameter": """
            41 rampup_interval int32 = 0
            42 rampup_lr float = 0
            43 min_lr float = 0
            44 solver_data_type Type = FLOAT
            45 store_blobs_in_old_format bool = false
            46 momentum_policy string = fixed
            47 max_momentum float = 0.99
            48 momentum_power float = 1
            49 local_lr_auto bool = false
            50 local_gw_ratio float = 0.001
        """,
        "TransformationParameter": """
            8 use_gpu_transform bool = false
            9 random_seed int64 = -1
            10 img_rand_resize_lower uint32 = 0
            11 img_rand_resize_upper uint32 = 0
            12 resize_to_square bool = false
        """,
        "ConvolutionParameter": """
            enum CuDNNConvolutionAlgorithmSeeker GET=0 FINDEX=1
            19 cudnn_convolution_algo_seeker CuDNNConvolutionAlgorithmSeeker = FINDEX
            20 conv_algos_override string = -1,-1,-1
        """,
        "DataParameter": """
            11 threads uint32 = 0
            12 parser_threads uint32 = 0
            13 cache bool = false
            14 shuffle bool = false
        """,
        "BatchNormParameter": ENGINE
        + """
            5 scale_filler FillerParameter
            6 bias_filler FillerParameter
            7 scale_bias bool = false
            15 engine Engine = DEFAULT
        """,
        "ClassMapping": "1 src uint32!\n2 dst uint32!",
        "DetectNetGroundTruthParameter": """
            enum GridboxType GRIDBOX_MAX=0 GRIDBOX_MIN=1
            enum CoverageType RECTANGULAR=0
            1 stride uint32 = 4
            2 scale_cvg float = 0.5
            3 gridbox_type GridboxType = GRIDBOX_MAX
            4 max_cvg_len uint32 = 50
            5 min_cvg_len uint32 = 50
            7 coverage_type CoverageType = RECTANGULAR
            8 image_size_x uint32 = 1248
            9 image_size_y uint32 = 384
            11 obj_norm bool = false
            12 crop_bboxes bool = true
            13 object_class ClassMapping*
        """,
        "DetectNetAugmentationParameter": """
            1 crop_prob float = 1
            2 shift_x uint32 = 0
            3 shift_y uint32 = 0
            4 scale_prob float = 0.33
            5 scale_min float = 0.7
            6 scale_max float = 1
            7 flip_prob float = 0.33
            8 rotation_prob float = 0.33
            9 max_rotate_degree float = 1
            10 hue_rotation_prob float = 0.33
            11 hue_rotation float = 15
            12 desaturation_prob float = 0.33
            13 desaturation_max float = 0.5
        """,
        "LayerParameter": """
            145 forward_type Type = FLOAT
            146 backward_type Type = FLOAT
            147 forward_math Type = FLOAT
            148 backward_math Type = FLOAT
            149 debug bool = false
            150 cudnn_math_override int32 = -1
            6801 detectnet_groundtruth_param DetectNetGroundTruthParameter
            6802 detectnet_augmentation_param DetectNetAugmentationParameter
        """,
    },
    enums={"Type": "DOUBLE=0 FLOAT=1 FLOAT16=2 INT=3 UINT=4"},
    refused={
        "DataParameter.shuffle": "samples of a database in another order",
        "BatchNormParameter.scale_bias": "a BatchNorm with its own scale and bias",
        "SolverParameter.rampup_interval": "a learning rate that ramps up",
        "SolverParameter.min_lr": "a least learning rate",
        "SolverParameter.momentum_policy": "a momentum that changes",
        "SolverParameter.local_lr_auto": "learning rates set layer by layer",
    },
)
