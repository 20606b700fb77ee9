"""OpenPose's training Caffe: networks themselves are BVLC's."""

from __future__ import annotations

from ._fork import Fork

FORK = Fork(
    "OpenPose's training: its data layer, binary convolution",
    ("CMU-Perceptual-Computing-Lab/openpose_caffe_train",),
    {
        "ConvolutionParameter": "19 binary int32 = 0",
        "OPTransformationParameter": """
            8 stride uint32 = 4
            9 flip_prob float = 0.5
            10 max_degree_rotations string = 45.0
            12 crop_size_x uint32 = 368
            13 crop_size_y uint32 = 368
            14 center_perterb_max float = 10
            15 center_swap_prob float = 0
            16 scale_prob float = 0.5
            17 scale_mins string = 0.9
            18 scale_maxs string = 1.1
            19 target_dist float = 1
            20 number_max_occlusions string = 0
            21 sigmas string = 7.0
            22 models string = COCO
            23 sources string =
            24 probabilities string = 1
            25 source_background string =
            26 prob_only_background float = 0
            27 media_directory string =
            28 normalization uint32 = 0
            29 add_distance bool = false
            30 input_type string =
            31 frame_size uint32 = 0
            32 taf_topology uint32 = 0
        """,
        "LayerParameter": "149 op_transform_param OPTransformationParameter",
    },
    refused={"ConvolutionParameter.binary": "convolution with binary weights"},
)

RTPOSE = Fork(
    "OpenPose's first Caffe: ImResize, Nms",
    ("CMU-Perceptual-Computing-Lab/caffe_rtpose",),
    {
        "ImResizeParameter": """
            1 target_spatial_width uint32 = 368
            2 target_spatial_height uint32 = 368
            3 factor float = 0
            4 start_scale float = 1
            5 scale_gap float = 0.1
        """,
        "NmsParameter": """
            1 threshold float = 0.5
            2 num_peak uint32 = 100
            3 max_peaks uint32 = 20
            4 num_parts uint32 = 15
        """,
        "LayerParameter": "148 imresize_param ImResizeParameter\n149 nms_param NmsParameter",
    },
    refused={"ImResizeParameter.start_scale": "a merging of several scales"},
)
