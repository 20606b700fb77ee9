"""Cascade R-CNN: ROIAlign on a grid of corners, boxes decoded from stage to stage."""

from __future__ import annotations

from . import faster_rcnn, rfcn
from ._fork import ROI_POOLING, Fork

FORK = Fork(
    "Cascade R-CNN: ROIAlign with roi_pooling_param, which pads its regions; DecodeBBox",
    ("zhaoweicai/cascade-rcnn",),
    {
        "ROIPoolingParameter": f"{ROI_POOLING}\n4 pad_ratio float = 0",
        "PSROIPoolingParameter": rfcn.FORK.messages["PSROIPoolingParameter"],
        "SmoothL1LossParameter": faster_rcnn.MESSAGES["SmoothL1LossParameter"],
        "BBoxRegParameter": "1 bbox_mean float*\n2 bbox_std float*\n3 cls_aware bool = true",
        "DecodeBBoxParameter": "1 gt_iou_thr float = 0.95",
        "LayerParameter": """
            147 roi_pooling_param ROIPoolingParameter
            148 psroi_pooling_param PSROIPoolingParameter
            149 smooth_l1_loss_param SmoothL1LossParameter
            150 bbox_reg_param BBoxRegParameter
            155 decode_bbox_param DecodeBBoxParameter
        """,
    },
)
