"""Fast and Faster R-CNN: pooling over regions of interest."""

from __future__ import annotations

from ._fork import ROI_POOLING, Fork

MESSAGES = {
    "ROIPoolingParameter": ROI_POOLING,
    "SmoothL1LossParameter": "1 sigma float = 1",
    "LayerParameter": """
        8266711 roi_pooling_param ROIPoolingParameter
        8266712 smooth_l1_loss_param SmoothL1LossParameter
    """,
}

FORK = Fork("Faster R-CNN: ROIPooling, SmoothL1Loss", ("rbgirshick/caffe-fast-rcnn",), MESSAGES)
