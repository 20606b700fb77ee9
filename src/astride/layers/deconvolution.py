"""Deconvolution: the transposed convolution, which is all that differs."""

from __future__ import annotations

from .convolution import Convolution


class Deconvolution(Convolution):
    """As Convolution, with a rule that gives transposed plans: every pixel adds its kernel to the output.

    Parameters  weights (inputs, outputs / group, *kernel), and a bias (outputs,) unless there is none
    Source      Caffe, src/caffe/layers/deconv_layer.cpp; golden ops/deconv_*
    """

    type = "Deconvolution"
