"""Reading networks: `readNetFromCaffe` and `readNet`."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..caffe.load import load_caffe
from ..caffe.weights import load_weights
from ..errors import UnsupportedError
from ..layers import Filler
from ..proto import Source
from .network import Net

OTHERS = {
    ".onnx": "onnxruntime, or OpenCV",
    ".pb": "TensorFlow, or OpenCV",
    ".pbtxt": "TensorFlow, or OpenCV",
    ".tflite": "LiteRT, or OpenCV",
    ".cfg": "OpenCV 4",
    ".weights": "OpenCV 4",
    ".t7": "OpenCV 4",
    ".net": "OpenCV 4",
    ".xml": "OpenVINO",
}


def readNetFromCaffe(
    prototxt: Any = None, caffeModel: Any = "", *, bufferProto: Any = None, bufferModel: Any = None, **options: Any
) -> Net:
    """A network of Caffe's files: paths, or their contents as bytes or uint8 arrays. Of any of its three formats and its forks.

    prototxt, caffeModel     the text and the weights; without weights the layers that need some can be given them (`Layer.blobs`)
    options                  as load_caffe takes them: dialect, python_layers, max_memory, allow_unknown_fields, level, stages
    Raises PrototxtError, UnknownLayerError, ModelFileError, ArgumentError: as load_caffe
    """
    text = prototxt if bufferProto is None else bufferProto
    weights = caffeModel if bufferModel is None else bufferModel
    net = load_caffe(_source(text), None, seed=0, **options)
    source = _source(weights)
    missing = list(net.params) if _is_nothing(source) else load_weights(net, source, allow_missing=True)
    # What its text fills with more than zeros is ready, as in Caffe.
    return Net(net, [name for name in missing if net.params[name][0].filler == Filler()])


def readNet(model: Any, config: Any = "", framework: str = "") -> Net:
    """A Caffe network whose two files come in either order; files of other frameworks are refused with a word where to go."""
    files = [model, config]
    for file in files:
        suffix = Path(file).suffix.lower() if isinstance(file, str | PathLike) else ""
        if suffix in OTHERS or framework.lower() not in ("", "caffe"):
            raise UnsupportedError(
                "this reads networks of Caffe",
                given={"model": model, "framework": framework or suffix},
                required='a .prototxt and a .caffemodel, framework "caffe" or ""',
                hint=OTHERS.get(suffix, "readNetFromCaffe(prototxt, caffemodel)"),
            )
    if isinstance(model, str | PathLike) and Path(model).suffix.lower() in (".caffemodel", ".h5"):
        files.reverse()
    return readNetFromCaffe(*files)


def _source(file: Any) -> Source:
    """Arrays of bytes as OpenCV takes them are bytes here; everything else is as `load_caffe` has it."""
    if isinstance(file, np.ndarray) and file.dtype == np.uint8:
        return file.tobytes()
    if isinstance(file, bytearray | memoryview):
        return bytes(file)
    given: Source = file
    return given


def _is_nothing(source: Any) -> bool:
    return source is None or (isinstance(source, str | bytes) and not source)
