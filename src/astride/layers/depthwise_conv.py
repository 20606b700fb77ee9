"""DepthwiseConv: the short spelling of DepthwiseConvolution."""

from __future__ import annotations

from .depthwise_convolution import DepthwiseConvolution


class DepthwiseConv(DepthwiseConvolution):
    """As DepthwiseConvolution, under the name that some MobileNets' texts have.

    Parameters  weights (outputs, inputs / group, *kernel), and a bias (outputs,) unless there is none
    Source      MobileNet in forks of Caffe, src/caffe/layers/depthwise_conv_layer.cpp
    """

    type = "DepthwiseConv"
