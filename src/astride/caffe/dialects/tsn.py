"""The Caffe of temporal segment networks, and PSPNet's own networks: BN with a slope, a bias and running statistics."""

from __future__ import annotations

from ._fork import ENGINE, Fork

FORK = Fork(
    "temporal segment networks and PSPNet's texts: BN with slope_filler, bias_filler, momentum and frozen",
    ("yjxiong/caffe", "lxx1991/caffe_mpi"),
    {
        "BNParameter": ENGINE
        + """
            1 slope_filler FillerParameter
            2 bias_filler FillerParameter
            3 momentum float = 0.9
            4 eps float = 1e-5
            5 frozen bool = false
            6 engine Engine = DEFAULT
        """,
        "LayerParameter": "137 bn_param BNParameter",
    },
)
