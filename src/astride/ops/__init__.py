"""Operators: one vocabulary (kernel stride padding dilation layout) over every framework's rules, one file each.

`OPERATORS` lists them; a line here is the registration. Layers call `forward` and `backward` on plans.
"""

from __future__ import annotations

from ..dispatch import backward, forward

OPERATORS: dict[str, str] = {
    "max_pool": "greatest tap of each window",
    "min_pool": "least tap of each window",
    "avg_pool": "mean of each window",
    "lp_pool": "p-norm of each window",
    "adaptive_pool": "mean or greatest tap of windows that give an output of a chosen size",
    "global_pool": "mean, greatest or least tap or p-norm of a whole plane",
    "fractional_pool": "greatest tap of windows at random places, for an output of any size",
    "stochastic_pool": "one tap of each window, drawn in proportion to its activation",
    "max_unpool": "values back to the places they were the maximum of",
    "conv": "convolution (cross-correlation), grouped, dilated, any edge",
    "conv_transpose": "the adjoint of a convolution",
    "deform_conv": "convolution whose taps lie where offsets move them",
    "conv_integer": "convolution of quantised numbers, summed in int32",
    "unfold": "the pixels of every window as columns",
    "fold": "columns summed back into an image",
    "window_reduce": "a function of one window that you write, of every window",
    "matmul": "rows of x times a matrix",
    "elementwise": "functions of one array, products, sums and maxima of two, element by element",
    "broadcast": "a smaller array along some axes: scales, biases, slopes",
    "lrn": "each value over a power of its neighbours' squares",
    "batch_norm": "each channel less its mean, over its standard deviation",
    "mvn": "each image or channel of one less its mean, over its standard deviation",
    "softmax": "scores to probabilities along one axis",
    "softmax_loss": "negative log-likelihood of a softmax",
    "layout": "axes in another order, arrays joined, cut, repeated, taken from",
    "reduce": "sums and means of everything behind an axis",
    "argmax": "the greatest along an axis, their places or values",
}
"""operator -> what it computes. The module, and the function in it, have the same name."""

FORMS: dict[str, tuple[str, ...]] = {
    "adaptive_pool": ("avg_pool", "max_pool"),
    "global_pool": ("avg_pool", "max_pool", "min_pool", "lp_pool"),
}
"""operator -> those whose plans and kernels it uses: it only chooses the windows."""

__all__ = ["FORMS", "OPERATORS", "backward", "forward"]
