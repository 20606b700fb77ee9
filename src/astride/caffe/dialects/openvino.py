"""OpenVINO's training toolbox: PVANet's Proposal, and SSD's and R-FCN's layers under numbers of its own."""

from __future__ import annotations

from . import faster_rcnn, rfcn, ssd
from ._fork import Fork

FORK = Fork(
    "OpenVINO's training toolbox: Proposal in C++ as PVANet has it, beside SSD's and R-FCN's layers",
    ("openvinotoolkit/training_toolbox_caffe",),
    {
        "ProposalParameter": """
            1 feat_stride uint32 = 16
            2 base_size uint32 = 16
            3 min_size uint32 = 16
            4 ratio float*
            5 scale float*
            6 pre_nms_topn uint32 = 6000
            7 post_nms_topn uint32 = 300
            8 nms_thresh float = 0.7
        """,
        "LossParameter": rfcn.FORK.messages["LossParameter"],
        "SmoothL1LossParameter": faster_rcnn.MESSAGES["SmoothL1LossParameter"],
        **{
            name: rfcn.FORK.messages[name]
            for name in ("BoxAnnotatorOHEMParameter", "PSROIPoolingParameter", "ROIPoolingParameter")
        },
        **{
            name: ssd.FORK.messages[name]
            for name in (
                "ResizeParameter",
                "NonMaximumSuppressionParameter",
                "SaveOutputParameter",
                "NormalizeParameter",
                "PermuteParameter",
                "PriorBoxParameter",
                "DetectionOutputParameter",
            )
        },
        "LayerParameter": """
            154 permute_param PermuteParameter
            201 proposal_param ProposalParameter
            204 norm_param NormalizeParameter
            207 psroi_pooling_param PSROIPoolingParameter
            208 roi_pooling_param ROIPoolingParameter
            209 smooth_l1_loss_param SmoothL1LossParameter
            210 box_annotator_ohem_param BoxAnnotatorOHEMParameter
            211 detection_output_param DetectionOutputParameter
            212 prior_box_param PriorBoxParameter
        """,
    },
)
