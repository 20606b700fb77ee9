"""DepthwiseConvolution: a grouped convolution under a name of its own."""

from __future__ import annotations

from .convolution import Convolution


class DepthwiseConvolution(Convolution):
    """As Convolution with `group`, for which the channels stand where it is not given: then each output sees one input.

    Parameters  weights (outputs, inputs / group, *kernel), and a bias (outputs,) unless there is none
    Source      MobileNet in forks of Caffe, src/caffe/layers/depthwise_conv_layer.cpp
    """

    type = "DepthwiseConvolution"
