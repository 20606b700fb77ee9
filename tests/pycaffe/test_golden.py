"""Caffe's own numbers by pycaffe's calls: forward, backward, parameters, of every recorded layer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from astride import pycaffe as caffe

from .texts import written

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "caffe"
FILES = [path for folder in ("ops", "layers") for path in sorted((GOLDEN / folder).glob("*.npz"))]
TOLERANCE = 1e-4
"""Of the largest recorded value."""


def opened(path: Path) -> dict[str, npt.NDArray[Any]]:
    with np.load(path) as file:
        return dict(file)


def assert_agrees(actual: npt.NDArray[Any], recorded: npt.NDArray[Any], what: str) -> None:
    assert actual.shape == recorded.shape and actual.dtype == np.float32, what
    finite = np.isfinite(recorded)
    np.testing.assert_array_equal(actual[~finite], recorded[~finite], err_msg=what)
    largest = np.abs(recorded[finite]).max(initial=0)
    np.testing.assert_allclose(actual[finite], recorded[finite], rtol=0, atol=TOLERANCE * largest, err_msg=what)


def parts(recorded: dict[str, npt.NDArray[Any]], prefix: str) -> dict[str, npt.NDArray[Any]]:
    return {key.removeprefix(prefix): recorded[key] for key in recorded if key.startswith(prefix)}


def parameter(net: caffe.Net, key: str) -> Any:
    layer, index = key.rsplit("_", 1)
    return net.params[layer][int(index)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_recorded(path: Path, folder: Path) -> None:
    recorded = opened(path)
    text = str(recorded["prototxt"])
    forced = text if "force_backward" in text else "force_backward: true\n" + text
    net = caffe.Net(written("net.prototxt", forced), {"TRAIN": caffe.TRAIN, "TEST": caffe.TEST}[str(recorded["phase"])])
    for key, value in parts(recorded, "param_").items():
        parameter(net, key).data[...] = value
    outputs = net.forward(**parts(recorded, "in_"))
    for name, value in parts(recorded, "out_").items():
        assert_agrees(outputs[name], value, name)
    for key, value in parts(recorded, "paramafter_").items():
        assert_agrees(parameter(net, key).data, value, f"parameter {key} after the pass")
    diffs = parts(recorded, "topdiff_")
    if not diffs:
        return
    for name in net.outputs:
        net.blobs[name].diff[...] = diffs.get(name, 0)
    gradients = net.backward()
    for name, value in parts(recorded, "grad_").items():
        assert_agrees(gradients[name], value, f"gradient of {name}")
    for key, value in parts(recorded, "gradparam_").items():
        assert_agrees(parameter(net, key).diff, value, f"gradient of parameter {key}")
