"""Ristretto: layers in short words."""

from __future__ import annotations

from ._fork import Fork

FORK = Fork(
    "Ristretto: layers computed in fixed point, small floats or powers of two",
    ("pmgysel/caffe",),
    {
        "QuantizationParameter": """
            enum Precision DYNAMIC_FIXED_POINT=0 MINIFLOAT=1 INTEGER_POWER_OF_2_WEIGHTS=2
            enum Rounding NEAREST=0 STOCHASTIC=1
            1 precision Precision = DYNAMIC_FIXED_POINT
            2 rounding_scheme Rounding = NEAREST
            3 bw_layer_in uint32 = 32
            4 bw_layer_out uint32 = 32
            5 bw_params uint32 = 32
            6 fl_layer_in int32 = 16
            7 fl_layer_out int32 = 16
            8 fl_params int32 = 16
            9 mant_bits uint32 = 23
            10 exp_bits uint32 = 8
            11 exp_min int32 = -8
            12 exp_max int32 = -1
        """,
        "LayerParameter": "148 quantization_param QuantizationParameter",
    },
)
