"""Ascend's converter: ROIAlign as Mask R-CNN has it."""

from __future__ import annotations

from ._fork import ROI_POOLING, Fork

FORK = Fork(
    "Ascend's ATC: ROIAlign with roi_align_param, averages of sampled points",
    ("the caffe.proto of Ascend's model converter, as its manual lists it",),
    {
        "ROIAlignParameter": f"{ROI_POOLING}\n4 sampling_ratio int32 = -1\n5 roi_end_mode int32 = 0",
        "LayerParameter": "154 roi_align_param ROIAlignParameter",
    },
)
