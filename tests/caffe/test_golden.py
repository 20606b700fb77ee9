"""Caffe's own numbers: outputs, input, weight and bias gradients of every recorded layer that exists here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from astride.caffe import load_caffe
from astride.caffe.translate import TRANSLATORS
from astride.layers import pooling

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "caffe"
TOLERANCE = 1e-4
"""Of the largest recorded value."""


def opened(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Everything a file holds."""
    with np.load(path) as file:
        return dict(file)


def types_in(path: Path) -> set[str]:
    """The layer types that a recorded network uses; in a filler a type has no comma before it but a brace."""
    return set(re.findall(r'name: "\w+"\s+type: "(\w+)"', str(opened(path)["prototxt"])))


FILES = [
    path for folder in ("ops", "layers") for path in sorted((GOLDEN / folder).glob("*.npz")) if types_in(path) <= set(TRANSLATORS)
]


def assert_agrees(actual: npt.NDArray[Any], recorded: npt.NDArray[Any], what: str) -> None:
    assert actual.shape == recorded.shape, what
    finite = np.isfinite(recorded)
    np.testing.assert_array_equal(actual[~finite], recorded[~finite], err_msg=what)
    largest = np.abs(recorded[finite]).max(initial=0)
    np.testing.assert_allclose(actual[finite], recorded[finite], rtol=0, atol=TOLERANCE * largest, err_msg=what)


def parts(recorded: Any, prefix: str) -> dict[str, npt.NDArray[Any]]:
    return {key.removeprefix(prefix): recorded[key] for key in recorded if key.startswith(prefix)}


def test_nothing_is_missing() -> None:
    """Every recorded layer exists here."""
    found = {folder: {path.stem for path in (GOLDEN / folder).glob("*.npz")} for folder in ("ops", "layers")}
    assert {folder: len(names) for folder, names in found.items()} == {"ops": 73, "layers": 67}
    assert {(path.parent.name, path.stem) for path in FILES} == {(folder, name) for folder in found for name in found[folder]}


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_recorded(path: Path) -> None:
    recorded = opened(path)
    net = load_caffe(str(recorded["prototxt"]), phase=str(recorded["phase"]))
    for key, value in parts(recorded, "param_").items():
        layer, index = key.rsplit("_", 1)
        net.params[layer][int(index)].data[...] = value
    outputs = net.forward(**parts(recorded, "in_"))
    for name, value in parts(recorded, "out_").items():
        assert_agrees(outputs[name], value, name)
    for key, value in parts(recorded, "paramafter_").items():
        layer, index = key.rsplit("_", 1)
        assert_agrees(net.params[layer][int(index)].data, value, f"parameter {key} after the pass")
    top_diffs = parts(recorded, "topdiff_")
    if not top_diffs:
        return
    gradients = net.backward(**top_diffs)
    for name, value in parts(recorded, "grad_").items():
        assert_agrees(gradients[name], value, f"gradient of {name}")
    for key, value in parts(recorded, "gradparam_").items():
        layer, index = key.rsplit("_", 1)
        assert_agrees(net.params[layer][int(index)].diff, value, f"gradient of parameter {key}")


IN_USE = [path for path in FILES if opened(path)["phase"] == "TEST"]


@pytest.mark.parametrize("path", IN_USE, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_compiled(path: Path) -> None:
    """A program of the network gives the recorded outputs, too."""
    recorded = opened(path)
    net = load_caffe(str(recorded["prototxt"]))
    for key, value in parts(recorded, "param_").items():
        layer, index = key.rsplit("_", 1)
        net.params[layer][int(index)].data[...] = value
    outputs = net.compile()(**parts(recorded, "in_"))
    for name, value in parts(recorded, "out_").items():
        assert_agrees(outputs[name], value, name)


LOSSES = [path for path in FILES if any(kind.endswith("Loss") for kind in types_in(path)) and path.stem != "infogain"]


@pytest.mark.parametrize("path", LOSSES, ids=lambda path: path.stem)
def test_losses_start_from_their_weight(path: Path) -> None:
    recorded = opened(path)
    net = load_caffe(str(recorded["prototxt"]), phase=str(recorded["phase"]))
    net.forward(**parts(recorded, "in_"))
    gradients = net.backward()
    for name, value in parts(recorded, "grad_").items():
        assert_agrees(gradients[name], value, f"gradient of {name}")


def stochastic(recorded: Any, phase: str) -> Any:
    shape = " ".join(f"dim: {n}" for n in recorded["in_data"].shape)
    head = f'force_backward: true input: "data" input_shape {{ {shape} }} '
    return load_caffe(head + str(recorded["prototxt"]), phase=phase)


@pytest.mark.parametrize("path", sorted((GOLDEN / "stochastic").glob("*.npz")), ids=lambda path: path.stem)
def test_stochastic_training(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = opened(path)
    monkeypatch.setattr(pooling, "uniforms", lambda *_: recorded["uniform"])
    net = stochastic(recorded, "TRAIN")
    out = net.forward(data=recorded["in_data"])["out"]
    # Where no running sum reaches the draw Caffe's kernel writes nothing and -7 stays; here that gives 0.
    assert_agrees(out, np.where(recorded["out_train"] == -7, 0, recorded["out_train"]), "out")
    assert_agrees(net.backward(out=recorded["topdiff_out"])["data"], recorded["grad_data"], "gradient of data")


@pytest.mark.parametrize("path", sorted((GOLDEN / "stochastic").glob("*.npz")), ids=lambda path: path.stem)
def test_stochastic_test_time(path: Path) -> None:
    recorded = opened(path)
    assert_agrees(stochastic(recorded, "TEST").forward(data=recorded["in_data"])["out"], recorded["out_test"], "out")


def test_a_wrong_number_is_noticed() -> None:
    value = np.array([1.0, np.inf, np.nan])
    assert_agrees(value + [5e-5, 0, 0], value, "near enough")
    for wrong in (value + [2e-4, 0, 0], value[:2], np.array([1.0, 2.0, np.nan]), np.array([1.0, np.inf, 0.0])):
        with pytest.raises(AssertionError):
            assert_agrees(wrong, value, "wrong")
