"""CenterNet in Caffe: its losses' fields, of layers that are refused."""

from __future__ import annotations

from ._fork import Fork

FORK = Fork(
    "CenterNet's losses; in text only, their numbers are in no file that was found, and the layers are refused",
    ("yuqj1991/caffe_train (src/caffe/layers/CenternetLossLayer.cpp, CenterGridLossLayer.cpp)",),
    {
        "CenterObjectLossParameter": """
            enum CLASS_TYPE SIGMOID=0 SOFTMAX=1
            enum LocLossType L2=0 SMOOTH_L1=1
            enum ConfLossType FOCALSIGMOID=0
            400000001 loc_weight float
            400000002 num_class uint32
            400000003 share_location bool
            400000004 loc_loss_type LocLossType
            400000005 class_type CLASS_TYPE
            400000006 net_height uint32
            400000007 net_width uint32
            400000008 ignore_thresh float
            400000009 bias_scale float*
            400000010 bias_num uint32
            400000011 bias_mask uint32*
            400000012 low_bbox_scale float
            400000013 up_bbox_scale float
            400000014 has_lm bool
            400000015 lm_loss_type LocLossType
            400000016 conf_loss_type ConfLossType
        """,
        "LayerParameter": "400000173 center_object_loss_param CenterObjectLossParameter",
    },
)
