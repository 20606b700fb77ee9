"""Field reports about detectors' layers: each with what its reporter should get."""

from __future__ import annotations

import numpy as np

from astride.caffe import load_caffe

NET = """
input: "x" input_shape {{ dim: 1 dim: 4 dim: 2 dim: 2 }}
layer {{ name: "n" type: "Normalize" bottom: "x" top: "y" norm_param {{ across_spatial: {} channel_shared: {} }} }}
"""


def test_caf_19_normalize_uses_its_learned_scale() -> None:
    """y = scale * x / sqrt(sum x^2 + 1e-10), the scale from the blob; a scale of 1 or 20 alone is not it."""
    ones = np.ones((1, 4, 2, 2), np.float32)
    for across_spatial, length in (("false", 2.0), ("true", 4.0)):
        net = load_caffe(NET.format(across_spatial, "false"))
        net.params["n"][0].data[...] = [1, 2, 3, 4]
        y = net.forward(x=ones)["y"]
        np.testing.assert_allclose(y[0, :, 1, 1], np.array([1, 2, 3, 4]) / length, rtol=1e-6)
        net = load_caffe(NET.format(across_spatial, "true"))
        net.params["n"][0].data[...] = 3
        np.testing.assert_allclose(net.forward(x=ones)["y"], 3 / length, rtol=1e-6)
    assert not load_caffe(NET.format("false", "false")).forward(x=0 * ones)["y"].any(), "eps stands inside the root"
