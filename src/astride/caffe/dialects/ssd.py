"""SSD, the single-shot detector: boxes before, beside and after the network."""

from __future__ import annotations

from . import _boxes
from ._fork import Fork

FORK = Fork(
    "SSD: Permute, PriorBox, DetectionOutput, MultiBoxLoss, Normalize, annotated data",
    ("weiliu89/caffe (branch ssd)", "sfzhang15/RefineDet"),
    {
        **_boxes.MESSAGES,
        "LayerParameter": f"{_boxes.FIELDS}\n207 video_data_param VideoDataParameter",
        "SolverParameter": _boxes.SOLVER,
        "SolverState": "5 minimum_loss float = 1e38\n6 iter_last_event int32 = 0",
    },
)
