"""Weights into a network, by layer name."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import zip_longest
from typing import Any

import numpy as np

from ..errors import Listing, ModelFileError
from ..layers import Parameter
from ..net import Net
from ..plan import Shape
from ..proto import BlobArray, NetFile, Source, read_caffemodel
from ..proto.blobs import ABSENT, BlobFault, blob_shape, is_shaped

SKIP = "give the layer another name in the prototxt and load with allow_missing=True: it then begins with its fillers"

SHAPE = "blobs { shape { dim: 20 dim: 1 dim: 5 dim: 5 } data: ... }, or no blobs, to begin with the fillers"


def load_weights(net: Net, source: Source, *, allow_missing: bool = False) -> list[str]:
    """Copy a .caffemodel or .caffemodel.h5 (path, bytes or open file) into the network's layers of the same names.

    Layers of the file that the network lacks are passed over, as in Caffe. Returns the names of the network's layers
    that the file lacks.
    Raises ModelFileError: the file is none; weights that do not fit, all layers in one message; layers the file lacks,
    unless `allow_missing`.
    """
    # What fields of forks mean makes no difference to weights.
    file = read_caffemodel(source, partial=True)
    found = blobs_by_name(file)
    _check_fit(net, found, file)
    filled = _filled(net, found)
    missing = [name for name, own in net.params.items() if name not in found and not all(map(filled, own))]
    if missing and not allow_missing:
        raise ModelFileError(
            f"{file.source} lacks weights of {len(missing)} of the network's {len(net.params)} layers",
            given={"missing": Listing(f'"{name}" ({net.layer(name).type})' for name in missing)},
            required=f"weights for every layer; the file has {_some(list(found))}",
            hint="allow_missing=True lets these layers begin with their fillers",
        )
    for name, blobs in found.items():
        for parameter, blob in zip(net.params.get(name, []), blobs, strict=False):
            if blob is not ABSENT:
                parameter.data[...] = blob.data.reshape(parameter.shape)
    return missing


def blobs_by_name(file: NetFile) -> dict[str, list[BlobArray]]:
    """The blobs of every layer of a file that has some, whatever its format."""
    return {_name(layer): blobs for layer, blobs in zip(file.layers, file.blobs, strict=True) if blobs}


def take_blobs(net: Net, name: str, blobs: Any) -> None:
    """Copy the blobs that a network's own text holds for one of its layers: they stand in for the fillers.

    Numbers written without a shape are taken as a list: they fit a parameter of one axis.
    """
    parameters = net.params.get(name, [])
    arrays = [np.array(blob.double_data if len(blob.double_data) else blob.data) for blob in blobs]
    try:
        shapes = [blob_shape(b, a.size) if is_shaped(b) else a.shape for b, a in zip(blobs, arrays, strict=True)]
    except BlobFault as fault:
        raise ModelFileError(f'a blob in the text of layer "{name}": {fault.problem}', hint=fault.hint or SHAPE) from None
    own = [p.shape for p in parameters]
    sizes = [a.size for a in arrays]
    if len(shapes) != len(own) or not all(map(fits, shapes, own)) or sizes != [p.count for p in parameters]:
        raise ModelFileError(
            f'the blobs in the text of layer "{name}" do not fit it',
            given={"shapes": shapes, "sizes": sizes},
            required=f"shapes == {own}, sizes == {[p.count for p in parameters]}",
            hint=SHAPE,
        )
    for parameter, array in zip(parameters, arrays, strict=True):
        parameter.data[...] = array.reshape(parameter.shape)


def fits(shape: Shape, own: Shape) -> bool:
    """Equal shapes, or the old four-dimensional form with ones in front: (1, 1, 1, N) for (N,)."""
    return shape == own or (len(shape) == 4 and len(own) < 4 and shape == (1,) * (4 - len(own)) + own)


def _check_fit(net: Net, found: dict[str, Any], file: NetFile) -> None:
    misfits = []
    filled = _filled(net, found)
    for name, parameters in net.params.items():
        blobs = found.get(name)
        if blobs is None:
            continue
        kind = net.layer(name).type
        lacking = [p for p, blob in zip_longest(parameters, blobs) if p is not None and blob in (None, ABSENT)]
        if len(blobs) > len(parameters) or not all(map(filled, lacking)):
            misfits.append(f'layer "{name}" ({kind}) has {len(parameters)} parameters, the file {len(blobs)}')
            continue
        for i, (parameter, blob) in enumerate(zip(parameters, blobs, strict=False)):
            if blob is not ABSENT and not fits(blob.shape, parameter.shape):
                same = ", as many numbers in another order" if math.prod(blob.shape) == parameter.count else ""
                misfits.append(f'layer "{name}" ({kind}), parameter {i}: network {parameter.shape}, file {blob.shape}{same}')
    if misfits:
        raise ModelFileError(
            f"the weights of {file.source} do not fit the network",
            given={"misfits": Listing(misfits)},
            required="equal shapes, layer by layer",
            because="Caffe, src/caffe/net.cpp, CopyTrainedLayersFrom",
            hint=SKIP,
        )


def _filled(net: Net, found: dict[str, list[BlobArray]]) -> Callable[[Parameter], bool]:
    """Whether a file gives a parameter's numbers: with its own layer, or with one it shares its memory with."""
    given = {
        parameter.data.ctypes.data
        for name, blobs in found.items()
        for parameter, blob in zip(net.params.get(name, []), blobs, strict=False)
        if blob is not ABSENT
    }
    return lambda parameter: parameter.data.ctypes.data in given


def _name(layer: Any) -> str:
    """A layer's name; the oldest format keeps it one message further down."""
    inner = layer.DESCRIPTOR.name == "V1LayerParameter" and layer.HasField("layer")
    return str(layer.layer.name if inner else layer.name)


def _some(names: list[str]) -> str:
    """A few names of many."""
    shown = ", ".join(names[:8])
    return f"{len(names)} layers with weights" + (f": {shown}{', ...' if len(names) > 8 else ''}" if names else "")
