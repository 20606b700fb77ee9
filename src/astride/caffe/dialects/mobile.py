"""What MobileNets and TensorFlow's networks needed of Caffe: activations with a ceiling, pads, a Resize."""

from __future__ import annotations

from ._fork import Fork

FORK = Fork(
    "MobileNets and TensorFlow's networks: HardSigmoid, Pad",
    ("foss-for-synopsys-dwc-arc-processors/synopsys-caffe",),
    {
        "HardSigmoidParameter": "1 alpha float = 0.2\n2 beta float = 0.5",
        "PadParameter": "1 paddings uint32*\n2 constant_values float = 0",
        "LayerParameter": """
            224 pad_param PadParameter
            258 hard_sigmoid_param HardSigmoidParameter
        """,
    },
)

RESIZE = Fork(
    "face recognition: Resize to a size or by scales; in text only, its numbers are in no file that was found",
    ("happynear/caffe-windows (src/caffe/layers/resize_layer.cpp)",),
    {
        "ResizeParameter": """
            400000001 is_pyramid_test bool = false
            400000002 height uint32 = 0
            400000003 width uint32 = 0
            400000004 out_height_scale float
            400000005 out_width_scale float
        """,
        "LayerParameter": "400000171 resize_param ResizeParameter",
    },
)
