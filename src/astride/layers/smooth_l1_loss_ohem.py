"""SmoothL1LossOHEM: SmoothL1Loss whose second top says how hard each region is."""

from __future__ import annotations

from typing import ClassVar

from .smooth_l1_loss import SmoothL1Loss


class SmoothL1LossOHEM(SmoothL1Loss):
    """As SmoothL1Loss with a sigma of 1: the loss of each place, which BoxAnnotatorOHEM reads, is the second top.

    Bottoms    predictions a, targets b of their shape (N, C, *size); if given, weights within f
    Options    normalization: valid unless told otherwise, which here is N times the places of a map
    Quirks     R-FCN's gradient leaves the weight out that stands before the slope: the same where weights are 0 or 1, as its
               own are; here it is the loss's gradient for all
    Source     R-FCN's Caffe, src/caffe/layers/smooth_L1_loss_ohem_layer.cpp and .cu, and Intel's of that name
    """

    type = "SmoothL1LossOHEM"
    bottoms: ClassVar[tuple[int, int | None]] = (2, 3)
