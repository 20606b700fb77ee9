"""The ports of YOLO: Darknet's layers beside SSD's."""

from __future__ import annotations

from . import _boxes
from ._fork import Fork

FORK = Fork(
    "YOLO ports: Reorg, RegionLoss, Yolov3, YoloDetectionOutput, ReLU6, Upsample by a factor",
    ("eric612/MobileNet-YOLO",),
    {
        **_boxes.MESSAGES,
        "TransformationParameter": _boxes.TRANSFORM.replace("ResizeParameter", "ResizeParameter*"),
        "AnnotatedDataParameter": _boxes.ANNOTATIONS["AnnotatedDataParameter"]
        + """
            4 yolo_data_type int32 = 0
            5 yolo_data_jitter float = 0.3
            6 train_diffcult bool = false
            7 single_class bool = true
            8 seg_scales int32 = 8
            9 seg_resize_width int32 = 0
            10 seg_resize_height int32 = 0
        """,
        "ReorgParameter": "1 stride uint32\n2 reverse bool = false",
        "UpsampleParameter": "1 scale int32 = 1",
        "RegionLossParameter": """
            1 side uint32 = 13
            2 num_class uint32 = 20
            3 bias_match uint32 = 1
            4 coords uint32 = 4
            5 num uint32 = 5
            6 softmax uint32 = 1
            7 jitter float = 0.2
            8 rescore uint32 = 1
            9 object_scale float = 1
            10 class_scale float = 1
            11 noobject_scale float = 0.5
            12 coord_scale float = 5
            13 absolute uint32 = 1
            14 thresh float = 0.2
            15 random uint32 = 1
            16 biases float*
            17 softmax_tree string
            18 class_map string
        """,
        "Yolov3Parameter": """
            1 side uint32 = 13
            2 num_class uint32 = 20
            3 num uint32 = 5
            4 object_scale float = 1
            5 class_scale float = 1
            6 noobject_scale float = 0.5
            7 coord_scale float = 5
            8 thresh float = 0.2
            10 anchors_scale uint32 = 32
            11 biases float*
            12 mask uint32*
            13 use_logic_gradient bool = false
            14 use_focal_loss bool = false
        """,
        "YoloSegParameter": """
            1 num_class uint32 = 0
            2 object_scale float = 5
            3 class_scale float = 1
            4 use_logic_gradient bool = false
            5 use_hardsigmoid bool = false
        """,
        "YoloDetectionOutputParameter": """
            1 side uint32 = 13
            2 num_classes uint32 = 20
            3 num_box uint32 = 5
            4 coords uint32 = 4
            5 confidence_threshold float = 0.01
            6 nms_threshold float = 0.45
            7 biases float*
            8 label_map_file string
        """,
        "Yolov3DetectionOutputParameter": """
            1 num_classes uint32 = 20
            2 num_box uint32 = 3
            3 confidence_threshold float = 0.01
            4 nms_threshold float = 0.45
            5 biases float*
            6 anchors_scale uint32*
            7 mask_group_num uint32 = 2
            8 mask uint32*
        """,
        "SolverParameter": "43 plateau_winsize int32*\n50 stagelr float*\n51 stageiter int32*",
        "LayerParameter": f"""{_boxes.FIELDS}
            149 reorg_param ReorgParameter
            150 upsample_param UpsampleParameter
            211 relu6_param ReLUParameter
            600 region_loss_param RegionLossParameter
            601 yolo_detection_output_param YoloDetectionOutputParameter
            602 yolov3_detection_output_param Yolov3DetectionOutputParameter
            603 yolov3_param Yolov3Parameter
            604 yolo_seg_param YoloSegParameter
        """,
    },
)
