"""FlowNet and DispNet: correlation, resampling and warping of feature maps."""

from __future__ import annotations

from ._fork import Fork

_GENERATORS = """
    10 mirror RandomGeneratorParameter
    11 translate RandomGeneratorParameter
    12 rotate RandomGeneratorParameter
    13 zoom RandomGeneratorParameter
    14 squeeze RandomGeneratorParameter
    15 translate_x RandomGeneratorParameter
    16 translate_y RandomGeneratorParameter
    20 lmult_pow RandomGeneratorParameter
    21 lmult_mult RandomGeneratorParameter
    22 lmult_add RandomGeneratorParameter
    23 sat_pow RandomGeneratorParameter
    24 sat_mult RandomGeneratorParameter
    25 sat_add RandomGeneratorParameter
    26 col_pow RandomGeneratorParameter
    27 col_mult RandomGeneratorParameter
    28 col_add RandomGeneratorParameter
    29 ladd_pow RandomGeneratorParameter
    30 ladd_mult RandomGeneratorParameter
    31 ladd_add RandomGeneratorParameter
    32 col_rotate RandomGeneratorParameter
    35 gamma RandomGeneratorParameter
    36 brightness RandomGeneratorParameter
    37 contrast RandomGeneratorParameter
    38 color RandomGeneratorParameter
    100 fog_amount RandomGeneratorParameter
    101 fog_size RandomGeneratorParameter
    102 motion_blur_angle RandomGeneratorParameter
    103 motion_blur_size RandomGeneratorParameter
    104 shadow_angle RandomGeneratorParameter
    105 shadow_distance RandomGeneratorParameter
    106 shadow_strength RandomGeneratorParameter
    107 noise RandomGeneratorParameter
"""

FORK = Fork(
    "FlowNet and DispNet: Correlation, Resample, FlowWarp, L1Loss, LpqLoss, Mean, augmentation",
    ("lmb-freiburg/flownet2", "foss-for-synopsys-dwc-arc-processors/synopsys-caffe"),
    {
        "CoeffScheduleParameter": """
            1 half_life float = 1
            2 initial_coeff float = 1
            3 final_coeff float = 1
        """,
        "RandomGeneratorParameter": """
            1 rand_type string = uniform
            2 exp bool = false
            4 mean float = 0
            5 spread float = 0
            6 prob float = 1
            7 apply_schedule bool = true
            8 discretize bool = false
            9 multiplier float = 1
        """,
        "AugmentationParameter": _GENERATORS
        + """
            2 write_augmented string =
            3 max_multiplier float = 255
            4 augment_during_test bool = false
            5 recompute_mean uint32 = 0
            6 write_mean string =
            7 mean_per_pixel bool = true
            8 mode string = add
            18 mean float*
            33 crop_width uint32 = 0
            34 crop_height uint32 = 0
            80 bottomwidth uint32 = 0
            81 bottomheight uint32 = 0
            82 num uint32 = 0
            83 chromatic_eigvec float*
        """,
        "CorrelationParameter": """
            enum CorrelationType MULTIPLY=0 SUBTRACT=1
            2 pad uint32 = 0
            3 kernel_size uint32
            4 max_displacement uint32
            5 stride_1 uint32 = 1
            6 stride_2 uint32 = 1
            7 do_abs bool = false
            8 single_direction int32 = 0
            15 correlation_type CorrelationType = MULTIPLY
        """,
        "L1LossParameter": """
            1 l2_per_location bool = false
            2 l2_prescale_by_channels bool = false
            3 normalize_by_num_entries bool = false
            4 epsilon float = 1e-2
            3001 plateau float = 0
        """,
        "LpqLossParameter": """
            4010 pq_episode_starts_at_iter uint32*
            4011 p float*
            4012 q float*
            4013 p_epsilon float = 0
            4014 q_epsilon float = 1e-2
            4016 l2_prescale_by_channels bool = false
            4017 normalize_by_num_entries bool = false
        """,
        "ReaderParameter": "1 file string!\n2 num uint32 = 1",
        "WriterParameter": """
            1 file string =
            2 folder string =
            3 prefix string =
            4 suffix string =
            5 normalize bool = false
            6 scale float = 1
        """,
        "MeanParameter": """
            enum MeanOperation ADD=1 SUBTRACT=4
            1 operation MeanOperation!
            2 file string
            3 value float*
            4 mean_scale float = 1
            5 input_scale float = 1
            6 output_scale float = 1
        """,
        "ResampleParameter": """
            enum ResampleType NEAREST=1 LINEAR=2 CUBIC=3 AREA=4
            1 width uint32
            2 height uint32
            3 type ResampleType = LINEAR
            4 antialias bool = true
            5 factor float = 1
        """,
        "DownsampleParameter": """
            1 top_height uint32 = 0
            2 top_width uint32 = 0
        """,
        "FlowWarpParameter": """
            enum FillParameter ZERO=1 NOT_A_NUMBER=2
            1 fill_value FillParameter = ZERO
        """,
        "AccumParameter": """
            1 top_height uint32 = 0
            2 top_width uint32 = 0
            3 size_divisible_by uint32 = 0
            4 have_reference bool = false
        """,
        "DataParameter": """
            enum RANDPERMORDER FIRST_PERMUTE_THEN_RANGE=0 FIRST_RANGE_THEN_PERMUTE=1
            enum CHANNELENCODING UINT8=1 UINT16FLOW=2 BOOL1=3
            3001 preselection_file string
            3002 preselection_label int32
            3003 range_start int32 = 0
            3004 range_end int32 = -1
            3005 rand_permute bool = false
            3006 rand_permute_order RANDPERMORDER = FIRST_PERMUTE_THEN_RANGE
            3007 rand_permute_seed uint32 = 0
            3008 slice_point uint32*
            3009 encoding CHANNELENCODING*
            3010 verbose bool = false
            3011 subtract float*
            3012 permute_every_iter uint32 = 0
            3013 block_size uint32 = 0
        """,
        "LayerParameter": """
            148 coeff_schedule_param CoeffScheduleParameter
            149 augmentation_param AugmentationParameter
            150 correlation_param CorrelationParameter
            151 l1_loss_param L1LossParameter
            152 writer_param WriterParameter
            153 reader_param ReaderParameter
            154 mean_param MeanParameter
            155 resample_param ResampleParameter
            156 downsample_param DownsampleParameter
            157 reshape_every_iter bool = true
            158 lpq_loss_param LpqLossParameter
            159 flow_warp_param FlowWarpParameter
            160 accum_param AccumParameter
        """,
    },
)
