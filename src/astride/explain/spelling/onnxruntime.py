"""How ONNX Runtime is asked for these operators: ONNX's nodes, whose calls are the same; what it makes of them is its own."""

from __future__ import annotations

from . import onnx

NAMES, GRADIENT, WEIGHTS, CHOICES, FORMS = onnx.NAMES, False, onnx.WEIGHTS, onnx.CHOICES, onnx.FORMS
layout, write, pad, crop, scale = onnx.layout, onnx.write, onnx.pad, onnx.crop, onnx.scale
