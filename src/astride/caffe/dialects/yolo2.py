"""YOLO v2's ports before SSD's layers came to them; and the fields of Region layers whose numbers nobody wrote down."""

from __future__ import annotations

from . import yolo
from ._fork import Fork

FORK = Fork(
    "YOLO v2: Reorg, Region, RegionLoss, and a DetectionOutput of its own",
    ("BirdeeChen/caffe_yolo_v2",),
    {
        "ReorgParameter": yolo.FORK.messages["ReorgParameter"],
        "RegionLossParameter": yolo.FORK.messages["RegionLossParameter"],
        "RegionParameter": """
            1 classes uint32 = 20
            2 coords uint32 = 4
            3 boxes_of_each_grid uint32 = 5
            4 softmax bool = false
            5 anchors string
        """,
        "DetectionOutputParameter": """
            1 side uint32 = 13
            2 classes uint32 = 20
            3 num_box uint32 = 5
            4 coords uint32 = 4
            5 confidence_threshold float = 0.01
            6 nms_threshold float = 0.45
            7 biases float*
            8 label_map_file string
        """,
        "LayerParameter": """
            147 reorg_param ReorgParameter
            148 region_param RegionParameter
            202 region_loss_param RegionLossParameter
            204 detection_output_param DetectionOutputParameter
        """,
    },
)

REGION = Fork(
    "YOLO v2: Region by planes; in text only, its numbers are in no file that was found",
    (
        "openvinotoolkit/training_toolbox_caffe (src/caffe/layers/region_layer.cpp)",
        "sokeeffe/caffe_yolo (src/caffe/layers/region_layer.cpp)",
    ),
    {
        "RegionParameter": """
            400000001 classes uint32 = 20
            400000002 num_classes uint32
            400000003 coords uint32 = 4
            400000004 num uint32
            400000005 side uint32
            400000006 jitter float
            400000007 object_scale float
            400000008 class_scale float
            400000009 noobject_scale float
            400000010 coord_scale float
            400000011 thresh float
            400000012 biases float*
        """,
        "LayerParameter": "400000172 region_param RegionParameter",
    },
)
