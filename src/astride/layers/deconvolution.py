"""Deconvolution: the transposed convolution, which is all that differs."""

from __future__ import annotations

from .convolution import Convolution


class Deconvolution(Convolution):
    """As Convolution, with a rule that gives transposed plans; weights are (I, O/g, *kernel)."""

    type = "Deconvolution"
