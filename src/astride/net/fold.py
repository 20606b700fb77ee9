"""Folding: a layer that scales and shifts channels, behind a linear one nobody else reads, becomes part of its weights; a ReLU,
leaky or with a ceiling, or a Clip behind a convolution, part of how that stores its results; so does a sum with
another value that is there already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..backends.epilogue import Epilogue
from ..backends.protocol import Array
from ..layers import Parameter
from ..layers.clip import Clip
from ..layers.convolution import Convolution
from ..layers.deconvolution import Deconvolution
from ..layers.eltwise import Eltwise
from ..layers.inner_product import InnerProduct
from ..layers.layer import Layer
from ..layers.relu import ReLU
from ..layers.relu6 import ReLU6
from ..plan.dense import Function
from ..plan.kinds import Nan
from .freeze import frozen

if TYPE_CHECKING:
    from .program import Step


def fold(steps: list[Step], outputs: set[int]) -> list[tuple[str, str]]:
    """Fold what can be folded, in place. The (layer, into) names, in order.

    Weights change by rounding alone: they are scaled in float64 and rounded once.
    """
    folded: list[tuple[str, str]] = []
    i = 0
    while i + 1 < len(steps):
        step = steps[i]
        reader = _only_reader(steps, step, outputs)
        if reader is None or not (_scales(step, reader) or _finishes(step, reader) or _adds(steps, step, reader)):
            i += 1
            continue
        step.writes = list(reader.writes)
        steps.remove(reader)
        folded.append((reader.node.name, step.node.name))
    return folded


def _only_reader(steps: Sequence[Step], step: Step, outputs: set[int]) -> Step | None:
    """The one step that reads a step's only value, and writes one itself."""
    if len(step.writes) != 1 or step.writes[0] in outputs:
        return None
    readers = [other for other in steps if step.writes[0] in other.reads]
    return readers[0] if len(readers) == 1 and len(readers[0].writes) == 1 else None


def _scales(step: Step, reader: Step) -> bool:
    """Whether the reader scales and shifts channels of a step that is linear; from now on that step's weights do."""
    parts = reader.node.layer.affine(_channels(step)) if len(reader.reads) == 1 and _absorbs(step) else None
    if parts is not None:
        _absorb(step, *parts)
    return parts is not None


def _absorbs(step: Step) -> bool:
    layer = step.node.layer
    if isinstance(layer, Convolution) and layer.epilogue is not None:
        return False
    return isinstance(layer, Convolution | InnerProduct) and layer.axis == 1 and len(step.reads) == 1


def _finishes(step: Step, reader: Step) -> bool:
    """Whether the step is a convolution that can do the reader's activation; from now on it does."""
    layer = step.node.layer
    if not isinstance(layer, Convolution) or layer.epilogue is not None or len(reader.reads) != 1:
        return False
    layer.epilogue = _epilogue(reader.node.layer)
    return layer.epilogue is not None


def _adds(steps: Sequence[Step], step: Step, reader: Step) -> bool:
    """Whether the reader adds to what a convolution gives another value, which is there before it; from now on that does it."""
    layer, then = step.node.layer, reader.node.layer
    others = [value for value in reader.reads if value != step.writes[0]]
    if not isinstance(layer, Convolution) or layer.epilogue is not None or len(step.reads) != 1:
        return False
    if not isinstance(then, Eltwise) or then.function is not Function.ADD or set(then.coeffs) - {1}:
        return False
    if len(reader.reads) != 2 or len(others) != 1:
        return False
    if any(others[0] in later.writes for later in steps[steps.index(step) :]):
        return False
    layer.adds = True
    step.reads.append(others[0])
    return True


def _epilogue(layer: Layer) -> Epilogue | None:
    """What an activation does, where kernels of convolution know it."""
    if isinstance(layer, ReLU):
        return Epilogue(slope=layer.slope)
    if isinstance(layer, ReLU6):
        return Epilogue(slope=layer.slope, high=layer.limit)
    if isinstance(layer, Clip):
        return Epilogue(low=layer.low, high=layer.high, nan_is_low=layer.nan is Nan.COMPARED)
    return None


def _channels(step: Step) -> int:
    """Channels of the value that the step writes."""
    layer = step.node.layer
    if isinstance(layer, InnerProduct):
        return layer.outputs
    assert isinstance(layer, Convolution)
    return layer.out_channels


def _absorb(step: Step, scale: Array, shift: Array) -> None:
    layer = step.node.layer
    assert isinstance(layer, Convolution | InnerProduct)
    weight = layer.params[0].data.astype(np.float64)
    bias = layer.params[1].data.astype(np.float64) if layer.bias else np.zeros(len(scale))
    dtype = layer.params[0].dtype
    parameter = frozen(layer.params[0], _scaled(layer, weight, scale))
    layer.params = [parameter, frozen(Parameter((len(scale),), dtype), bias * scale + shift)]
    layer.bias = True


def _scaled(layer: Convolution | InnerProduct, weight: Array, scale: Array) -> Array:
    """The weights times the scale of the output channel each belongs to."""
    if isinstance(layer, InnerProduct):
        return weight * (scale if layer.transpose else scale[:, None])
    if isinstance(layer, Deconvolution):
        # (I, O/g, *kernel): input channel i of group i // (I/g) makes output channels of that group
        groups = len(scale) // weight.shape[1]
        per_group = scale.reshape(groups, 1, weight.shape[1])
        grouped = weight.reshape(groups, weight.shape[0] // groups, weight.shape[1], -1)
        return np.asarray((grouped * per_group[..., None]).reshape(weight.shape))
    return np.asarray(weight * scale.reshape(-1, *[1] * (weight.ndim - 1)))


__all__ = ["fold"]
