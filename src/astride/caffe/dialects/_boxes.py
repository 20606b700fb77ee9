"""SSD's messages, which RefineDet, the YOLO ports and Intel's Caffe took over with it.

Source: weiliu89/caffe, branch ssd, by way of the forks that carry the same lines.
"""

from __future__ import annotations

from ._fork import BOX_CODE

TRANSFORM = """
    8 resize_param ResizeParameter
    9 noise_param NoiseParameter
    10 emit_constraint EmitConstraint
    11 crop_h uint32 = 0
    12 crop_w uint32 = 0
    13 distort_param DistortionParameter
    14 expand_param ExpansionParameter
"""

SAMPLING = {
    "ResizeParameter": """
        enum Resize_mode WARP=1 FIT_SMALL_SIZE=2 FIT_LARGE_SIZE_AND_PAD=3
        enum Pad_mode CONSTANT=1 MIRRORED=2 REPEAT_NEAREST=3
        enum Interp_mode LINEAR=1 AREA=2 NEAREST=3 CUBIC=4 LANCZOS4=5
        1 prob float = 1
        2 resize_mode Resize_mode = WARP
        3 height uint32 = 0
        4 width uint32 = 0
        5 pad_mode Pad_mode = CONSTANT
        6 pad_value float*
        7 interp_mode Interp_mode*
        8 height_scale uint32 = 0
        9 width_scale uint32 = 0
    """,
    "SaltPepperParameter": """
        1 fraction float = 0
        2 value float*
    """,
    "NoiseParameter": """
        1 prob float = 0
        2 hist_eq bool = false
        3 inverse bool = false
        4 decolorize bool = false
        5 gauss_blur bool = false
        6 jpeg float = -1
        7 posterize bool = false
        8 erode bool = false
        9 saltpepper bool = false
        10 saltpepper_param SaltPepperParameter
        11 clahe bool = false
        12 convert_to_hsv bool = false
        13 convert_to_lab bool = false
    """,
    "DistortionParameter": """
        1 brightness_prob float = 0
        2 brightness_delta float = 0
        3 contrast_prob float = 0
        4 contrast_lower float = 0
        5 contrast_upper float = 0
        6 hue_prob float = 0
        7 hue_delta float = 0
        8 saturation_prob float = 0
        9 saturation_lower float = 0
        10 saturation_upper float = 0
        11 random_order_prob float = 0
    """,
    "ExpansionParameter": """
        1 prob float = 1
        2 max_expand_ratio float = 1
    """,
    "EmitConstraint": """
        enum EmitType CENTER=0 MIN_OVERLAP=1
        1 emit_type EmitType = CENTER
        2 emit_overlap float
    """,
    "Sampler": """
        1 min_scale float = 1
        2 max_scale float = 1
        3 min_aspect_ratio float = 1
        4 max_aspect_ratio float = 1
    """,
    "SampleConstraint": """
        1 min_jaccard_overlap float
        2 max_jaccard_overlap float
        3 min_sample_coverage float
        4 max_sample_coverage float
        5 min_object_coverage float
        6 max_object_coverage float
    """,
    "BatchSampler": """
        1 use_original_image bool = true
        2 sampler Sampler
        3 sample_constraint SampleConstraint
        4 max_sample uint32
        5 max_trials uint32 = 100
    """,
}

ANNOTATIONS = {
    "NormalizedBBox": """
        1 xmin float
        2 ymin float
        3 xmax float
        4 ymax float
        5 label int32
        6 difficult bool
        7 score float
        8 size float
    """,
    "Annotation": """
        1 instance_id int32 = 0
        2 bbox NormalizedBBox
    """,
    "AnnotationGroup": """
        1 group_label int32
        2 annotation Annotation*
    """,
    "AnnotatedDatum": """
        enum AnnotationType BBOX=0
        1 datum Datum
        2 type AnnotationType
        3 annotation_group AnnotationGroup*
    """,
    "LabelMapItem": """
        1 name string
        2 label int32
        3 display_name string
    """,
    "LabelMap": "1 item LabelMapItem*",
    "AnnotatedDataParameter": """
        enum AnnotationType BBOX=0
        1 batch_sampler BatchSampler*
        2 label_map_file string
        3 anno_type AnnotationType
    """,
}

LAYERS = {
    "MultiBoxLossParameter": BOX_CODE
    + """
        enum LocLossType L2=0 SMOOTH_L1=1
        enum ConfLossType SOFTMAX=0 LOGISTIC=1
        enum MatchType BIPARTITE=0 PER_PREDICTION=1
        enum MiningType NONE=0 MAX_NEGATIVE=1 HARD_EXAMPLE=2
        1 loc_loss_type LocLossType = SMOOTH_L1
        2 conf_loss_type ConfLossType = SOFTMAX
        3 loc_weight float = 1
        4 num_classes uint32
        5 share_location bool = true
        6 match_type MatchType = PER_PREDICTION
        7 overlap_threshold float = 0.5
        8 use_prior_for_matching bool = true
        9 background_label_id uint32 = 0
        10 use_difficult_gt bool = true
        11 do_neg_mining bool
        12 neg_pos_ratio float = 3
        13 neg_overlap float = 0.5
        14 code_type CodeType = CORNER
        16 encode_variance_in_target bool = false
        17 map_object_to_agnostic bool = false
        18 ignore_cross_boundary_bbox bool = false
        19 bp_inside bool = false
        20 mining_type MiningType = MAX_NEGATIVE
        21 nms_param NonMaximumSuppressionParameter
        22 sample_size int32 = 64
        23 use_prior_for_nms bool = false
    """,
    "PermuteParameter": "1 order uint32*",
    "PriorBoxParameter": BOX_CODE
    + """
        1 min_size float*
        2 max_size float*
        3 aspect_ratio float*
        4 flip bool = true
        5 clip bool = false
        6 variance float*
        7 img_size uint32
        8 img_h uint32
        9 img_w uint32
        10 step float
        11 step_h float
        12 step_w float
        13 offset float = 0.5
    """,
    "NonMaximumSuppressionParameter": """
        1 nms_threshold float = 0.3
        2 top_k int32
        3 eta float = 1
    """,
    "SaveOutputParameter": """
        1 output_directory string
        2 output_name_prefix string
        3 output_format string
        4 label_map_file string
        5 name_size_file string
        6 num_test_image uint32
        7 resize_param ResizeParameter
    """,
    "DetectionOutputParameter": BOX_CODE
    + """
        1 num_classes uint32
        2 share_location bool = true
        3 background_label_id int32 = 0
        4 nms_param NonMaximumSuppressionParameter
        5 save_output_param SaveOutputParameter
        6 code_type CodeType = CORNER
        7 keep_top_k int32 = -1
        8 variance_encoded_in_target bool = false
        9 confidence_threshold float
        10 visualize bool = false
        11 visualize_threshold float
        12 save_file string
    """,
    "DetectionEvaluateParameter": """
        1 num_classes uint32
        2 background_label_id uint32 = 0
        3 overlap_threshold float = 0.5
        4 evaluate_difficult_gt bool = true
        5 name_size_file string
        6 resize_param ResizeParameter
    """,
    "NormalizeParameter": """
        1 across_spatial bool = true
        2 scale_filler FillerParameter
        3 channel_shared bool = true
        4 eps float = 1e-10
    """,
    "VideoDataParameter": """
        enum VideoType WEBCAM=0 VIDEO=1
        1 video_type VideoType = WEBCAM
        2 device_id int32 = 0
        3 video_file string
        4 skip_frames uint32 = 0
    """,
}

FIELDS = """
    200 annotated_data_param AnnotatedDataParameter
    201 multibox_loss_param MultiBoxLossParameter
    202 permute_param PermuteParameter
    203 prior_box_param PriorBoxParameter
    204 detection_output_param DetectionOutputParameter
    205 detection_evaluate_param DetectionEvaluateParameter
    206 norm_param NormalizeParameter
"""

SOLVER = """
    41 eval_type string = classification
    42 ap_version string = Integral
    44 show_per_class_result bool = false
    43 plateau_winsize int32*
"""

MESSAGES = {"TransformationParameter": TRANSFORM, **SAMPLING, **ANNOTATIONS, **LAYERS}
