"""Forks with a layer that adds noise."""

from __future__ import annotations

from ._fork import Fork

FORK = Fork(
    "Noise by its standard deviation or range; with a filler in text only, its number is in no file that was found",
    ("happynear/caffe-windows", "jyegerlehner/caffe (src/caffe/layers/noise_layer.cpp)"),
    {
        "NoiseParameter": """
            1 gaussian_std float = 0
            2 uniform_range float = 0
            3 bias float = 0
            400000001 filler_param FillerParameter
        """,
        "LayerParameter": "147 noise_param NoiseParameter",
    },
)
