"""Networks: the graph of layers, their blobs and parameters, forward and backward."""

from __future__ import annotations

from ..layers import Blob, Parameter
from .format import Format
from .graph import Node, ParamSpec, Phase
from .net import Hooks, Net

__all__ = ["Blob", "Format", "Hooks", "Net", "Node", "ParamSpec", "Parameter", "Phase"]
