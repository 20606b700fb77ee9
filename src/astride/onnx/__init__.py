"""ONNX: single nodes run on NumPy arrays. The onnx package is not needed for that: a node is read by its attributes' names.

outputs = astride.onnx.run_node(node, [x], opset=22)
"""

from __future__ import annotations

from .node import run_node

__all__ = ["run_node"]
