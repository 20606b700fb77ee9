"""ConvolutionDepthwise: a filter for each channel."""

from __future__ import annotations

from .convolution import Convolution


class ConvolutionDepthwise(Convolution):
    """As Convolution, with as many outputs as inputs, each made of one of them.

    Parameters  weights (channels, 1, *kernel), and a bias (channels,) unless there is none
    Quirks      num_output and group are not read: the bottom's channels stand for both
    Source      many forks of Caffe, src/caffe/layers/conv_dw_layer.cpp
    """

    type = "ConvolutionDepthwise"
