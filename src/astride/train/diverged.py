"""Training that meets NaN or infinity stops at once and names the first place that holds one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import NotFiniteError
from ..net import Net

Array = npt.NDArray[Any]
HINT = "base_lr ten times smaller, clip_gradients: 10, or look at the data for NaN"


def check_loss(net: Net, iteration: int) -> None:
    """Raise unless the loss of the last forward pass is finite."""
    if not math.isfinite(net.loss):
        place = _first(_forward_places(net), "every blob and parameter is finite, only their sum is not")
        raise _error("the loss is no longer finite", iteration, {"loss": net.loss}, place)


def check_gradients(net: Net, iteration: int) -> None:
    """Raise unless every gathered gradient is finite."""
    if not all(np.isfinite(parameter.diff).all() for parameter in net.learnable):
        place = _first(_backward_places(net), "the sum over passes or processes")
        raise _error("a gradient is no longer finite", iteration, {"loss": net.loss}, place)


def _error(problem: str, iteration: int, given: dict[str, Any], place: str) -> NotFiniteError:
    return NotFiniteError(
        f"{problem}, at iteration {iteration}",
        given=given,
        required="finite numbers everywhere",
        because=f"the first place with NaN or infinity is {place}",
        hint=HINT,
        operator="solver",
    )


def _forward_places(net: Net) -> Iterator[tuple[str, Array]]:
    """Parameters and tops in the order in which the forward pass reads and writes them."""
    for node in net.nodes:
        for index, parameter in enumerate(net.params.get(node.name, ())):
            yield f"parameter {index} of layer {node.name}, before this pass", parameter.data
        for top in node.tops:
            yield f"blob {top}, made by layer {node.name} ({node.layer.type})", net.blobs[top].data


def _backward_places(net: Net) -> Iterator[tuple[str, Array]]:
    """Gradients of tops and parameters in the order of the backward pass."""
    for node in reversed(net.nodes):
        for top in node.tops:
            yield f"the gradient of blob {top}, which reaches layer {node.name} ({node.layer.type})", net.blobs[top].diff
        for index, parameter in enumerate(net.params.get(node.name, ())):
            yield f"the gradient of parameter {index} of layer {node.name} ({node.layer.type})", parameter.diff


def _first(places: Iterator[tuple[str, Array]], otherwise: str) -> str:
    return next((name for name, values in places if not np.isfinite(values).all()), otherwise)
