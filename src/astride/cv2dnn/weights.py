"""A network's parameters as OpenCV shows them, frozen, so that compiled programs share them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ArrayError
from ..layers import Parameter
from ..net import Net, Node
from ..net.arrays import real
from ..net.freeze import frozen

Array = npt.NDArray[Any]


def freeze(net: Net) -> None:
    """Let every parameter hold memory nobody can write to; parameters that share go on sharing."""
    made: dict[int, Parameter] = {}
    kept = [(p, p.memory()[0]) for layer in net.layers for p in layer.params]  # the stores live until all are replaced
    for parameter, store in kept:
        fixed = made.setdefault(id(store), frozen(parameter))
        parameter.hold(fixed.data.reshape(parameter.shape))


def matrices(node: Node) -> tuple[Array, ...]:
    """Copies of a layer's parameters; those of one axis are columns (N, 1), rows (1, N) in an InnerProduct."""
    shape = (1, -1) if node.layer.type == "InnerProduct" else (-1, 1)
    arrays = (parameter.data.copy() for parameter in node.layer.params)
    return tuple(array.reshape(shape) if array.ndim < 2 else array for array in arrays)


def replace(net: Net, node: Node, values: Sequence[Any]) -> None:
    """Give a layer other weights, and all that share them; those at the end that are left out, as a bias, become zero.

    Raises ArrayError: other counts of elements than the layer's, more blobs than it has, none.
    """
    parameters = node.layer.params
    arrays = [real("blob", value) for value in values]
    wrong = [a.shape for a, p in zip(arrays, parameters, strict=False) if a.size != p.count]
    if not 1 <= len(arrays) <= len(parameters) or wrong:
        raise ArrayError(
            "these blobs are not the layer's",
            given={"blobs": [array.shape for array in arrays]},
            required=f"as many elements as {[p.shape for p in parameters]}; a bias may be left out",
            operator=node.where,
        )
    for i, parameter in enumerate(parameters):
        data = arrays[i].reshape(parameter.shape) if i < len(arrays) else np.zeros(parameter.shape)
        fixed = frozen(parameter, data).data
        store = parameter.memory()[0]
        for other in [p for layer in net.layers for p in layer.params if p.memory()[0] is store]:
            other.hold(fixed.reshape(other.shape))
