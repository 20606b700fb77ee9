"""Real Caffe's recorded values of pooling, convolution and deconvolution, and of its stochastic kernels, through `like.caffe`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.compare import assert_near

import astride
from astride.like import caffe
from astride.proto import text

FOLDER = Path(__file__).parent / "caffe"
OPS, STOCHASTIC = (sorted((FOLDER / kind).glob("*.npz")) for kind in ("ops", "stochastic"))
TOLERANCE = 1e-4


def recorded(path: Path) -> dict[str, Any]:
    with np.load(path) as file:
        return {key: file[key] for key in file.files}


def layer_of(prototxt: str) -> tuple[str, dict[str, Any]]:
    """(type, fields) of the layer named L, in Caffe's own words."""
    net = text.parse(prototxt, "NetParameter").message
    layer = next(layer for layer in net.layer if layer.name == "L")
    message = layer.pooling_param if layer.type == "Pooling" else layer.convolution_param
    fields: dict[str, Any] = {}
    for field, value in message.ListFields():
        if field.name in ("weight_filler", "bias_filler", "engine"):
            continue
        if field.enum_type is not None:
            value = field.enum_type.values_by_number[value].name
        fields[field.name] = tuple(value) if not isinstance(value, int | float | str | bool) else value
    return layer.type, fields


def test_the_recorded_values_are_here() -> None:
    assert len(OPS) >= 70 and len(STOCHASTIC) == 3


@pytest.mark.parametrize("path", OPS, ids=lambda path: path.stem)
def test_ops(path: Path) -> None:
    file = recorded(path)
    kind, fields = layer_of(str(file["prototxt"]))
    weights = [file[f"param_L_{i}"] for i in range(2) if f"param_L_{i}" in file]
    if kind == "Pooling":
        call, arguments = caffe.pooling, dict(fields, return_mask="out_mask" in file)
    else:
        call, arguments = (caffe.convolution if kind == "Convolution" else caffe.deconvolution), fields
    result, pull = astride.vjp(call, file["in_data"], *weights, **arguments)
    y, mask = result if isinstance(result, tuple) else (result, None)
    assert_near(y, file["out_out"], TOLERANCE, "out")
    assert y.dtype == np.float32
    if mask is not None:
        assert_near(mask, file["out_mask"], 0.0, "mask")
    if "topdiff_out" not in file:
        return
    gradients = pull(file["topdiff_out"])
    assert_near(gradients[0], file["grad_data"], TOLERANCE, "gradient of data")
    for i, gradient in enumerate(gradients[1:]):
        assert_near(gradient, file[f"gradparam_L_{i}"], TOLERANCE, f"gradient of parameter {i}")


@pytest.mark.parametrize("path", STOCHASTIC, ids=lambda path: path.stem)
def test_stochastic(path: Path) -> None:
    """Where Caffe's kernel wrote nothing (negative windows with no crossing), its recorded place is the draw itself: 0 here."""
    file = recorded(path)
    _, fields = layer_of(str(file["prototxt"]))
    x, uniform, places = file["in_data"], file["uniform"], file["rand_idx"]
    drawn = places == np.floor(places)
    y, pull = astride.vjp(caffe.pooling, x, phase="TRAIN", uniform=uniform, **fields)
    assert_near(y[drawn], file["out_train"][drawn], 0.0, "training")
    assert (y[~drawn] == 0).all()
    assert_near(y[drawn], x.reshape(-1)[places[drawn].astype(int)], 0.0, "the value at the drawn place")
    assert_near(pull(file["topdiff_out"])[0], file["grad_data"], TOLERANCE, "gradient")
    assert_near(caffe.pooling(x, phase="TEST", **fields), file["out_test"], TOLERANCE, "test time")


def test_another_rule_is_found() -> None:
    """The comparison tells floor from ceil, and Caffe's divisor from PyTorch's count of real pixels."""
    file = recorded(FOLDER / "ops" / "pool_ave_k3s2p1.npz")
    y = astride.avg_pool(file["in_data"], kernel=3, stride=2, padding=1, rounding="ceil", divisor="valid")
    with pytest.raises(AssertionError, match="is not"):
        assert_near(y, file["out_out"], TOLERANCE)
