"""Silence: no outputs, no gradients."""

from __future__ import annotations

import numpy as np

from astride.caffe import load_caffe

NET = """
force_backward: true
input: "data" input_shape { dim: 2 dim: 3 }
layer { name: "s" type: "Slice" bottom: "data" top: "a" top: "b" top: "c" }
layer { name: "quiet" type: "Silence" bottom: "a" bottom: "c" }
"""


def test_what_is_silenced_is_no_output() -> None:
    net = load_caffe(NET)
    assert net.outputs == ["b"]
    net.blobs["a"].diff[...] = 9
    x = np.ones((2, 3), np.float32)
    assert list(net.forward(data=x)) == ["b"]
    np.testing.assert_array_equal(net.backward(b=np.full((2, 1), 5, np.float32))["data"], [[0, 5, 0], [0, 5, 0]])
