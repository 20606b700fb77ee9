"""SoftmaxWithLossOHEM: SoftmaxWithLoss whose third top says how hard each region is."""

from __future__ import annotations

from .softmax_loss import SoftmaxWithLoss


class SoftmaxWithLossOHEM(SoftmaxWithLoss):
    """As SoftmaxWithLoss: R-FCN took the layer apart, so that BoxAnnotatorOHEM finds the loss of each place in the third top.

    Quirks      Intel's CPU form sums as many of the places' losses as are not ignored from the first on; here, as on R-FCN's
                GPU, those that are not ignored. The mining is BoxAnnotatorOHEM's: another layer of a like name,
                SoftmaxWithOHEM, mines itself
    Source      R-FCN's Caffe, src/caffe/layers/softmax_loss_ohem_layer.cpp and .cu, and Intel's of that name
    """

    type = "SoftmaxWithLossOHEM"
