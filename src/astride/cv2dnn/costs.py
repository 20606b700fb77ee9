"""Shapes, operations and bytes of a network's layers, in the terms of OpenCV."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..layers.convolution import Convolution
from ..layers.deconvolution import Deconvolution
from ..layers.inner_product import InnerProduct
from ..layers.pooling import Pooling
from ..net import Net, Node
from ..plan import ConvPlan, PoolPlan, Shape, StridedAxis

Array = npt.NDArray[Any]
Shapes = tuple[tuple[Array, ...], ...]

BYTES = 4
PER_OUTPUT = {
    "ReLU": 1,
    "PReLU": 1,
    "ELU": 2,
    "AbsVal": 1,
    "BNLL": 5,
    "Sigmoid": 3,
    "TanH": 1,
    "Power": 2,
    "Softmax": 4,
    "Scale": 2,
    "BatchNorm": 3,
    "Bias": 1,
}
"""type -> operations counted for each number of the output"""


class Costs:
    """Of a network at the sizes it has now."""

    def __init__(self, net: Net, nodes: Sequence[Node]) -> None:
        own = {node.name: node for node in net.nodes}
        self._nodes = nodes
        self._shapes: dict[str, Shape] = {}
        for node in nodes:
            for name, mine in zip(node.tops, own[node.name].tops, strict=True):
                self._shapes[name] = net.blobs[mine].shape
        self._blobs = {node.name: [net.blobs[name] for name in own[node.name].bottoms] for node in nodes}

    def shapes(self) -> tuple[Array, Shapes, Shapes]:
        """(numbers, input shapes, output shapes) of all layers, the input first as number 0."""
        inputs = [node for node in self._nodes if node.layer.type == "Input"]
        fed = tuple(self._array(name) for node in inputs for name in node.tops)
        listed = [node for node in self._nodes if node.layer.type != "Input"]
        ins = (fed, *(tuple(map(self._array, node.bottoms)) for node in listed))
        outs = (fed, *(tuple(map(self._array, node.tops)) for node in listed))
        return np.arange(len(listed) + 1, dtype=np.int32), ins, outs

    def _array(self, name: str) -> Array:
        return np.array(self._shapes[name], np.int32)

    def flops(self, node: Node) -> int:
        """Two for each multiplication and addition, and one an output for its bias; a few an output elsewhere.

        A convolution without groups, max pooling and most functions of one number as in OpenCV 4.14, which counts a grouped
        convolution as dense. Types that only move numbers, and those not listed here, have none.
        """
        layer, bottoms = node.layer, self._blobs[node.name]
        count = sum(math.prod(self._shapes[name]) for name in node.tops)
        if isinstance(layer, Convolution):
            made: ConvPlan = layer.plan(bottoms[0])
            taps = math.prod(axis.kernel for axis in made.axes if isinstance(axis, StridedAxis))
            inner = made.in_channels // made.groups
            if isinstance(layer, Deconvolution):
                return sum(2 * blob.count * taps * made.out_channels // made.groups for blob in bottoms) + count
            return count * (2 * taps * inner + 1)
        if isinstance(layer, InnerProduct):
            return count * (2 * layer.params[0].count // layer.outputs + 1)
        if isinstance(layer, Pooling):
            plan: PoolPlan = layer.plans(bottoms[0].shape, bottoms[0].dtype)
            return count * math.prod(axis.kernel for axis in plan.axes if isinstance(axis, StridedAxis))
        if layer.type == "Eltwise":
            return count * max(len(bottoms) - 1, 1)
        return count * PER_OUTPUT.get(layer.type, 0)

    def weights(self, node: Node) -> int:
        """Bytes of its parameters."""
        return BYTES * sum(parameter.count for parameter in node.layer.params)

    def outputs(self, node: Node) -> int:
        """Bytes of its outputs."""
        return BYTES * sum(math.prod(self._shapes[name]) for name in node.tops)
