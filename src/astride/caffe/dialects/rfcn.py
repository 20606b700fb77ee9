"""R-FCN: position-sensitive pooling over regions of interest."""

from __future__ import annotations

from . import faster_rcnn
from ._fork import PRE_FIXED, Fork

FORK = Fork(
    "R-FCN: PSROIPooling, BoxAnnotatorOHEM, losses divided by a fixed number",
    ("daijifeng001/caffe-rfcn",),
    {
        **faster_rcnn.MESSAGES,
        "BoxAnnotatorOHEMParameter": "1 roi_per_img uint32!\n2 ignore_label int32 = -1",
        "PSROIPoolingParameter": """
            1 spatial_scale float!
            2 output_dim int32!
            3 group_size int32!
        """,
        "LossParameter": PRE_FIXED,
        "LayerParameter": f"""{faster_rcnn.MESSAGES["LayerParameter"]}
            10000 box_annotator_ohem_param BoxAnnotatorOHEMParameter
            10001 psroi_pooling_param PSROIPoolingParameter
        """,
    },
    refused={"LossParameter.normalization=PRE_FIXED": "a loss divided by a number of its own"},
)
